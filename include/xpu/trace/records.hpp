#pragma once

#include <cstddef>
#include <cstdint>

/// Wire records: what threads write, what files hold, what the profiler reads (docs/formats.md section 1).
///
/// Each record begins with a `RecordHeader` and its size is a multiple of 8; none holds a pointer. Ids are per process from 1, 0 =
/// unknown. An operation is a u64: writer id in the upper 24 bits, counter below; a writer is a thread. Host times are nanoseconds of
/// the segment's clock domain, device times raw ticks. Kinds and fields are only ever appended: a reader steps over what it does not
/// know by `size`, and accepts records that are longer than its own structure.
namespace xpu::trace {

enum class RecordKind : std::uint16_t {
  string = 1,
  process = 2,
  thread = 3,
  device = 4,
  context = 5,
  queue = 6,
  module = 7,
  kernel = 8,
  geometry = 9,
  fact = 10,
  object_end = 11,
  operation_submitted = 16,
  operation_completed = 17,
  copy_detail = 18,
  rectangle = 19,
  communication = 20,
  graph_node = 21,
  call_begin = 23,
  api_call = 24,
  synchronization = 25,
  memory = 26,
  external_correlation = 32,
  annotation = 33,
  stack = 34,
  clock_reading = 40,
  loss = 48,
  overhead = 49,
  session = 50,
};

/// Flags of operation_submitted and operation_completed. The upper 8 bits of operation_submitted hold the `probe::Command`.
enum RecordFlag : std::uint32_t {
  kFlagFailed = 1u << 0,
  kFlagUntimed = 1u << 1,
  kFlagOutOfOrderQueue = 1u << 2,
  kFlagUserEvent = 1u << 3,
  kFlagClamped = 1u << 4,
  kFlagUnfinishedAtExit = 1u << 5,
  kFlagInsideCommandBuffer = 1u << 6,
  kFlagExitUnknown = 1u << 7,
};
inline constexpr std::uint32_t kCommandShift = 24;

/// Flag of a string record whose text goes on in the next record with the same id.
inline constexpr std::uint32_t kFlagContinues = 1u << 0;
/// Longest text of one string record, in bytes.
inline constexpr std::size_t kMaxStringBytes = 65'000;

/// Flag of a loss record: the *completion* was dropped, the submission is on record. Without it the submission was dropped (then there is
/// no completion either) and `last_sequence` counts for `submitted`.
inline constexpr std::uint32_t kFlagCompletionLost = 1u << 0;
/// Flag of a loss record: what was dropped were records that are no operations (waits, calls, memory, annotations, …). They are reported,
/// and stay out of the books of submitted operations.
inline constexpr std::uint32_t kFlagNotOperation = 1u << 1;

inline constexpr std::uint32_t operation_writer(std::uint64_t operation) { return static_cast<std::uint32_t>(operation >> 40); }
inline constexpr std::uint64_t operation_counter(std::uint64_t operation) { return operation & ((std::uint64_t{1} << 40) - 1); }
inline constexpr std::uint64_t make_operation(std::uint32_t writer, std::uint64_t counter) { return std::uint64_t{writer} << 40 | counter; }

struct RecordHeader {
  std::uint16_t kind;
  std::uint16_t size;  ///< Bytes of the whole record, header included.
  std::uint32_t flags;
};

/// Whether the record describes something that others refer to, and is not something that happened.
inline constexpr bool describes(const RecordHeader& header) {
  return header.kind < static_cast<std::uint16_t>(RecordKind::operation_submitted) ||
         header.kind == static_cast<std::uint16_t>(RecordKind::clock_reading);
}

struct StringRecord {
  RecordHeader header;
  std::uint32_t id;
  std::uint32_t bytes;  ///< Of the text that follows, padded to 8.
};

struct ProcessRecord {
  RecordHeader header;
  std::uint32_t pid, parent;
  std::uint64_t start_ns;
  std::int32_t rank;         ///< -1 = none.
  std::uint32_t name_bytes;  ///< Of the program's name that follows, padded to 8.
};

struct ThreadRecord {
  RecordHeader header;
  std::uint32_t thread;  ///< Writer id.
  std::uint32_t os_thread;
  std::uint32_t name;  ///< String id, 0 = none.
  std::uint32_t process;
};

struct DeviceRecord {
  RecordHeader header;
  std::uint32_t device, parent, name, driver;
  std::uint8_t uuid[16];
  std::uint32_t pci_domain;
  std::uint8_t pci[4];
  std::uint32_t tick_numerator, tick_denominator, valid_bits;
  std::uint32_t clock_domain;  ///< xpu::ClockDomain; 0 = unknown.
  std::uint64_t native;
};

struct ContextRecord {
  RecordHeader header;
  std::uint32_t context;
  std::uint32_t device_count;  ///< Device ids (u32) follow, padded to 8.
  std::uint64_t native;
};

struct QueueRecord {
  RecordHeader header;
  std::uint32_t queue, context, device, name;
  std::uint64_t properties, native;
  std::int32_t priority;
  std::uint32_t published_before;
};
/// Flag of a queue record: commands may run in any order.
inline constexpr std::uint32_t kFlagQueueOutOfOrder = 1u << 0;

struct ModuleRecord {
  RecordHeader header;
  std::uint32_t module, context, name, reserved;
  std::uint64_t source_bytes, hash;
};

struct KernelRecord {
  RecordHeader header;
  std::uint32_t what, name, module, device;
  std::uint64_t native;
  std::uint32_t local_bytes, private_bytes;
  std::uint32_t sub_group;  ///< 0 = unknown.
  std::uint32_t reserved;
};

struct GeometryRecord {
  RecordHeader header;
  std::uint32_t geometry, dimensions;
  std::uint64_t offset[3], global[3], local[3];
};

/// Keys of facts; numbers are never given again. These are of a device, whose id is the `subject`; they stand behind its record.
enum class FactKey : std::uint32_t {
  device_vendor = 1,
  device_driver_version = 2,
  device_total_memory_bytes = 3,
  device_max_allocation_bytes = 4,
  device_local_memory_bytes = 5,
  device_max_work_group_size = 6,
  device_compute_units = 7,
  device_max_clock_mhz = 8,
};
/// What the `value` of a fact is.
enum class FactType : std::uint32_t { number = 1, text = 2 };

struct FactRecord {
  RecordHeader header;
  std::uint64_t subject;
  std::uint32_t key, type;
  std::uint64_t value;
};

struct ObjectEndRecord {
  RecordHeader header;
  std::uint32_t kind, id;
  std::uint64_t time_ns;
};

struct OperationSubmittedRecord {
  RecordHeader header;
  std::uint64_t operation;
  std::uint64_t enter_ns, exit_ns;
  std::uint32_t queue, queue_sequence;
  std::uint32_t what;  ///< Kernel id for kernels, else a string id or 0 (the command is in the flags).
  std::uint32_t geometry;
  std::uint32_t thread;
  std::uint32_t api;  ///< String id of the API function's name.
  std::int32_t result;
  std::uint32_t stack;
};

struct OperationCompletedRecord {
  RecordHeader header;
  std::uint64_t operation;
  std::uint64_t queued, submit, start, end;
  std::uint32_t queue;
  std::int32_t status;  ///< Native status of a failed command.
};

struct CopyDetailRecord {
  RecordHeader header;
  std::uint64_t operation;
  std::uint64_t bytes, source, destination;
  std::uint8_t source_type, destination_type, direction, form;  ///< probe::MemoryType twice, CopyDirection, CopyForm.
  std::uint32_t peer_device;
  std::uint32_t rectangle;
  std::uint32_t pattern_bytes;
  std::uint64_t pattern;  ///< The bytes, little end first; over 8 bytes a string id.
};

struct RectangleRecord {
  RecordHeader header;
  std::uint32_t id, form;
  std::uint64_t origins[2][3], region[3], pitches[4];
};

struct CallBeginRecord {
  RecordHeader header;
  std::uint64_t enter_ns;
  std::uint32_t api, thread;
};

struct ApiCallRecord {
  RecordHeader header;
  std::uint64_t enter_ns, exit_ns;
  std::uint64_t operation;
  std::uint32_t api;
  std::int32_t result;
  std::uint32_t thread;
  std::uint32_t reserved;
};

struct SynchronizationRecord {
  RecordHeader header;
  std::uint64_t enter_ns, exit_ns, handle;
  std::uint32_t type, api, context, queue;
  std::int32_t result;
  std::uint32_t wait_count;
  std::uint32_t thread;
  std::uint32_t reserved;
};

struct MemoryRecord {
  RecordHeader header;
  std::uint64_t time_ns, address, bytes, total;
  std::uint32_t device, context;
  std::uint8_t action, type, reserved[2];  ///< probe::MemoryAction, probe::MemoryType.
  std::uint32_t thread;                    ///< 0 = unknown.
  std::uint32_t stack, stream;             ///< Not written yet.
};

/// What the program called the operation that is submitted next on this thread; written directly before it.
struct ExternalCorrelationRecord {
  RecordHeader header;
  std::uint64_t operation;
  std::uint64_t external_id;
  std::uint32_t family;  ///< probe::CorrelationFamily.
  std::uint32_t thread;
};

struct AnnotationRecord {
  RecordHeader header;  ///< Flags: probe::AnnotationType.
  std::uint64_t time_ns, range;
  std::uint32_t text, thread;
  double value;
};

struct ClockReadingRecord {
  RecordHeader header;  ///< Flags: probe::ClockMethod.
  std::uint64_t host_before_ns, device_ticks, host_after_ns;
  std::uint32_t device;
  std::uint32_t domain;  ///< Of the host times.
  std::uint32_t error_ps;
  std::uint32_t reserved;
};

struct LossRecord {
  RecordHeader header;  ///< Flags: kFlagCompletionLost.
  std::uint64_t first_operation, last_operation, count, time_ns;
  std::uint32_t queue, last_sequence;
  std::uint32_t cause;
  std::uint32_t reserved;
};

/// Directly before its operation.
struct GraphNodeRecord {
  RecordHeader header;
  std::uint64_t operation;
  std::uint64_t graph, node;
};

struct CommunicationRecord {
  RecordHeader header;
  std::uint64_t operation;  ///< 0: none.
  std::uint64_t begin_ns, end_ns;
  std::uint64_t send_bytes, receive_bytes;
  std::uint64_t communicator;
  std::uint32_t name, thread;
};

/// `type` is a `probe::OverheadType`.
struct OverheadRecord {
  RecordHeader header;
  std::uint64_t begin_ns, end_ns;
  std::uint32_t count, type, thread, reserved;
};

enum class SessionEvent : std::uint32_t { start = 1, stop = 2, pause = 3, resume = 4, flush = 5 };
struct SessionRecord {
  RecordHeader header;
  std::uint64_t time_ns;
  std::uint32_t what, mask;
  std::uint64_t reserved;
};

static_assert(sizeof(RecordHeader) == 8);
static_assert(sizeof(StringRecord) == 16);
static_assert(sizeof(ProcessRecord) == 32);
static_assert(sizeof(ThreadRecord) == 24);
static_assert(sizeof(DeviceRecord) == 72);
static_assert(sizeof(ContextRecord) == 24);
static_assert(sizeof(QueueRecord) == 48);
static_assert(sizeof(ModuleRecord) == 40);
static_assert(sizeof(KernelRecord) == 48);
static_assert(sizeof(GeometryRecord) == 88);
static_assert(sizeof(FactRecord) == 32);
static_assert(sizeof(ObjectEndRecord) == 24);
static_assert(sizeof(OperationSubmittedRecord) == 64);
static_assert(sizeof(OperationCompletedRecord) == 56);
static_assert(sizeof(CopyDetailRecord) == 64);
static_assert(sizeof(RectangleRecord) == 120);
static_assert(sizeof(CallBeginRecord) == 24);
static_assert(sizeof(ApiCallRecord) == 48);
static_assert(sizeof(SynchronizationRecord) == 64);
static_assert(sizeof(MemoryRecord) == 64);
static_assert(sizeof(ExternalCorrelationRecord) == 32);
static_assert(sizeof(AnnotationRecord) == 40);
static_assert(sizeof(ClockReadingRecord) == 48);
static_assert(sizeof(LossRecord) == 56);
static_assert(sizeof(OverheadRecord) == 40);
static_assert(sizeof(CommunicationRecord) == 64);
static_assert(sizeof(GraphNodeRecord) == 32);
static_assert(sizeof(SessionRecord) == 32);
static_assert(offsetof(OperationSubmittedRecord, queue) == 32 && offsetof(OperationSubmittedRecord, stack) == 60);
static_assert(offsetof(OperationCompletedRecord, queued) == 16 && offsetof(OperationCompletedRecord, status) == 52);

}  // namespace xpu::trace
