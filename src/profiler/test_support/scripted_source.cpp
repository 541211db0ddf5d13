#include "profiler/test_support/scripted_source.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

namespace xpu::profiler::test_support {

using trace::RecordKind;

ScriptedSource::ScriptedSource() {
  manifest_.program = "./program";
  manifest_.argv = {"./program", "--fast"};
  manifest_.start_monotonic_ns = 1'000;
  manifest_.start_realtime_ns = 1'700'000'000'000'000'000;
  manifest_.end = {true, 0, 0, 2'000'000, 30'000};
}

std::size_t ScriptedSource::add_process(std::uint64_t pid, std::string_view name, std::int32_t rank) {
  trace::ProcessInfo info;
  info.pid = pid;
  info.start_ns = manifest_.start_monotonic_ns;
  info.state = trace::SegmentState::closed;
  processes_.push_back(info);
  counters_.emplace_back();

  std::vector<std::byte> bytes(sizeof(trace::ProcessRecord) + (name.size() + 7) / 8 * 8);
  trace::ProcessRecord record{};
  record.header = {static_cast<std::uint16_t>(RecordKind::process), static_cast<std::uint16_t>(bytes.size()), 0};
  record.pid = static_cast<std::uint32_t>(pid);
  record.rank = rank;
  record.name_bytes = static_cast<std::uint32_t>(name.size());
  std::memcpy(bytes.data(), &record, sizeof record);
  std::memcpy(bytes.data() + sizeof record, name.data(), name.size());
  append(bytes.data(), bytes.size());
  return processes_.size() - 1;
}

std::uint32_t ScriptedSource::add_string(std::string_view text) {
  Counters& counters = counters_.back();
  for (const auto& [known, id] : counters.texts) {
    if (known == text) return id;
  }
  std::vector<std::byte> bytes(sizeof(trace::StringRecord) + (text.size() + 7) / 8 * 8);
  trace::StringRecord record{};
  record.header = {static_cast<std::uint16_t>(RecordKind::string), static_cast<std::uint16_t>(bytes.size()), 0};
  record.id = ++counters.strings;
  record.bytes = static_cast<std::uint32_t>(text.size());
  std::memcpy(bytes.data(), &record, sizeof record);
  std::memcpy(bytes.data() + sizeof record, text.data(), text.size());
  append(bytes.data(), bytes.size());
  counters.texts.emplace_back(text, record.id);
  return record.id;
}

void ScriptedSource::add_thread(std::uint32_t writer, std::uint32_t os_thread, std::string_view name) {
  trace::ThreadRecord record{};
  record.thread = writer;
  record.os_thread = os_thread;
  record.name = name.empty() ? 0 : add_string(name);
  add(RecordKind::thread, record);
}

std::uint32_t ScriptedSource::add_device(std::string_view name, std::string_view driver, std::uint32_t numerator, std::uint32_t denominator,
                                         std::uint32_t valid_bits) {
  trace::DeviceRecord record{};
  record.device = ++counters_.back().devices;
  record.name = add_string(name);
  record.driver = add_string(driver);
  record.tick_numerator = numerator;
  record.tick_denominator = denominator;
  record.valid_bits = valid_bits;
  record.clock_domain = static_cast<std::uint32_t>(ClockDomain::monotonic);
  add(RecordKind::device, record);
  return record.device;
}

std::uint32_t ScriptedSource::add_device(trace::DeviceRecord record, std::string_view name, std::string_view driver,
                                         const std::vector<std::pair<trace::FactKey, std::uint64_t>>& numbers, std::string_view vendor,
                                         std::string_view driver_version) {
  record.device = ++counters_.back().devices;
  record.name = add_string(name);
  record.driver = add_string(driver);
  add(RecordKind::device, record);
  const auto add_fact = [&](trace::FactKey key, trace::FactType type, std::uint64_t value) {
    trace::FactRecord fact{};
    fact.subject = record.device;
    fact.key = static_cast<std::uint32_t>(key);
    fact.type = static_cast<std::uint32_t>(type);
    fact.value = value;
    add(RecordKind::fact, fact);
  };
  for (const auto& [key, value] : numbers) add_fact(key, trace::FactType::number, value);
  if (!vendor.empty()) add_fact(trace::FactKey::device_vendor, trace::FactType::text, add_string(vendor));
  if (!driver_version.empty()) add_fact(trace::FactKey::device_driver_version, trace::FactType::text, add_string(driver_version));
  return record.device;
}

std::uint32_t ScriptedSource::add_queue(std::uint32_t device, bool out_of_order, std::uint32_t context) {
  trace::QueueRecord record{};
  record.queue = ++counters_.back().queues;
  record.device = device;
  record.context = context;
  record.header.flags = out_of_order ? trace::kFlagQueueOutOfOrder : 0;
  record.native = 0x1000 + record.queue;
  add(RecordKind::queue, record);
  return record.queue;
}

std::uint32_t ScriptedSource::add_kernel(std::string_view name) {
  trace::KernelRecord record{};
  record.what = ++counters_.back().kernels;
  record.name = add_string(name);
  add(RecordKind::kernel, record);
  return record.what;
}

std::uint32_t ScriptedSource::add_geometry(std::uint64_t global, std::uint64_t local) {
  trace::GeometryRecord record{};
  record.geometry = ++counters_.back().geometries;
  record.dimensions = 1;
  record.global[0] = global;
  record.global[1] = record.global[2] = 1;
  record.local[0] = local;
  record.local[1] = record.local[2] = local == 0 ? 0 : 1;
  add(RecordKind::geometry, record);
  return record.geometry;
}

void ScriptedSource::add_reading(std::uint32_t device, std::uint64_t host_ns, std::uint64_t ticks, std::uint64_t bracket_ns,
                                 probe::ClockMethod method) {
  trace::ClockReadingRecord record{};
  record.device = device;
  record.device_ticks = ticks;
  record.host_before_ns = host_ns - bracket_ns / 2;
  record.host_after_ns = host_ns + bracket_ns / 2;
  record.domain = static_cast<std::uint32_t>(ClockDomain::monotonic);
  record.header.flags = static_cast<std::uint32_t>(method);
  add(RecordKind::clock_reading, record);
}

std::uint64_t ScriptedSource::add_command(const ScriptedCommand& command) {
  Counters& counters = counters_.back();
  const bool is_kernel = command.command <= probe::Command::native_kernel && command.command != probe::Command::other;

  trace::OperationSubmittedRecord submitted{};
  submitted.operation = trace::make_operation(command.writer, ++counters.operations[command.writer]);
  submitted.header.flags = static_cast<std::uint32_t>(command.command) << trace::kCommandShift;
  submitted.enter_ns = command.enter_ns;
  submitted.exit_ns = command.exit_ns;
  submitted.queue = command.queue;
  submitted.queue_sequence = command.result == 0 ? ++counters.sequences[command.queue] : 0;
  submitted.what = is_kernel ? command.kernel : 0;
  submitted.geometry = command.geometry;
  submitted.thread = command.writer;
  submitted.api = add_string(is_kernel ? "clEnqueueNDRangeKernel" : "clEnqueueCommand");
  submitted.result = command.result;
  if (command.result != 0) submitted.header.flags |= trace::kFlagFailed;
  add(RecordKind::operation_submitted, submitted);

  if (command.bytes != 0) {
    trace::CopyDetailRecord detail{};
    detail.operation = submitted.operation;
    detail.bytes = command.bytes;
    detail.direction = static_cast<std::uint8_t>(command.direction);
    detail.source_type = static_cast<std::uint8_t>(command.source);
    detail.destination_type = static_cast<std::uint8_t>(command.destination);
    add(RecordKind::copy_detail, detail);
  }
  if (command.start != 0 || command.end != 0 || command.completion_flags != 0) {
    trace::OperationCompletedRecord completed{};
    completed.operation = submitted.operation;
    completed.header.flags = command.completion_flags;
    completed.queued = command.queued;
    completed.submit = command.submit;
    completed.start = command.start;
    completed.end = command.end;
    completed.queue = command.queue;
    completed.status = command.status;
    add(RecordKind::operation_completed, completed);
  }
  return submitted.operation;
}

void ScriptedSource::add_call(std::string_view api, std::uint64_t enter_ns, std::uint64_t exit_ns, std::int32_t result,
                              std::uint32_t writer) {
  trace::ApiCallRecord record{};
  record.api = add_string(api);
  record.enter_ns = enter_ns;
  record.exit_ns = exit_ns;
  record.result = result;
  record.thread = writer;
  add(RecordKind::api_call, record);
}

void ScriptedSource::add_call_begin(std::string_view api, std::uint64_t enter_ns, std::uint32_t writer) {
  trace::CallBeginRecord record{};
  record.api = add_string(api);
  record.enter_ns = enter_ns;
  record.thread = writer;
  add(RecordKind::call_begin, record);
}

void ScriptedSource::add_wait(std::string_view api, probe::WaitType type, std::uint64_t enter_ns, std::uint64_t exit_ns,
                              std::uint32_t queue, std::uint32_t writer) {
  trace::SynchronizationRecord record{};
  record.api = add_string(api);
  record.type = static_cast<std::uint32_t>(type);
  record.enter_ns = enter_ns;
  record.exit_ns = exit_ns;
  record.queue = queue;
  record.thread = writer;
  add(RecordKind::synchronization, record);
}

void ScriptedSource::add_memory(probe::MemoryAction action, std::uint64_t time_ns, std::uint64_t bytes, std::uint64_t total,
                                std::uint32_t context) {
  trace::MemoryRecord record{};
  record.action = static_cast<std::uint8_t>(action);
  record.type = static_cast<std::uint8_t>(probe::MemoryType::device);
  record.time_ns = time_ns;
  record.bytes = bytes;
  record.total = total;
  record.context = context;
  add(RecordKind::memory, record);
}

void ScriptedSource::add_annotation(probe::AnnotationType type, std::uint64_t time_ns, std::string_view text, double value,
                                    std::uint32_t writer) {
  trace::AnnotationRecord record{};
  record.header.flags = static_cast<std::uint32_t>(type);
  record.time_ns = time_ns;
  record.text = add_string(text);
  record.value = value;
  record.thread = writer;
  add(RecordKind::annotation, record);
}

void ScriptedSource::add_overhead(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t count, std::uint32_t writer,
                                  std::uint32_t type) {
  trace::OverheadRecord record{};
  record.begin_ns = begin_ns;
  record.end_ns = end_ns;
  record.count = count;
  record.type = type;
  record.thread = writer;
  add(RecordKind::overhead, record);
}

void ScriptedSource::add_communication(std::uint64_t begin_ns, std::uint64_t end_ns, const char* name, std::uint32_t writer) {
  trace::CommunicationRecord record{};
  record.begin_ns = begin_ns;
  record.end_ns = end_ns;
  record.send_bytes = 1'024;
  record.receive_bytes = 2'048;
  record.communicator = 9;
  record.name = add_string(name);
  record.thread = writer;
  add(RecordKind::communication, record);
}

void ScriptedSource::add_loss(const trace::LossRecord& loss) { add(RecordKind::loss, loss); }

void ScriptedSource::add_simple_process(std::uint64_t pid) {
  add_process(pid);
  add_thread(1, static_cast<std::uint32_t>(pid));
  add_queue(add_device("device"));
  add_kernel("kernel");
  add_reading(1, 1'000, 1'000);
  add_reading(1, 10'001'000, 10'001'000);
}

void ScriptedSource::shuffle(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::shuffle(records_.begin(), records_.end(), random);
}

Result<> ScriptedSource::for_each_batch(std::span<const RecordKind> kinds, const Visitor& visit) const {
  for (const Record& record : records_) {
    const auto& header = reinterpret_cast<const trace::RecordHeader&>(record.words.front());
    if (std::find(kinds.begin(), kinds.end(), static_cast<RecordKind>(header.kind)) == kinds.end()) continue;
    visit(record.process, std::as_bytes(std::span(record.words)));
  }
  return {};
}

void ScriptedSource::append(const std::byte* bytes, std::size_t count) {
  Record record{processes_.size() - 1, std::vector<std::uint64_t>(count / 8)};
  std::memcpy(record.words.data(), bytes, count);
  records_.push_back(std::move(record));
}

}  // namespace xpu::profiler::test_support
