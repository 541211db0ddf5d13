#include <atomic>
#include <cstring>

#include "base/external_correlation.hpp"
#include "base/mutex.hpp"
#include "trace/definitions.hpp"
#include "trace/entry.hpp"
#include "trace/fill_records.hpp"
#include "trace/operation_filter.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {
namespace {

using base::MutexLock;
using internal::Entry;
using internal::g_segment;
using internal::QuickEntry;
using internal::t_state;

constinit base::Mutex g_filter_mutex;
constinit OperationFilter g_filter;

/// A record that belongs to an operation, and nobody to write it: the only place left is the segment's header.
void count_in_header(std::uint64_t count) noexcept {
  if (Segment* segment = g_segment.load(std::memory_order_acquire)) {
    segment->header().lost_before_any_chunk.fetch_add(count, std::memory_order_relaxed);
  } else {
    internal::g_lost_before_segment.fetch_add(count, std::memory_order_relaxed);
  }
}

void definitions_are_missing() noexcept {
  if (Segment* segment = g_segment.load(std::memory_order_acquire)) segment->definitions_missing.store(true, std::memory_order_release);
}

/// Writes a record that is no operation. While the recording is paused nobody wants these.
template <typename Record>
void append_other(Record& record, std::uint32_t Record::* thread = nullptr) noexcept {
  const Entry entry;
  Writer* writer = entry.writer();
  if (writer == nullptr || writer->segment().is_paused()) return;
  if (thread != nullptr) record.*thread = writer->id();
  if (!writer->append(record)) writer->count_dropped({.flags = kFlagNotOperation});
}

// ---- the table's functions

bool is_inherited(probe::OperationId operation) noexcept { return operation_writer(operation) <= internal::g_inherited_writers; }

/// Operations that a signal handler submits while its thread is writing: never on record, but their ids must not be another's.
constexpr std::uint32_t kNestedWriter = 0xff'ffff;
constinit std::atomic<std::uint64_t> g_nested_operations{0};

bool is_off(const SegmentHeader& header) noexcept {
  return header.state.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(SegmentState::off);
}
[[gnu::always_inline]] inline bool is_wanted(const SegmentHeader& header, const probe::Operation& operation) noexcept {
  if (header.paused.load(std::memory_order_relaxed) != 0) return false;
  return g_filter.is_wanted(operation);
}

[[gnu::noinline]] probe::OperationId begin_slowly(const probe::Operation& operation) noexcept {
  const Entry entry;
  Writer* writer = entry.writer();
  if (writer == nullptr) {
    return entry.nested() ? make_operation(kNestedWriter, g_nested_operations.fetch_add(1, std::memory_order_relaxed) + 1) : 0;
  }
  if (is_off(writer->header())) return 0;
  if (!is_wanted(writer->header(), operation)) {
    writer->count_filtered();
    return 0;
  }
  return writer->next_operation();
}

probe::OperationId begin(const probe::Operation& operation) noexcept {
  {
    const QuickEntry entry;
    Writer* writer = entry.writer();
    // A segment that is off is paused as well.
    if (writer != nullptr && !writer->has_new_reader() && is_wanted(writer->header(), operation)) [[likely]]
      return writer->next_operation();
  }
  return begin_slowly(operation);
}

constinit std::atomic<std::uint32_t> g_rectangles{0};

probe::Id intern_long_pattern(const probe::CopyDetail* copy) noexcept {
  if (copy == nullptr || copy->pattern == nullptr || copy->pattern_bytes <= sizeof(CopyDetailRecord::pattern)) return 0;
  const std::string_view pattern(static_cast<const char*>(copy->pattern), copy->pattern_bytes);
  return t_state.idle != nullptr ? t_state.idle->intern_pattern(pattern) : probe::intern(pattern);
}

bool drop_submission(Writer* writer, probe::OperationId id, const probe::Operation& operation,
                     const probe::Submission& submission) noexcept {
  // A call that the driver refused submitted nothing.
  const bool refused = submission.queue_sequence == 0;
  if (writer == nullptr) {
    if (!refused) count_in_header(1);
    return false;
  }
  writer->count_dropped({.queue = refused ? 0 : operation.queue,
                         .flags = flag_if(refused, kFlagNotOperation),
                         .first_operation = id,
                         .last_operation = id,
                         .last_sequence = submission.queue_sequence});
  return false;
}

/// Everything that `submitted` leaves over: first records, chunk changes, new geometries, copies, refused calls, drops.
[[gnu::noinline]] bool submitted_slowly(probe::OperationId id, const probe::Operation& operation,
                                        const probe::Submission& submission) noexcept {
  // Interning publishes a text, so it comes before the entry.
  const probe::Id long_pattern = intern_long_pattern(operation.copy);
  const Entry entry;
  Writer* writer = entry.writer();
  if (writer == nullptr) [[unlikely]]
    return drop_submission(nullptr, id, operation, submission);
  if (submission.queue_sequence != 0) writer->note_sequence(operation.queue, submission.queue_sequence);

  std::uint32_t geometry = 0;
  bool geometry_is_new = false;
  if (operation.geometry != nullptr) geometry = writer->find_geometry(*operation.geometry, &geometry_is_new);
  // One reservation for all, so that an operation is recorded with its details or not at all.
  std::size_t bytes = sizeof(OperationSubmittedRecord) + probe::correlated_families() * sizeof(ExternalCorrelationRecord);
  if (geometry_is_new) bytes += sizeof(GeometryRecord);
  if (operation.graph_node != nullptr) bytes += sizeof(GraphNodeRecord);
  const probe::CopyDetail* copy = operation.copy;
  const probe::Rectangle* rectangle = nullptr;
  if (copy != nullptr) {
    rectangle = copy->rectangle;
    bytes += sizeof(CopyDetailRecord) + (rectangle != nullptr ? sizeof(RectangleRecord) : 0);
  }
  std::byte* place = writer->reserve(bytes);
  if (place == nullptr) [[unlikely]]
    return drop_submission(writer, id, operation, submission);

  if (geometry_is_new) [[unlikely]] {
    fill_geometry(*reinterpret_cast<GeometryRecord*>(place), geometry, *operation.geometry);
    writer->remember_geometry(*operation.geometry, geometry);
    place += sizeof(GeometryRecord);
  }
  place = fill_correlations(place, id, writer->id());
  if (operation.graph_node != nullptr) {
    fill_graph_node(*reinterpret_cast<GraphNodeRecord*>(place), id, *operation.graph_node);
    place += sizeof(GraphNodeRecord);
  }
  fill_submitted(*reinterpret_cast<OperationSubmittedRecord*>(place), id, operation, submission, geometry, writer->id());
  if (copy != nullptr) {
    place += sizeof(OperationSubmittedRecord);
    const std::uint32_t rectangle_id = rectangle == nullptr ? 0 : g_rectangles.fetch_add(1, std::memory_order_relaxed) + 1;
    fill_copy(*reinterpret_cast<CopyDetailRecord*>(place), id, *copy, rectangle_id, long_pattern);
    if (rectangle != nullptr) {
      place += sizeof(CopyDetailRecord);
      fill_rectangle(*reinterpret_cast<RectangleRecord*>(place), rectangle_id, copy->form, *rectangle);
    }
  }
  writer->commit(bytes);
  return true;
}

/// Asked as one question, because it is asked at every launch.
bool has_details(const probe::Operation& operation) noexcept {
  return (reinterpret_cast<std::uintptr_t>(operation.copy) | reinterpret_cast<std::uintptr_t>(operation.graph_node)) != 0;
}

bool submitted(probe::OperationId id, const probe::Operation& operation, const probe::Submission& submission) noexcept {
  {
    const QuickEntry entry;
    Writer* writer = entry.writer();
    if (writer != nullptr && !has_details(operation) && submission.result == 0 && probe::correlated_families() == 0 &&
        writer->has_room(sizeof(OperationSubmittedRecord)) && writer->note_sequence_quickly(operation.queue, submission.queue_sequence))
        [[likely]] {
      const std::uint32_t geometry = operation.geometry == nullptr ? 0 : writer->find_last_geometry(*operation.geometry);
      if (geometry != 0 || operation.geometry == nullptr) [[likely]] {
        const probe::Submission accepted{submission.exit_ns, 0, submission.queue_sequence};
        fill_submitted(*reinterpret_cast<OperationSubmittedRecord*>(writer->cursor()), id, operation, accepted, geometry, writer->id());
        writer->commit(sizeof(OperationSubmittedRecord));
        return true;
      }
    }
  }
  return submitted_slowly(id, operation, submission);
}

[[gnu::noinline]] void complete_slowly(probe::OperationId id, const probe::Completion& completion) noexcept {
  const Entry entry;
  Writer* writer = entry.writer();
  if (writer == nullptr) return count_in_header(1);
  std::byte* place = writer->reserve(sizeof(OperationCompletedRecord));
  if (place == nullptr) {
    return writer->count_dropped({.queue = completion.queue, .flags = kFlagCompletionLost, .first_operation = id, .last_operation = id});
  }
  fill_completed(*reinterpret_cast<OperationCompletedRecord*>(place), id, completion);
  writer->commit(sizeof(OperationCompletedRecord));
}

void complete(probe::OperationId id, const probe::Completion& completion) noexcept {
  if (is_inherited(id)) [[unlikely]]
    return;
  {
    const QuickEntry entry;
    Writer* writer = entry.writer();
    if (writer != nullptr && writer->has_room(sizeof(OperationCompletedRecord))) [[likely]] {
      fill_completed(*reinterpret_cast<OperationCompletedRecord*>(writer->cursor()), id, completion);
      writer->commit(sizeof(OperationCompletedRecord));
      return;
    }
  }
  complete_slowly(id, completion);
}

void lost(const probe::Loss& loss) noexcept {
  if (loss.first != 0 && is_inherited(loss.first)) [[unlikely]]
    return;
  const Entry entry;
  Writer* writer = entry.writer();
  if (writer == nullptr) return count_in_header(loss.count);
  LossRecord record{};
  record.header = header_of<LossRecord>(RecordKind::loss, kFlagCompletionLost);
  record.first_operation = loss.first;
  record.last_operation = loss.last;
  record.count = loss.count;
  record.time_ns = now_ns();
  record.queue = loss.queue;
  record.cause = static_cast<std::uint32_t>(loss.cause);
  if (writer->append(record)) return;
  writer->count_dropped({.queue = loss.queue,
                         .cause = loss.cause,
                         .flags = kFlagCompletionLost,
                         .first_operation = loss.first,
                         .last_operation = loss.last,
                         .count = loss.count});
}

void call_begin(probe::Id api, std::uint64_t enter_ns) noexcept {
  CallBeginRecord record{};
  record.header = header_of<CallBeginRecord>(RecordKind::call_begin);
  record.enter_ns = enter_ns;
  record.api = api;
  append_other(record, &CallBeginRecord::thread);
}

void call(const probe::Call& call) noexcept {
  ApiCallRecord record{};
  record.header = header_of<ApiCallRecord>(RecordKind::api_call, flag_if(call.result != 0, kFlagFailed));
  record.enter_ns = call.enter_ns;
  record.exit_ns = call.exit_ns;
  record.operation = call.operation;
  record.api = call.api;
  record.result = call.result;
  append_other(record, &ApiCallRecord::thread);
}

void wait(const probe::Wait& wait) noexcept {
  SynchronizationRecord record{};
  record.header = header_of<SynchronizationRecord>(RecordKind::synchronization, flag_if(wait.result != 0, kFlagFailed));
  record.enter_ns = wait.enter_ns;
  record.exit_ns = wait.exit_ns;
  record.handle = wait.handle;
  record.type = static_cast<std::uint32_t>(wait.type);
  record.api = wait.api;
  record.context = wait.context;
  record.queue = wait.queue;
  record.result = wait.result;
  record.wait_count = wait.wait_count;
  append_other(record, &SynchronizationRecord::thread);
}

void memory(const probe::MemoryEvent& event) noexcept {
  MemoryRecord record{};
  record.header = header_of<MemoryRecord>(RecordKind::memory);
  record.time_ns = event.time_ns;
  record.address = event.address;
  record.bytes = event.bytes;
  record.total = event.total_bytes;
  record.device = event.device;
  record.context = event.context;
  record.action = static_cast<std::uint8_t>(event.action);
  record.type = static_cast<std::uint8_t>(event.type);
  append_other(record, &MemoryRecord::thread);
}

void object_ended(probe::ObjectKind kind, probe::Id id) noexcept {
  const ObjectEndRecord record = encode_object_end(kind, id, now_ns(probe::clock_domain()));
  bool written = false, definition_is_missing = false;
  {
    const Entry entry;
    if (Writer* writer = entry.writer()) {
      written = writer->append(record);
      definition_is_missing = writer->segment().definitions_missing.load(std::memory_order_acquire);
    }
  }
  definitions().end(kind, id, record, !written || definition_is_missing);
  if (!written) definitions_are_missing();
}

void object(probe::ObjectKind kind, probe::Id id, probe::ObjectEvent event, const void* description) noexcept {
  if (event == probe::ObjectEvent::destroyed) return object_ended(kind, id);
  const std::vector<std::byte> record = encode_object(kind, id, description);
  if (record.empty()) return;
  // Into the list first: once it is said that something is missing, whoever writes the list must find this there.
  definitions().put(kind, id, record);
  // Behind that: whoever changes the filter meanwhile finds the object there, or this finds the new filter.
  if (kind == probe::ObjectKind::kernel || kind == probe::ObjectKind::queue) {
    const MutexLock lock(g_filter_mutex);
    if (kind == probe::ObjectKind::queue) {
      g_filter.queue_created(id);
    } else {
      g_filter.kernel_created(id, static_cast<const probe::KernelDescription*>(description)->name);
    }
  }
  const Entry entry;
  if (entry.writer() == nullptr || !entry.writer()->append_records(record)) definitions_are_missing();
}

void clock(const probe::ClockReading& reading) noexcept {
  ClockReadingRecord record{};
  record.header = header_of<ClockReadingRecord>(RecordKind::clock_reading, static_cast<std::uint32_t>(reading.method));
  record.host_before_ns = reading.host_before_ns;
  record.device_ticks = reading.device_ticks;
  record.host_after_ns = reading.host_after_ns;
  record.device = reading.device;
  record.domain = static_cast<std::uint32_t>(probe::clock_domain());
  record.error_ps = reading.error_ps;
  // Also while paused: what was submitted before is still completing, and its times need these.
  const Entry entry;
  if (entry.writer() != nullptr && !entry.writer()->append(record)) entry.writer()->count_dropped({.flags = kFlagNotOperation});
}

void annotate(const probe::Annotation& annotation) noexcept {
  AnnotationRecord record{};
  record.header = header_of<AnnotationRecord>(RecordKind::annotation, static_cast<std::uint32_t>(annotation.type));
  record.time_ns = annotation.time_ns;
  record.range = annotation.range;
  record.text = annotation.text.empty() ? 0 : probe::intern(annotation.text);
  record.value = annotation.value;
  append_other(record, &AnnotationRecord::thread);
}

void string(probe::Id id, std::string_view text) noexcept {
  if (t_state.naming) return;
  const Entry entry;
  if (entry.writer() == nullptr || !entry.writer()->append_string(id, text)) definitions_are_missing();
}

void communicate(const probe::Communication& communication) noexcept {
  CommunicationRecord record{};
  record.header = header_of<CommunicationRecord>(RecordKind::communication);
  record.begin_ns = communication.begin_ns;
  record.end_ns = communication.end_ns;
  record.send_bytes = communication.send_bytes;
  record.receive_bytes = communication.receive_bytes;
  record.communicator = communication.communicator;
  record.name = communication.name.empty() ? 0 : probe::intern(communication.name);
  append_other(record, &CommunicationRecord::thread);
}

void overhead(probe::OverheadType type, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t count) noexcept {
  OverheadRecord record{};
  record.header = header_of<OverheadRecord>(RecordKind::overhead);
  record.begin_ns = begin_ns;
  record.end_ns = end_ns;
  record.count = count;
  record.type = static_cast<std::uint32_t>(type);
  append_other(record, &OverheadRecord::thread);
}

constinit probe::Subscriber g_table = {
    .abi = probe::kAbi,
    .wanted = {0},
    .begin = begin,
    .submitted = submitted,
    .complete = complete,
    .lost = lost,
    .call_begin = call_begin,
    .call = call,
    .wait = wait,
    .memory = memory,
    .object = object,
    .clock = clock,
    .annotate = annotate,
    .communicate = communicate,
    .string = string,
    .overhead = overhead,
};

}  // namespace

const probe::Subscriber& internal::subscriber_table() noexcept { return g_table; }
bool internal::is_own_table(const probe::Subscriber* table) noexcept { return table == &g_table || table == &callback_table(); }
void internal::set_wanted(std::uint32_t wanted) noexcept {
  g_table.wanted.store(wanted, std::memory_order_relaxed);
  set_wanted_of_callback_table(wanted);
}
void internal::publish_flush(std::uint64_t begin_ns, std::uint64_t bytes) noexcept {
  if (bytes >= kChunkBytes) overhead(probe::OverheadType::buffer_flush, begin_ns, now_ns(probe::clock_domain()), 1);
}
std::uint32_t internal::wanted_now() noexcept { return g_table.wanted.load(std::memory_order_relaxed); }

bool internal::set_kernel_expression(const char* expression) noexcept { return g_filter.set_expression(expression); }
void internal::set_readers(std::vector<WantedOperations> readers) noexcept {
  const MutexLock lock(g_filter_mutex);
  g_filter.set_readers(std::move(readers));
  if (!g_filter.is_active()) return;
  const std::vector<std::byte> objects = definitions().copy();
  for_each_record(objects, [](const RecordHeader& header) {
    if (header.kind == static_cast<std::uint16_t>(RecordKind::queue)) {
      g_filter.queue_created(reinterpret_cast<const QueueRecord&>(header).queue);
    } else if (header.kind == static_cast<std::uint16_t>(RecordKind::kernel)) {
      const auto& kernel = reinterpret_cast<const KernelRecord&>(header);
      g_filter.kernel_created(kernel.what, probe::text_of(kernel.name));
    }
  });
}
void internal::lock_kernel_filter_for_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { g_filter_mutex.lock(); }
void internal::unlock_kernel_filter_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { g_filter_mutex.unlock(); }

}  // namespace xpu::trace
