#include "profiler/test_support/written_program.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

#include "base/probe.hpp"

namespace xpu::profiler::test_support {
namespace {

using trace::RecordKind;

constexpr std::uint32_t kMapped = 2;  // the device
constexpr std::uint64_t kOperationsBefore = 1'000;

class WrittenSource final : public RecordSource {
 public:
  explicit WrittenSource(std::vector<trace::RecordBuffer> buffers) : buffers_(std::move(buffers)) {
    manifest_.start_monotonic_ns = 1'000;
    trace::ProcessInfo info;
    info.pid = 100;
    info.domain = ClockDomain::monotonic;
    info.writer_count = WrittenProgram::kSubmitters + 2;
    processes_.push_back(info);
  }
  const trace::Manifest& manifest() const override { return manifest_; }
  const std::vector<trace::ProcessInfo>& processes() const override { return processes_; }
  Result<> for_each_batch(std::span<const RecordKind>, const Visitor& visit) const override {
    for (const trace::RecordBuffer& buffer : buffers_) visit(0, buffer.records());
    return {};
  }

 private:
  const std::vector<trace::RecordBuffer> buffers_;
  trace::Manifest manifest_;
  std::vector<trace::ProcessInfo> processes_;
};

}  // namespace

template <typename Record>
WrittenProgram::Bytes WrittenProgram::encode(RecordKind kind, Record record, std::uint32_t flags) {
  record.header = {static_cast<std::uint16_t>(kind), sizeof(Record), flags};
  Bytes bytes(sizeof record);
  std::memcpy(bytes.data(), &record, sizeof record);
  return bytes;
}

template <typename Record>
void WrittenProgram::write(std::uint32_t thread, RecordKind kind, Record record, std::uint32_t flags) {
  written_.push_back({thread, encode(kind, record, flags)});
}

std::uint32_t WrittenProgram::text(const char* text) {
  const std::string_view view(text);
  trace::StringRecord record{};
  record.id = next_text_++;
  record.bytes = static_cast<std::uint32_t>(view.size());
  const std::size_t padded = (view.size() + 7) / 8 * 8;
  record.header = {static_cast<std::uint16_t>(RecordKind::string), static_cast<std::uint16_t>(sizeof record + padded), 0};
  const std::size_t at = texts_.size();
  texts_.resize(at + record.header.size);
  std::memcpy(texts_.data() + at, &record, sizeof record);
  std::memcpy(texts_.data() + at + sizeof record, view.data(), view.size());
  return record.id;
}

WrittenProgram::WrittenProgram()
    : launch_(text("launch")), query_(text("query")), wait_(text("wait")), range_(text("range")), mark_(text("mark")) {
  for (std::uint32_t writer = 1; writer <= kSubmitters + 2; ++writer) {
    trace::ThreadRecord thread{};
    thread.thread = writer;
    thread.os_thread = 100 + writer;
    write(writer, RecordKind::thread, thread);
  }
  for (std::uint32_t id = 1; id <= 2; ++id) {
    trace::DeviceRecord device{};
    device.device = id;
    device.name = text(id == kMapped ? "mapped device" : "device");
    device.tick_numerator = id == kMapped ? 4 : 1;
    device.tick_denominator = 1;
    device.valid_bits = 64;
    device.clock_domain = static_cast<std::uint32_t>(id == kMapped ? ClockDomain::unknown : ClockDomain::monotonic);
    write(1, RecordKind::device, device);
  }
  // Each thing by another thread than what it refers to.
  for (std::uint32_t id = 1; id <= kQueues; ++id) {
    trace::QueueRecord queue{};
    queue.queue = id;
    queue.context = 1;
    queue.device = id == kMappedQueue ? kMapped : 1;
    write(2, RecordKind::queue, queue, id == kOutOfOrderQueue ? trace::kFlagQueueOutOfOrder : 0);
  }
  trace::KernelRecord kernel{};
  kernel.what = 1;
  kernel.name = text("kernel");
  write(3, RecordKind::kernel, kernel);
  trace::GeometryRecord geometry{};
  geometry.geometry = 1;
  geometry.dimensions = 1;
  geometry.global[0] = 256;
  write(1, RecordKind::geometry, geometry);
  read_clock();
}

/// The device's clock runs 50 ppm fast.
std::uint64_t WrittenProgram::ticks(std::uint32_t queue, std::uint64_t ns) const {
  return queue == kMappedQueue ? (ns + ns / 20'000) / 4 : ns;
}

void WrittenProgram::submit(std::uint32_t writer, std::uint32_t queue, const Submission& submission) {
  const std::uint64_t operation = trace::make_operation(writer, kOperationsBefore + ++operations_[writer]);
  for (std::uint32_t id = 0; id < submission.external_ids; ++id) {
    trace::ExternalCorrelationRecord external{};
    external.operation = operation;
    external.external_id = next_external_++;
    external.family = 2 + id;
    external.thread = writer;
    write(writer, RecordKind::external_correlation, external);
  }
  if (operations_[writer] % 3 == 0) {
    trace::GraphNodeRecord node{};
    node.operation = operation;
    node.graph = writer;
    node.node = operations_[writer] % 5;
    write(writer, RecordKind::graph_node, node);
  }
  if (submission.bytes != 0) {
    trace::CopyDetailRecord copy{};
    copy.operation = operation;
    copy.bytes = submission.bytes;
    copy.direction = static_cast<std::uint8_t>(probe::CopyDirection::device_to_device);
    write(writer, RecordKind::copy_detail, copy);
  }
  trace::OperationSubmittedRecord record{};
  record.operation = operation;
  record.enter_ns = now_ns_++;
  record.exit_ns = now_ns_++;
  record.queue = queue;
  record.what = submission.bytes == 0 ? 1 : 0;
  record.geometry = submission.bytes == 0 ? 1 : 0;
  record.thread = writer;
  record.api = launch_;
  record.queue_sequence = submission.is_refused ? 0 : ++queues_[queue].sequence;
  record.result = submission.is_refused ? -5 : 0;
  const auto command = static_cast<std::uint32_t>(submission.bytes == 0 ? probe::Command::ndrange_kernel : probe::Command::copy);
  write(writer, RecordKind::operation_submitted, record,
        command << trace::kCommandShift | (submission.is_refused ? trace::kFlagFailed : 0u));
  if (!submission.is_refused) queues_[queue].pending.push_back({operation, record.enter_ns, record.queue_sequence});
}

bool WrittenProgram::take_pending(std::uint32_t queue, std::uint32_t choice, Pending& pending) {
  std::deque<Pending>& all = queues_[queue].pending;
  if (all.empty()) return false;
  const auto chosen = all.begin() + static_cast<std::ptrdiff_t>(queue == kOutOfOrderQueue ? choice % all.size() : 0);
  pending = *chosen;
  all.erase(chosen);
  return true;
}

void WrittenProgram::complete(std::uint32_t queue, std::uint32_t choice) {
  Pending pending{};
  if (!take_pending(queue, choice, pending)) return;
  Queue& state = queues_[queue];
  // Now and then a command seems to begin a nanosecond before the one before it has ended.
  const std::uint64_t before_ns =
      queue == kOutOfOrderQueue ? 0 : state.last_end_ns - (++completions_ % 7 == 0 && state.last_end_ns != 0 ? 1 : 0);
  now_ns_ += 40;
  const std::uint64_t start_ns = std::max(pending.enter_ns + 5, before_ns), end_ns = now_ns_ - 5;
  state.last_end_ns = end_ns;
  trace::OperationCompletedRecord record{};
  record.operation = pending.operation;
  record.queue = queue;
  record.queued = ticks(queue, pending.enter_ns);
  record.start = ticks(queue, start_ns);
  record.end = ticks(queue, end_ns);
  const std::uint32_t flags = (completions_ % 11 == 0 ? trace::kFlagFailed : 0u) | (completions_ % 13 == 0 ? trace::kFlagUntimed : 0u);
  write(completer_of(queue), RecordKind::operation_completed, record, flags);
}

void WrittenProgram::lose_completion(std::uint32_t queue) {
  Pending pending{};
  if (!take_pending(queue, 0, pending)) return;
  queues_[queue].last_end_ns = now_ns_;
  trace::LossRecord loss{};
  loss.first_operation = loss.last_operation = pending.operation;
  loss.count = 1;
  loss.time_ns = now_ns_;
  loss.queue = queue;
  loss.cause = static_cast<std::uint32_t>(probe::LossCause::no_chunk);
  write(completer_of(queue), RecordKind::loss, loss, trace::kFlagCompletionLost);
}

void WrittenProgram::complete_foreign(std::uint32_t queue) {
  trace::OperationCompletedRecord record{};
  record.operation = trace::make_operation(1, ++foreign_);
  record.queue = queue;
  now_ns_ += 40;
  record.start = ticks(queue, now_ns_ - 20);
  record.end = ticks(queue, now_ns_);
  queues_[queue].last_end_ns = now_ns_;  // no command of the queue ran meanwhile
  write(completer_of(queue), RecordKind::operation_completed, record);
}

void WrittenProgram::call(std::uint32_t writer, bool begins_only) {
  trace::CallBeginRecord begin{};
  begin.api = query_;
  begin.enter_ns = now_ns_;
  begin.thread = writer;
  write(writer, RecordKind::call_begin, begin);
  if (begins_only) return;
  trace::ApiCallRecord call{};
  call.api = query_;
  call.enter_ns = now_ns_++;
  call.exit_ns = now_ns_++;
  call.thread = writer;
  write(writer, RecordKind::api_call, call);
  trace::OverheadRecord overhead{};
  overhead.begin_ns = now_ns_++;
  overhead.end_ns = now_ns_;
  overhead.count = 7;
  overhead.thread = writer;
  write(writer, RecordKind::overhead, overhead);
  trace::CommunicationRecord communication{};
  communication.begin_ns = now_ns_++;
  communication.end_ns = now_ns_++;
  communication.name = query_;
  communication.communicator = writer;
  communication.thread = writer;
  write(writer, RecordKind::communication, communication);
}

void WrittenProgram::wait(std::uint32_t writer, std::uint32_t queue) {
  trace::SynchronizationRecord record{};
  record.api = wait_;
  record.type = static_cast<std::uint32_t>(probe::WaitType::queue);
  record.enter_ns = now_ns_++;
  record.exit_ns = now_ns_++;
  record.queue = queue;
  record.thread = writer;
  write(writer, RecordKind::synchronization, record);
}

void WrittenProgram::use_memory(std::uint32_t writer) {
  trace::MemoryRecord record{};
  record.time_ns = now_ns_;
  record.bytes = 64;
  record.total = alive_bytes_ += 64;
  record.context = 1;
  record.action = static_cast<std::uint8_t>(probe::MemoryAction::allocate);
  record.thread = writer;
  write(writer, RecordKind::memory, record);
}

void WrittenProgram::begin_range(std::uint32_t writer) {
  trace::AnnotationRecord record{};
  record.time_ns = now_ns_;
  record.text = range_;
  record.thread = writer;
  write(writer, RecordKind::annotation, record, static_cast<std::uint32_t>(probe::AnnotationType::begin));
}

void WrittenProgram::end_range(std::uint32_t writer) {
  trace::AnnotationRecord record{};
  record.time_ns = now_ns_;
  record.thread = writer;
  write(writer, RecordKind::annotation, record, static_cast<std::uint32_t>(probe::AnnotationType::end));
}

void WrittenProgram::mark(std::uint32_t writer) {
  trace::AnnotationRecord record{};
  record.time_ns = now_ns_;
  record.text = mark_;
  record.thread = writer;
  write(writer, RecordKind::annotation, record, static_cast<std::uint32_t>(probe::AnnotationType::mark));
}

void WrittenProgram::lose(std::uint32_t writer, std::uint32_t queue) {
  trace::LossRecord loss{};
  loss.first_operation = loss.last_operation = trace::make_operation(writer, kOperationsBefore + ++operations_[writer]);
  loss.count = 1;
  loss.time_ns = now_ns_;
  loss.queue = queue;
  loss.last_sequence = ++queues_[queue].sequence;
  write(writer, RecordKind::loss, loss);
  loss.queue = loss.last_sequence = 0;
  write(writer, RecordKind::loss, loss, trace::kFlagNotOperation);
}

void WrittenProgram::read_clock() {
  for (const std::uint32_t device : {1u, kMapped}) {
    trace::ClockReadingRecord record{};
    record.device = device;
    record.host_before_ns = now_ns_;
    record.host_after_ns = now_ns_ + (device == kMapped ? 100 : 0);
    record.device_ticks = ticks(device == kMapped ? kMappedQueue : 1, now_ns_ + (device == kMapped ? 50 : 0));
    record.domain = static_cast<std::uint32_t>(ClockDomain::monotonic);
    write(kSubmitters + 1, RecordKind::clock_reading, record,
          static_cast<std::uint32_t>(device == kMapped ? probe::ClockMethod::device_timer : probe::ClockMethod::native));
  }
  now_ns_ += 100;
}

std::unique_ptr<RecordSource> WrittenProgram::source() const {
  std::vector<trace::RecordBuffer> buffers = {texts()};
  Taking taking(*this, 1);
  taking.let_pass(written_.size());
  for (trace::RecordBuffer& buffer : taking.take()) buffers.push_back(std::move(buffer));
  return std::make_unique<WrittenSource>(std::move(buffers));
}

std::vector<trace::RecordBuffer> WrittenProgram::Taking::take() {
  std::vector<std::uint32_t> threads(next_.size());
  std::iota(threads.begin(), threads.end(), 0u);
  std::shuffle(threads.begin(), threads.end(), random_);
  std::vector<trace::RecordBuffer> buffers;
  for (const std::uint32_t thread : threads) {
    written_ += random_() % 4;
    const std::size_t end = std::min(written_, program_.written_.size());
    Bytes bytes;
    for (; next_[thread] < end; ++next_[thread]) {
      const Written& written = program_.written_[next_[thread]];
      if (written.thread == thread) bytes.insert(bytes.end(), written.record.begin(), written.record.end());
    }
    if (!bytes.empty()) buffers.emplace_back(std::move(bytes));
  }
  return buffers;
}

bool WrittenProgram::Taking::has_taken_all() const {
  return std::all_of(next_.begin(), next_.end(), [&](std::size_t next) { return next == program_.written_.size(); });
}

}  // namespace xpu::profiler::test_support
