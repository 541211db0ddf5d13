#include "profiler/session/flight_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/probe.hpp"
#include "profiler/link/demangle.hpp"
#include "xpu/profiler/activity.hpp"

namespace xpu::profiler {
namespace {

using trace::RecordKind;

/// Above what the tracer counts to, and what an operating system gives to threads.
constexpr std::uint32_t kMarkTexts = 0xffff'0000, kMarkThread = 0xff'ffff, kMarkRow = 1u << 30;
constexpr std::size_t kMostMarks = 1'000;
constexpr std::size_t kLongestNameInSentence = 200;

double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::string name_of_command(const FlightRing& ring, const trace::OperationSubmittedRecord& submission) {
  const auto command = static_cast<Command>(submission.header.flags >> trace::kCommandShift);
  const bool is_kernel = command == Command::ndrange_kernel || command == Command::task_kernel || command == Command::native_kernel;
  if (!is_kernel) return std::string(to_string(command));
  const auto* kernel = ring.find<trace::KernelRecord>(RecordKind::kernel, submission.what);
  std::string name(kernel == nullptr ? std::string_view() : probe::text_of(kernel->name));
  return name.empty() ? fmt::format("kernel {}", submission.what) : demangle(name);
}

FlightQueue describe_queue(const FlightRing& ring, const trace::QueueRecord& record) {
  FlightQueue queue;
  queue.id = record.queue;
  queue.out_of_order = (record.header.flags & trace::kFlagQueueOutOfOrder) != 0;
  queue.name = probe::text_of(record.name);
  constexpr auto kNamesQueue = static_cast<std::uint32_t>(probe::AnnotationType::name_queue);
  if (const auto* named = ring.find<trace::AnnotationRecord>(RecordKind::annotation, record.native, kNamesQueue))
    queue.name = probe::text_of(named->text);
  if (const auto* device = ring.find<trace::DeviceRecord>(RecordKind::device, record.device)) queue.device = probe::text_of(device->name);
  return queue;
}

void add_activity(const FlightRing& ring, const PendingOperations::Queue& activity, std::uint64_t now_ns, FlightQueue& queue) {
  queue.pending = activity.pending;
  queue.ended = activity.ended;
  if (activity.last_end_ns != 0) queue.since_last_end_ns = now_ns - std::min(now_ns, activity.last_end_ns);
  if (activity.oldest == nullptr) return;
  const trace::OperationSubmittedRecord& submission = activity.oldest->submission;
  queue.oldest = name_of_command(ring, submission);
  queue.oldest_ns = submission.enter_ns;
  queue.pending_ns = now_ns - std::min(now_ns, submission.enter_ns);
  queue.oldest_api = probe::text_of(submission.api);
  if (const auto* thread = ring.find<trace::ThreadRecord>(RecordKind::thread, submission.thread)) queue.oldest_thread = thread->os_thread;
}

template <typename Record>
void append_record(std::vector<std::byte>& records, RecordKind kind, Record record, std::string_view text = {}, std::uint32_t flags = 0) {
  const std::size_t begin = records.size(), bytes = sizeof record + (text.size() + 7) / 8 * 8;
  record.header = {static_cast<std::uint16_t>(kind), static_cast<std::uint16_t>(bytes), flags};
  records.resize(begin + bytes);
  std::memcpy(records.data() + begin, &record, sizeof record);
  if (!text.empty()) std::memcpy(records.data() + begin + sizeof record, text.data(), text.size());
}

void append_mark_text(std::vector<std::byte>& records, std::uint32_t id, std::string_view text) {
  text = text.substr(0, trace::kMaxStringBytes);
  trace::StringRecord record{};
  record.id = id;
  record.bytes = static_cast<std::uint32_t>(text.size());
  append_record(records, RecordKind::string, record, text);
}

}  // namespace

std::string FlightQueue::text() const {
  std::string sentence = fmt::format("queue {}", id);
  if (!name.empty()) sentence += fmt::format(" \"{}\"", name);
  sentence += fmt::format(" of {}: ", device.empty() ? "unknown device" : device);
  if (pending == 0) {
    if (!since_last_end_ns) return sentence + "nothing has been submitted";
    return sentence + fmt::format("idle for {:.3f} s, after {} command{}", seconds_of(*since_last_end_ns), ended, ended == 1 ? "" : "s");
  }
  sentence += oldest.size() <= kLongestNameInSentence ? oldest : oldest.substr(0, kLongestNameInSentence) + "...";
  if (oldest_thread != 0) {
    sentence += fmt::format(", submitted by thread {}", oldest_thread);
    if (!oldest_api.empty()) sentence += " through " + oldest_api;
    sentence += ',';
  }
  sentence += fmt::format(" has been pending for {:.3f} s", seconds_of(pending_ns));
  if (pending > 1) sentence += fmt::format(", and {} command{} after it", pending - 1, pending == 2 ? "" : "s");
  return sentence;
}

std::string FlightState::text() const {
  std::string lines;
  for (const FlightQueue& queue : queues) lines += queue.text() + '\n';
  if (lines.empty()) lines = "no queue is known\n";
  if (untracked != 0) lines += fmt::format("{} more commands were submitted while too many were pending to follow each\n", untracked);
  return lines;
}

FlightState describe_state(const FlightRing& ring, std::uint64_t now_ns) {
  FlightState state;
  state.now_ns = now_ns;
  state.untracked = ring.pending().untracked();
  std::map<std::uint32_t, FlightQueue> queues;
  ring.for_each_queue([&](const trace::QueueRecord& record) { queues[record.queue] = describe_queue(ring, record); });
  for (const auto& [id, activity] : ring.pending().queues()) {
    FlightQueue& queue = queues[id];
    queue.id = id;
    add_activity(ring, activity, now_ns, queue);
  }
  for (auto& [id, queue] : queues) state.queues.push_back(std::move(queue));
  return state;
}

ActivityBuffer marks_of(const FlightState& state, std::uint32_t process) {
  std::vector<std::byte> records;
  append_mark_text(records, kMarkTexts, "xpu flight recorder");
  trace::ThreadRecord thread{};
  thread.thread = kMarkThread;
  thread.os_thread = kMarkRow;
  thread.name = kMarkTexts;
  thread.process = process;
  append_record(records, RecordKind::thread, thread);
  std::uint32_t text = kMarkTexts;
  for (const FlightQueue& queue : state.queues) {
    if (++text == kMarkTexts + kMostMarks) break;
    append_mark_text(records, text, queue.text());
    trace::AnnotationRecord mark{};
    mark.time_ns = state.now_ns;
    mark.text = text;
    mark.thread = kMarkThread;
    append_record(records, RecordKind::annotation, mark, {}, static_cast<std::uint32_t>(probe::AnnotationType::mark));
  }
  return ActivityBuffer(std::move(records));
}

}  // namespace xpu::profiler
