#include "trace/recording/column_schema.hpp"

namespace xpu::trace {
namespace {

constexpr FieldColumn column(std::size_t offset, std::size_t bytes, Prediction first, Prediction second, std::size_t reference = 0) {
  FieldColumn made;
  made.offset = static_cast<std::uint8_t>(offset);
  made.bytes = static_cast<std::uint8_t>(bytes);
  made.reference = static_cast<std::uint8_t>(reference);
  made.candidates = {first, second};
  made.candidate_count = 2;
  return made;
}

// A value of its own: repeated, counted up, or one of a few.
constexpr FieldColumn value(std::size_t offset, std::size_t bytes) {
  return column(offset, bytes, Prediction::previous, Prediction::nothing);
}
// A time or size close to another field of the same record; 0 where it is not known.
constexpr FieldColumn near(std::size_t offset, std::size_t reference) {
  return column(offset, 8, Prediction::reference, Prediction::nothing, reference);
}
// Counts up per queue.
constexpr FieldColumn counter(std::size_t offset, std::size_t key) {
  FieldColumn made = column(offset, 4, Prediction::previous_of_key, Prediction::previous);
  made.key = static_cast<std::uint8_t>(key);
  return made;
}
constexpr FieldColumn length(std::size_t offset, std::size_t start) {
  FieldColumn made = column(offset, 8, Prediction::reference, Prediction::reference, start);
  made.candidate_count = 1;
  made.is_length = true;
  return made;
}
constexpr FieldColumn start_of_interval(std::size_t offset, std::size_t reference, std::size_t end, std::size_t key) {
  FieldColumn made = column(offset, 8, Prediction::reference, Prediction::end_before_of_key, reference);
  made.candidates[2] = Prediction::nothing;
  made.candidate_count = 3;
  made.end = static_cast<std::uint8_t>(end);
  made.key = static_cast<std::uint8_t>(key);
  return made;
}
constexpr FieldColumn flags() { return value(offsetof(RecordHeader, flags), 4); }

#define XPU_VALUE(record, field) value(offsetof(record, field), sizeof(record::field))
#define XPU_NEAR(record, field, other) near(offsetof(record, field), offsetof(record, other))

constexpr FieldColumn kSubmitted[] = {
    flags(),
    XPU_VALUE(OperationSubmittedRecord, operation),
    XPU_VALUE(OperationSubmittedRecord, enter_ns),
    XPU_NEAR(OperationSubmittedRecord, exit_ns, enter_ns),
    XPU_VALUE(OperationSubmittedRecord, queue),
    counter(offsetof(OperationSubmittedRecord, queue_sequence), offsetof(OperationSubmittedRecord, queue)),
    XPU_VALUE(OperationSubmittedRecord, what),
    XPU_VALUE(OperationSubmittedRecord, geometry),
    XPU_VALUE(OperationSubmittedRecord, thread),
    XPU_VALUE(OperationSubmittedRecord, api),
    XPU_VALUE(OperationSubmittedRecord, result),
    XPU_VALUE(OperationSubmittedRecord, stack),
};
constexpr FieldColumn kCompleted[] = {
    flags(),
    XPU_VALUE(OperationCompletedRecord, operation),
    XPU_VALUE(OperationCompletedRecord, queue),
    XPU_VALUE(OperationCompletedRecord, status),
    XPU_VALUE(OperationCompletedRecord, queued),
    XPU_NEAR(OperationCompletedRecord, submit, queued),
    length(offsetof(OperationCompletedRecord, end), offsetof(OperationCompletedRecord, start)),
    start_of_interval(offsetof(OperationCompletedRecord, start), offsetof(OperationCompletedRecord, submit),
                      offsetof(OperationCompletedRecord, end), offsetof(OperationCompletedRecord, queue)),
};
constexpr FieldColumn kCopyDetail[] = {
    flags(),
    XPU_VALUE(CopyDetailRecord, operation),
    XPU_VALUE(CopyDetailRecord, bytes),
    XPU_VALUE(CopyDetailRecord, source),
    XPU_VALUE(CopyDetailRecord, destination),
    value(offsetof(CopyDetailRecord, source_type), 4),
    XPU_VALUE(CopyDetailRecord, peer_device),
    XPU_VALUE(CopyDetailRecord, rectangle),
    XPU_VALUE(CopyDetailRecord, pattern_bytes),
    XPU_VALUE(CopyDetailRecord, pattern),
};
constexpr FieldColumn kCallBegin[] = {
    flags(),
    XPU_VALUE(CallBeginRecord, enter_ns),
    XPU_VALUE(CallBeginRecord, api),
    XPU_VALUE(CallBeginRecord, thread),
};
constexpr FieldColumn kApiCall[] = {
    flags(),
    XPU_VALUE(ApiCallRecord, enter_ns),
    XPU_NEAR(ApiCallRecord, exit_ns, enter_ns),
    XPU_VALUE(ApiCallRecord, operation),
    XPU_VALUE(ApiCallRecord, api),
    XPU_VALUE(ApiCallRecord, result),
    XPU_VALUE(ApiCallRecord, thread),
    XPU_VALUE(ApiCallRecord, reserved),
};
constexpr FieldColumn kSynchronization[] = {
    flags(),
    XPU_VALUE(SynchronizationRecord, enter_ns),
    XPU_NEAR(SynchronizationRecord, exit_ns, enter_ns),
    XPU_VALUE(SynchronizationRecord, handle),
    XPU_VALUE(SynchronizationRecord, type),
    XPU_VALUE(SynchronizationRecord, api),
    XPU_VALUE(SynchronizationRecord, context),
    XPU_VALUE(SynchronizationRecord, queue),
    XPU_VALUE(SynchronizationRecord, result),
    XPU_VALUE(SynchronizationRecord, wait_count),
    XPU_VALUE(SynchronizationRecord, thread),
    XPU_VALUE(SynchronizationRecord, reserved),
};
constexpr FieldColumn kMemory[] = {
    flags(),
    XPU_VALUE(MemoryRecord, time_ns),
    XPU_VALUE(MemoryRecord, address),
    XPU_VALUE(MemoryRecord, bytes),
    XPU_VALUE(MemoryRecord, total),
    XPU_VALUE(MemoryRecord, device),
    XPU_VALUE(MemoryRecord, context),
    value(offsetof(MemoryRecord, action), 4),
    XPU_VALUE(MemoryRecord, thread),
    XPU_VALUE(MemoryRecord, stack),
    XPU_VALUE(MemoryRecord, stream),
};
constexpr FieldColumn kAnnotation[] = {
    flags(),
    XPU_VALUE(AnnotationRecord, time_ns),
    XPU_VALUE(AnnotationRecord, range),
    XPU_VALUE(AnnotationRecord, text),
    XPU_VALUE(AnnotationRecord, thread),
    XPU_VALUE(AnnotationRecord, value),
};
constexpr FieldColumn kExternalCorrelation[] = {
    flags(),
    XPU_VALUE(ExternalCorrelationRecord, operation),
    XPU_VALUE(ExternalCorrelationRecord, external_id),
    XPU_VALUE(ExternalCorrelationRecord, family),
    XPU_VALUE(ExternalCorrelationRecord, thread),
};
constexpr FieldColumn kClockReading[] = {
    flags(),
    XPU_VALUE(ClockReadingRecord, host_before_ns),
    XPU_VALUE(ClockReadingRecord, device_ticks),
    XPU_NEAR(ClockReadingRecord, host_after_ns, host_before_ns),
    XPU_VALUE(ClockReadingRecord, device),
    XPU_VALUE(ClockReadingRecord, domain),
    XPU_VALUE(ClockReadingRecord, error_ps),
    XPU_VALUE(ClockReadingRecord, reserved),
};
constexpr FieldColumn kOverhead[] = {
    flags(),
    XPU_VALUE(OverheadRecord, begin_ns),
    XPU_NEAR(OverheadRecord, end_ns, begin_ns),
    XPU_VALUE(OverheadRecord, count),
    XPU_VALUE(OverheadRecord, type),
    XPU_VALUE(OverheadRecord, thread),
    XPU_VALUE(OverheadRecord, reserved),
};
constexpr FieldColumn kGraphNode[] = {
    flags(),
    XPU_VALUE(GraphNodeRecord, operation),
    XPU_VALUE(GraphNodeRecord, graph),
    XPU_VALUE(GraphNodeRecord, node),
};
constexpr FieldColumn kCommunication[] = {
    flags(),
    XPU_VALUE(CommunicationRecord, operation),
    XPU_VALUE(CommunicationRecord, begin_ns),
    XPU_NEAR(CommunicationRecord, end_ns, begin_ns),
    XPU_VALUE(CommunicationRecord, send_bytes),
    XPU_NEAR(CommunicationRecord, receive_bytes, send_bytes),
    XPU_VALUE(CommunicationRecord, communicator),
    XPU_VALUE(CommunicationRecord, name),
    XPU_VALUE(CommunicationRecord, thread),
};

#undef XPU_VALUE
#undef XPU_NEAR

// Kinds that a program writes by the thousand. The others come a few times per object: as they are, deflated.
constexpr RecordSchema kSchemas[] = {
    {RecordKind::operation_submitted, sizeof(OperationSubmittedRecord), kSubmitted},
    {RecordKind::operation_completed, sizeof(OperationCompletedRecord), kCompleted},
    {RecordKind::copy_detail, sizeof(CopyDetailRecord), kCopyDetail},
    {RecordKind::call_begin, sizeof(CallBeginRecord), kCallBegin},
    {RecordKind::api_call, sizeof(ApiCallRecord), kApiCall},
    {RecordKind::synchronization, sizeof(SynchronizationRecord), kSynchronization},
    {RecordKind::memory, sizeof(MemoryRecord), kMemory},
    {RecordKind::annotation, sizeof(AnnotationRecord), kAnnotation},
    {RecordKind::external_correlation, sizeof(ExternalCorrelationRecord), kExternalCorrelation},
    {RecordKind::clock_reading, sizeof(ClockReadingRecord), kClockReading},
    {RecordKind::overhead, sizeof(OverheadRecord), kOverhead},
    {RecordKind::graph_node, sizeof(GraphNodeRecord), kGraphNode},
    {RecordKind::communication, sizeof(CommunicationRecord), kCommunication},
};

// Every byte after kind and size belongs to exactly one column, or records would not come back bit for bit.
constexpr bool covers_every_byte(const RecordSchema& schema) {
  std::array<int, 256> covered{};
  for (const FieldColumn& field : schema.columns) {
    for (std::size_t byte = field.offset; byte < std::size_t{field.offset} + field.bytes; ++byte) ++covered[byte];
    if (field.bytes != 4 && field.bytes != 8) return false;
  }
  for (std::size_t byte = 0; byte < covered.size(); ++byte) {
    const bool inside = byte >= offsetof(RecordHeader, flags) && byte < schema.bytes;
    if (covered[byte] != (inside ? 1 : 0)) return false;
  }
  return true;
}
constexpr bool all_cover_every_byte() {
  for (const RecordSchema& schema : kSchemas) {
    if (!covers_every_byte(schema)) return false;
  }
  return true;
}
static_assert(all_cover_every_byte());

}  // namespace

const RecordSchema* find_schema(std::uint16_t kind) noexcept {
  for (const RecordSchema& schema : kSchemas) {
    if (static_cast<std::uint16_t>(schema.kind) == kind) return &schema;
  }
  return nullptr;
}

std::span<const RecordSchema> all_schemas() noexcept { return kSchemas; }

}  // namespace xpu::trace
