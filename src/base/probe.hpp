#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"

/// The probe: the one table through which everything that happens is *published* by whoever does it (interceptors, the runtime,
/// `xpu/annotate.h`) and *subscribed* to by the trace. Publisher and subscriber know this header and not each other.
///
/// A publisher's hot path, complete:
///
///     const probe::Subscriber* listener = probe::subscriber();          // one acquire load; null when nobody listens
///     if (listener == nullptr || probe::inside_scope()) return driver_call(...);
///     Operation operation{...};  operation.enter_ns = now;
///     const u64 id = listener->begin(operation);                        // 0: not wanted, nothing more is called for it
///     const result = driver_call(...);
///     const bool recorded = listener->submitted(id, operation, {exit_ns, result, success ? ++queue.sequence : 0});
///     if (success && recorded) remember {id, native event};             // later, from any thread, exactly once:
///     listener->complete(id, {queue, status, ticks});
///
/// Rules. A table, once installed, is never freed, so a publisher may use the pointer that it loaded for as long as it likes;
/// after `unsubscribe` the functions still work and do nothing. Every function is callable from any thread, never throws, never
/// blocks on a driver and never calls back into the publisher. Texts and structures are copied before a function returns.
namespace xpu::probe {

/// Raised with any change to this header. Returned by `xpu_probe_abi()`.
inline constexpr std::uint32_t kAbi = 2;

using Id = std::uint32_t;           ///< Of an object or string: per process, from 1; 0 = unknown.
using OperationId = std::uint64_t;  ///< Writer id in the upper 24 bits, counter below; 0 = not wanted.

/// What an operation does on the device. The numbers are written to recordings: never reuse one.
enum class Command : std::uint8_t {
  other = 0,
  ndrange_kernel = 1,  ///< These three are kernels; `Operation::kernel` names them.
  task_kernel = 2,
  native_kernel = 3,
  read = 4,  ///< Device memory to host memory.
  write = 5,
  copy = 6,
  fill = 7,
  map = 8,
  unmap = 9,
  migrate = 10,
  marker = 11,
  barrier = 12,
  shared_free = 13,  ///< clEnqueueSVMFree and the like.
  command_buffer = 14,
  acquire_external = 15,
  release_external = 16,
};

/// Flags of an operation, in the low bits of `Operation::flags`; written to recordings.
enum OperationFlag : std::uint32_t {
  kOutOfOrderQueue = 1u << 2,
  kUserEvent = 1u << 3,  ///< The program asked for an event itself.
  kInsideCommandBuffer = 1u << 6,
};

/// Sizes of an index space; unused dimensions of `global` and `local` are 1, of `offset` 0. A `local` of all zeros is the driver's choice.
struct Geometry {
  std::uint32_t dimensions = 0;
  std::uint32_t reserved = 0;
  std::uint64_t offset[3] = {0, 0, 0};
  std::uint64_t global[3] = {1, 1, 1};
  std::uint64_t local[3] = {0, 0, 0};
};

/// Where memory lies, as far as the publisher knows.
enum class MemoryType : std::uint8_t { unknown = 0, host = 1, device = 2, shared = 3, pinned = 4, image = 5 };
enum class CopyDirection : std::uint8_t {
  unknown = 0,
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 3,
  host_to_host = 4,
  peer = 5
};
enum class CopyForm : std::uint8_t { linear = 0, rectangle = 1, image = 2, pattern = 3 };

/// Origins and region in bytes (x), rows and slices for buffers; in pixels for images. Pitches: source row, source slice, destination row,
/// destination slice, in bytes, 0 = packed.
struct Rectangle {
  std::uint64_t origins[2][3] = {{0, 0, 0}, {0, 0, 0}};
  std::uint64_t region[3] = {0, 0, 0};
  std::uint64_t pitches[4] = {0, 0, 0, 0};
};

struct CopyDetail {
  std::uint64_t bytes = 0;
  std::uint64_t source = 0;       ///< Address or native handle; 0 = none.
  std::uint64_t destination = 0;  ///< Likewise.
  MemoryType source_type = MemoryType::unknown;
  MemoryType destination_type = MemoryType::unknown;
  CopyDirection direction = CopyDirection::unknown;
  CopyForm form = CopyForm::linear;
  Id peer_device = 0;
  const Rectangle* rectangle = nullptr;  ///< Or null.
  const void* pattern = nullptr;         ///< Fill value, or null.
  std::uint32_t pattern_bytes = 0;
};

/// Which node of a graph, or of a command buffer, is replayed. Numbers are the publisher's, unique in the process.
struct GraphNode {
  std::uint64_t graph = 0, node = 0;
};

/// One submitting call, filled in before the driver call.
struct Operation {
  std::uint64_t enter_ns = 0;  ///< Host clock of `clock_domain()`, before the driver call.
  Id queue = 0;
  Id api = 0;     ///< String id (`intern`) of the API function's name.
  Id kernel = 0;  ///< Object id, for kernels.
  Command command = Command::other;
  std::uint32_t flags = 0;                ///< OperationFlag.
  const Geometry* geometry = nullptr;     ///< Or null.
  const CopyDetail* copy = nullptr;       ///< Or null.
  const GraphNode* graph_node = nullptr;  ///< Or null.
};

/// What the driver answered to a submitting call.
struct Submission {
  std::uint64_t exit_ns = 0;         ///< After the driver call; 0 when `kHostExitTimes` is not wanted.
  std::int32_t result = 0;           ///< Native return code; 0 = success.
  std::uint32_t queue_sequence = 0;  ///< From 1 per queue, counted after success only; 0 when the driver refused the call.
};

/// Raw device stamps, in ticks of the device's clock.
struct Ticks {
  std::uint64_t queued = 0, submit = 0, start = 0, end = 0;
};

enum class CompletionStatus : std::uint8_t {
  ok = 0,
  failed = 1,      ///< The command ended with an error; `native_status` says which.
  untimed = 2,     ///< It ended, but the driver gave no times.
  unfinished = 3,  ///< Still running when the process ended: no end is known.
};

struct Completion {
  Id queue = 0;
  CompletionStatus status = CompletionStatus::ok;
  bool clamped = false;  ///< The driver's times were impossible (end before start) and were corrected.
  std::int32_t native_status = 0;
  Ticks ticks;
};

/// Why an operation has no record. The numbers are written to recordings.
enum class LossCause : std::uint32_t {
  no_chunk = 1,              ///< No memory to write into: the recorder was too slow, or dead.
  ring_full = 2,             ///< Too many commands were pending at once.
  driver_refused_event = 3,  ///< The driver accepted the command and gave no event.
  driver_lost_times = 4,
  layer_off = 5,  ///< Recording was switched off in this process.
  fork = 6,       ///< Pending in the parent when the child was made.
};

/// `count` operations of `queue` whose completion will never be published, though they were submitted.
struct Loss {
  Id queue = 0;
  LossCause cause = LossCause::ring_full;
  OperationId first = 0, last = 0;
  std::uint64_t count = 0;
};

/// A call that submits nothing; published after it returned.
struct Call {
  std::uint64_t enter_ns = 0, exit_ns = 0;
  Id api = 0;
  std::int32_t result = 0;
  OperationId operation = 0;  ///< The operation that it belongs to, or 0.
};

enum class WaitType : std::uint32_t { queue = 1, events = 2, blocking_call = 3, device = 4, stream_on_event = 5 };
struct Wait {
  std::uint64_t enter_ns = 0, exit_ns = 0;
  std::uint64_t handle = 0;  ///< Native handle of what was waited for, for a person to compare.
  WaitType type = WaitType::queue;
  Id api = 0, context = 0, queue = 0;  ///< 0 = unknown or several.
  std::int32_t result = 0;
  std::uint32_t wait_count = 0;  ///< Events waited for.
};

enum class MemoryAction : std::uint8_t { allocate = 0, release = 1 };
struct MemoryEvent {
  std::uint64_t time_ns = 0;
  std::uint64_t address = 0;  ///< Address or native handle; pairs allocate with release.
  std::uint64_t bytes = 0;
  std::uint64_t total_bytes = 0;  ///< Alive in this context after the event.
  Id device = 0, context = 0;     ///< 0 = unknown.
  MemoryAction action = MemoryAction::allocate;
  MemoryType type = MemoryType::device;
};

enum class AnnotationType : std::uint32_t { begin = 0, end = 1, mark = 2, counter = 3, name_queue = 4, name_thread = 5 };
struct Annotation {
  std::uint64_t time_ns = 0;
  std::uint64_t range = 0;  ///< Native handle for name_queue, else 0.
  AnnotationType type = AnnotationType::mark;
  std::string_view text;
  double value = 0;  ///< Counters.
};

/// A collective or a message between programs, as the library that did it tells it. When it is over.
struct Communication {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint64_t send_bytes = 0, receive_bytes = 0;
  std::uint64_t communicator = 0;  ///< Whatever number the library has for it.
  std::string_view name;
};

/// What recording took its time for; written to recordings. `time` is sampled, and stands for a number of calls; others are told each time.
enum class OverheadType : std::uint32_t {
  time = 0,          ///< Within the program's calls.
  resource = 2,      ///< Memory for records.
  buffer_flush = 3,  ///< Handing records to whoever wants them, in the program.
  driver = 4,        ///< Asking a driver for times.
};

/// How a clock reading was made; written to recordings.
enum class ClockMethod : std::uint32_t { device_timer = 1, host_clock = 2, command_bracket = 3, native = 4 };
/// "Some time between `host_before_ns` and `host_after_ns` the device clock showed `device_ticks`", give or take `error_ps`.
struct ClockReading {
  std::uint64_t host_before_ns = 0, host_after_ns = 0;
  std::uint64_t device_ticks = 0;
  Id device = 0;
  ClockMethod method = ClockMethod::device_timer;
  std::uint32_t error_ps = 0;
};

enum class ObjectKind : std::uint32_t { device = 1, context = 2, queue = 3, module = 4, kernel = 5, memory = 6, count = 7 };
enum class ObjectEvent : std::uint32_t { created = 1, destroyed = 2 };

struct DeviceDescription {
  Id parent = 0;
  std::string_view name, driver;  ///< "pthread-EPYC", "PoCL 3.1".
  std::uint8_t uuid[16] = {};     ///< All zero = unknown.
  std::uint32_t pci_domain = 0;
  std::uint8_t pci[4] = {};                                ///< Bus, device, function, 0.
  std::uint32_t tick_numerator = 1, tick_denominator = 1;  ///< Nanoseconds per tick = numerator / denominator.
  std::uint32_t valid_bits = 64;                           ///< Of the tick counter; it wraps at 2^valid_bits.
  /// The host clock that the device clock *is*, or `unknown`; may be published again when it becomes known.
  ClockDomain clock_domain = ClockDomain::unknown;
  std::uint64_t native = 0;
  // What the driver tells of it; empty and 0 where it does not.
  std::string_view vendor = {}, driver_version = {};
  std::uint64_t total_memory_bytes = 0, max_allocation_bytes = 0, local_memory_bytes = 0;
  std::uint64_t max_work_group_size = 0;
  std::uint32_t compute_units = 0, max_clock_mhz = 0;
};
struct ContextDescription {
  std::uint64_t native = 0;
  std::uint32_t device_count = 0;
  const Id* devices = nullptr;
};
struct QueueDescription {
  Id context = 0, device = 0;
  std::uint64_t properties = 0;  ///< As the program set them.
  std::uint64_t native = 0;
  std::int32_t priority = 0;
  bool out_of_order = false;
  std::uint32_t published_before = 0;  ///< Sequence numbers already used when this description is published.
};
struct ModuleDescription {
  Id context = 0;
  std::string_view name;
  std::uint64_t source_bytes = 0, hash = 0;
};
struct KernelDescription {
  std::string_view name;
  Id module = 0, device = 0;
  std::uint64_t native = 0;
  std::uint32_t local_bytes = 0, private_bytes = 0;
  std::uint32_t sub_group = 0;  ///< 0 = the driver does not tell.
};

/// What the subscriber wants to be told (`Subscriber::wanted`).
enum Wanted : std::uint32_t {
  kOperations = 1u << 0,
  kHostExitTimes = 1u << 1,  ///< Fill in `Submission::exit_ns` (one more clock read per launch).
  kAllTicks = 1u << 2,       ///< All four device stamps; without it queued and submit may be 0.
  kWaits = 1u << 3,
  kCalls = 1u << 4,  ///< Every other API call.
  kMemory = 1u << 5,
  kAnnotations = 1u << 6,  ///< And communication.
};

/// The subscriber's table. `wanted` may change at any time (pause, resume).
struct Subscriber {
  std::uint32_t abi = kAbi;
  std::atomic<std::uint32_t> wanted{0};

  OperationId (*begin)(const Operation&) = nullptr;
  /// True when recorded; false: forget it, no completion is expected.
  bool (*submitted)(OperationId, const Operation&, const Submission&) = nullptr;
  void (*complete)(OperationId, const Completion&) = nullptr;
  void (*lost)(const Loss&) = nullptr;
  /// Before a driver call, when kCalls is wanted, so that a hang inside the driver has a name.
  void (*call_begin)(Id api, std::uint64_t enter_ns) = nullptr;
  void (*call)(const Call&) = nullptr;
  void (*wait)(const Wait&) = nullptr;
  void (*memory)(const MemoryEvent&) = nullptr;
  /// `description` points to the Description structure of `kind` (created; may be repeated with newer facts), or is null (destroyed).
  void (*object)(ObjectKind, Id, ObjectEvent, const void* description) = nullptr;
  void (*clock)(const ClockReading&) = nullptr;
  void (*annotate)(const Annotation&) = nullptr;
  void (*communicate)(const Communication&) = nullptr;
  /// A text was interned; also called for every text that exists when the subscriber is installed.
  void (*string)(Id, std::string_view) = nullptr;
  /// The time that recording itself took: for what, begin, end, calls that it stands for.
  void (*overhead)(OverheadType type, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t count) = nullptr;
};

namespace internal {
XPU_EXPORT extern std::atomic<const Subscriber*> g_subscriber;
// Initial-exec: one load, and no call that could allocate on a thread's first use, even where libxpu.so was loaded late.
XPU_EXPORT extern constinit thread_local std::uint32_t t_scope_depth __attribute__((tls_model("initial-exec")));
}  // namespace internal

/// Null when nobody listens.
inline const Subscriber* subscriber() noexcept { return internal::g_subscriber.load(std::memory_order_acquire); }

/// Installs the one subscriber; false when there is one already. The table must live for ever. Calls `string` for every existing text
/// and then every registered `republish`. Thread-safe.
XPU_EXPORT bool subscribe(const Subscriber* table) noexcept;
/// Removes it. Calls that are under way finish in the old table.
XPU_EXPORT void unsubscribe() noexcept;
/// The subscriber goes on with another table: nothing is published again, and operations end in the table in which they began. False, and
/// nothing happens, when `from` is not installed.
XPU_EXPORT bool replace_table(const Subscriber* from, const Subscriber* to) noexcept;

/// A publisher's function that publishes its living objects again (devices, contexts, queues, kernels). Called from `subscribe` and from
/// `republish_all`, which a subscriber uses in a forked child or at resume. At most 16 publishers; never unregistered.
XPU_EXPORT bool register_publisher(void (*republish)()) noexcept;
XPU_EXPORT void republish_all() noexcept;

/// A publisher's function that publishes what has ended by now and was not yet published, without waiting for what has not, and reads the
/// clocks of devices in use. `harvest_all` calls all of them: whoever wants to see everything that is finished calls it first. At most 16;
/// never unregistered. They may call drivers; no lock of the caller's may be held.
XPU_EXPORT bool register_harvester(void (*harvest)()) noexcept;
XPU_EXPORT void harvest_all() noexcept;

/// Who may publish in this process, in bits: a publisher says so when it is able to, and is for the life of the process.
enum PublisherKind : std::uint32_t { kRuntimePublishes = 1u << 0, kOpenClLayerPublishes = 1u << 1 };
XPU_EXPORT void announce_publisher(PublisherKind kind) noexcept;
XPU_EXPORT std::uint32_t announced_publishers() noexcept;

/// A new id for an object of this kind: 1, 2, … per process.
XPU_EXPORT Id new_object_id(ObjectKind kind) noexcept;

/// The id of a text: the same text gives the same id for the life of the process; texts are never freed. Any bytes. 0 only when out of
/// memory. Takes a lock: for object creation and start-up, never per launch.
XPU_EXPORT Id intern(std::string_view text) noexcept;
/// The text of an id, with a NUL behind it; empty, and null, for an unknown one.
XPU_EXPORT std::string_view text_of(Id id) noexcept;
/// Calls `visit(id, text)` for every text.
XPU_EXPORT void for_each_text(void (*visit)(Id, std::string_view, void* user), void* user) noexcept;

/// The domain of all host times that publishers hand over.
inline constexpr ClockDomain clock_domain() noexcept { return ClockDomain::monotonic; }

/// While one lives on a thread, publishers below (an interceptor in the driver that the runtime calls) publish nothing for this thread:
/// the work has one source, the one that opened the scope.
class Scope {
 public:
  Scope() noexcept { ++internal::t_scope_depth; }
  ~Scope() { --internal::t_scope_depth; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
};
/// Lifts every scope of this thread for its life: round user code that a driver runs.
class ScopeSuspended {
 public:
  ScopeSuspended() noexcept : saved_(internal::t_scope_depth) { internal::t_scope_depth = 0; }
  ~ScopeSuspended() { internal::t_scope_depth = saved_; }
  ScopeSuspended(const ScopeSuspended&) = delete;
  ScopeSuspended& operator=(const ScopeSuspended&) = delete;

 private:
  std::uint32_t saved_;
};
inline bool inside_scope() noexcept { return internal::t_scope_depth != 0; }

}  // namespace xpu::probe
