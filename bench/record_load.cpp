#include "record_load.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/probe.hpp"

namespace xpu::bench {
namespace {

using trace::RecordKind;

constexpr std::uint64_t kStartNs = 1'000'000'000'000;
constexpr std::uint32_t kKernels = 20;
constexpr std::uint32_t kPid = 4'242;

}  // namespace

RecordLoad::RecordLoad(std::uint64_t steps) {
  manifest_.program = "synthetic";
  manifest_.argv = {"synthetic"};
  manifest_.start_monotonic_ns = kStartNs;
  manifest_.start_realtime_ns = 1'700'000'000'000'000'000;
  trace::ProcessInfo& process = processes_.emplace_back();
  process.pid = kPid;
  process.start_ns = kStartNs;
  process.state = trace::SegmentState::closed;
  describe();
  records_ = 0;
  for (std::uint64_t step = 0; step < steps; ++step) add_step(step);
}

Result<> RecordLoad::for_each_batch(std::span<const RecordKind> kinds, const Visitor& visit) const {
  for (const Batch& batch : batches_) {
    if (std::find(kinds.begin(), kinds.end(), batch.kind) != kinds.end()) visit(0, std::as_bytes(std::span(batch.words)));
  }
  return {};
}

template <typename Record>
void RecordLoad::add(RecordKind kind, Record record, std::string_view text) {
  constexpr std::size_t kBatchWords = 32'768;
  const std::size_t words = sizeof(Record) / 8 + (text.size() + 7) / 8;
  record.header.kind = static_cast<std::uint16_t>(kind);
  record.header.size = static_cast<std::uint16_t>(8 * words);
  const auto [open, fresh] = open_.try_emplace(kind, batches_.size());
  if (fresh || batches_[open->second].words.size() + words > kBatchWords) {
    open->second = batches_.size();
    batches_.push_back({kind, {}});
    batches_.back().words.reserve(kBatchWords);
  }
  std::vector<std::uint64_t>& batch = batches_[open->second].words;
  const std::size_t at = batch.size();
  batch.resize(at + words);
  std::memcpy(&batch[at], &record, sizeof record);
  if (!text.empty()) std::memcpy(&batch[at + sizeof record / 8], text.data(), text.size());
  ++records_;
}

std::uint32_t RecordLoad::add_string(std::string_view text) {
  trace::StringRecord record{};
  record.id = ++strings_;
  record.bytes = static_cast<std::uint32_t>(text.size());
  add(RecordKind::string, record, text);
  return record.id;
}

void RecordLoad::describe() {
  trace::ThreadRecord thread{};
  thread.thread = 1;
  thread.os_thread = kPid + 1;
  add(RecordKind::thread, thread);
  trace::DeviceRecord device{};
  device.device = 1;
  device.name = add_string("synthetic device");
  device.driver = add_string("synthetic driver");
  device.tick_numerator = device.tick_denominator = 1;
  device.valid_bits = 64;
  add(RecordKind::device, device);
  trace::QueueRecord queue{};
  queue.queue = queue.context = queue.device = 1;
  add(RecordKind::queue, queue);
  for (std::uint32_t i = 1; i <= kKernels; ++i) {
    trace::KernelRecord kernel{};
    kernel.what = i;
    kernel.name = add_string("kernel_number_" + std::to_string(i));
    add(RecordKind::kernel, kernel);
    trace::GeometryRecord geometry{};
    geometry.geometry = i;
    geometry.dimensions = 1;
    geometry.global[0] = 1'024 * i;
    geometry.local[0] = 64;
    geometry.global[1] = geometry.global[2] = geometry.local[1] = geometry.local[2] = 1;
    add(RecordKind::geometry, geometry);
  }
  launch_api_ = add_string("clEnqueueNDRangeKernel");
  copy_api_ = add_string("clEnqueueReadBuffer");
  range_name_ = add_string("forward_pass");
}

void RecordLoad::add_step(std::uint64_t step) {
  const bool is_copy = step % 4 == 3;
  const std::uint64_t jitter = step * 0x9E37'79B9'7F4A'7C15u >> 54;  // below 1,024
  const std::uint64_t begin = kStartNs + 1'000'000 + step * 5'000 + jitter, enter = begin + 100;

  trace::AnnotationRecord range{};
  range.header.flags = static_cast<std::uint32_t>(probe::AnnotationType::begin);
  range.time_ns = begin;
  range.text = range_name_;
  range.thread = 1;
  add(RecordKind::annotation, range);
  trace::OperationSubmittedRecord submitted{};
  submitted.header.flags = static_cast<std::uint32_t>(is_copy ? probe::Command::read : probe::Command::ndrange_kernel)
                           << trace::kCommandShift;
  submitted.operation = trace::make_operation(1, step + 1);
  submitted.enter_ns = enter;
  submitted.exit_ns = enter + 700 + jitter / 4;
  submitted.queue = submitted.thread = 1;
  submitted.queue_sequence = static_cast<std::uint32_t>(step + 1);
  if (!is_copy) submitted.what = submitted.geometry = 1 + static_cast<std::uint32_t>(step % kKernels);
  submitted.api = is_copy ? copy_api_ : launch_api_;
  add(RecordKind::operation_submitted, submitted);
  range.header.flags = static_cast<std::uint32_t>(probe::AnnotationType::end);
  range.time_ns = submitted.exit_ns + 100;
  add(RecordKind::annotation, range);

  trace::OperationCompletedRecord completed{};
  completed.operation = submitted.operation;
  completed.queued = enter + 200;
  completed.submit = enter + 500 + jitter / 8;
  completed.start = enter + 1'500;
  completed.end = completed.start + 2'000 + jitter;
  completed.queue = 1;
  add(RecordKind::operation_completed, completed);
  if (is_copy) {
    trace::CopyDetailRecord copy{};
    copy.operation = submitted.operation;
    copy.bytes = 4'096 * (1 + jitter % 16);
    copy.direction = static_cast<std::uint8_t>(probe::CopyDirection::device_to_host);
    add(RecordKind::copy_detail, copy);
  }
  if (step % 100'000 == 0) {
    trace::ClockReadingRecord reading{};
    reading.device = 1;
    reading.domain = static_cast<std::uint32_t>(ClockDomain::monotonic);
    reading.host_before_ns = enter - 200;
    reading.device_ticks = enter - 100;
    reading.host_after_ns = enter;
    add(RecordKind::clock_reading, reading);
  }
}

}  // namespace xpu::bench
