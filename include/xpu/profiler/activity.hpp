#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "xpu/base/export.hpp"
#include "xpu/profiler/activity_kind.hpp"
#include "xpu/profiler/cpu_trace.hpp"
#include "xpu/profiler/definitions.hpp"
#include "xpu/profiler/external_id.hpp"

/// What happened: one structure per kind of activity, plain data, valid while the handler that receives it runs (the definitions live
/// longer). All times are host nanoseconds of the recording's clock domain.
namespace xpu::profiler {

/// What a command does on its device.
enum class Command : std::uint8_t {
  other = 0,
  ndrange_kernel = 1,
  task_kernel = 2,
  native_kernel = 3,
  read = 4,
  write = 5,
  copy = 6,
  fill = 7,
  map = 8,
  unmap = 9,
  migrate = 10,
  marker = 11,
  barrier = 12,
  shared_free = 13,
  command_buffer = 14,
  acquire_external = 15,
  release_external = 16,
};
/// "ndrange_kernel", "read", … ; "other" for numbers of a later version.
XPU_EXPORT std::string_view to_string(Command command) noexcept;

enum class CopyDirection : std::uint8_t {
  unknown = 0,
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 3,
  host_to_host = 4,
  peer = 5
};
enum class MemoryType : std::uint8_t { unknown = 0, host = 1, device = 2, shared = 3, pinned = 4, image = 5 };
XPU_EXPORT std::string_view to_string(MemoryType type) noexcept;

/// What became of a command.
enum class CommandState : std::uint8_t {
  completed,
  failed,      ///< It ended with an error.
  unfinished,  ///< It was still running when the process ended.
  pending,     ///< Submitted, and nothing was heard of it again.
  lost,        ///< Submitted, and its completion was dropped: counted in a loss.
  refused,     ///< The driver refused the call: there never was a command.
};

struct Activity {
  std::int64_t start_ns = 0;
  std::uint64_t duration_ns = 0;
  /// Joins a call with its command, unique over all processes of a recording, counted from 1 in the order in which activities are handed
  /// out.
  std::uint32_t correlation = 0;
  const ProcessDefinition* process = nullptr;
};

/// A call of the device API on the host.
struct RuntimeActivity : Activity {
  const ThreadDefinition* thread = nullptr;
  const NameDefinition* api = nullptr;
  std::int32_t result = 0;
  bool submits = false;  ///< It submitted, or tried to submit, a command.
  bool failed = false;
  bool duration_known = true;  ///< False: only the entry is on record (`--device-only`, or the process died inside).
  /// Of the work that it submits; they live until the next `flush` or as long as the definitions.
  std::span<const ExternalId> external_ids = {};
};

/// A call of a driver below the API that the program itself uses: of Level Zero.
struct DriverActivity : RuntimeActivity {};

/// What the program called the work of the call that comes next and of its command: once per family, with their correlation.
struct ExternalCorrelationActivity : Activity {
  const ThreadDefinition* thread = nullptr;
  ExternalId external;
};

/// What the framework did on the host, as it transferred it: `Session::transfer_cpu_trace`. These live as long as the definitions.
struct CpuOperationActivity : Activity {
  const ThreadDefinition* thread = nullptr;
  const NameDefinition* name = nullptr;
  ActivityKind kind = ActivityKind::cpu_op;  ///< `cpu_op`, `user_annotation`, `cpu_instant_event` or `python_function`.
  bool is_finished = true;                   ///< False: it had not ended, and the end is that of the profile.
  std::optional<ExternalId> external_id;
  std::optional<CpuFlow> flow;  ///< Of an arrow whose start and one end, at least, are shown.
  std::span<const CpuArgument> arguments = {};
  /// The innermost `user_annotation` of its thread around it, or null.
  const CpuOperationActivity* annotation = nullptr;
};

/// A node of a graph or of a command buffer, by the numbers of the library that replays it.
struct GraphNode {
  std::uint64_t graph = 0, node = 0;
};

/// What all commands on a device have in common.
///
/// `start_ns` is mapped from the device's clock and is right within `error_ns`; so it may lie before the entry of its call by up to that
/// much. `duration_ns` comes from the device's ticks alone and carries no mapping error.
struct DeviceActivity : Activity {
  const QueueDefinition* queue = nullptr;
  const RuntimeActivity* call = nullptr;  ///< The submitting call, or null when it is not on record, or not wanted.
  /// What the program called it, also where the call is not told; they live as long as those of a call.
  std::span<const ExternalId> external_ids = {};
  /// The framework's operation that submitted it and the annotation in which it did, by external id; null when none of that id was
  /// transferred. They may be of kinds that are not wanted.
  const CpuOperationActivity *operation = nullptr, *annotation = nullptr;
  /// The innermost range of `xpu/annotate.h` in which the call was made, or null.
  const RangeDefinition* range = nullptr;
  std::optional<GraphNode> graph_node;  ///< That was replayed.
  Command command = Command::other;
  CommandState state = CommandState::completed;
  std::int32_t native_status = 0;
  bool timed = false;  ///< `duration_ns` is known.
  /// `start_ns` is known as well. Without it `start_ns` is time of the device's own clock, good for differences only.
  bool placed = false;
  bool ends_late = false;  ///< Surely after the profile was stopped, where that is on record.
  std::uint64_t error_ns = 0;
  std::optional<std::int64_t> queued_ns, submitted_ns;  ///< When the driver took it, and when the device got it.
  /// 0, or the row beside its queue's own on which it overlaps nothing: commands of one queue that ran at the same time have different
  /// lanes.
  std::uint32_t lane = 0;
  /// By how much a picture must move the start to the right, so that rounding and drift do not make neighbours on a row overlap; at most
  /// `error_ns`.
  std::uint32_t nudge_ns = 0;
};

struct KernelActivity : DeviceActivity {
  const KernelDefinition* kernel = nullptr;
  const GeometryDefinition* geometry = nullptr;  ///< Or null.
};

/// read, write, copy, map, unmap and migrate.
struct MemcpyActivity : DeviceActivity {
  CopyDirection direction = CopyDirection::unknown;
  MemoryType source = MemoryType::unknown, destination = MemoryType::unknown;
  std::optional<std::uint64_t> bytes;
};

/// A copy from one device's memory to another's.
struct PeerMemcpyActivity : MemcpyActivity {
  const DeviceDefinition* peer = nullptr;  ///< The device at the other end than the queue's; null = unknown.
};

struct MemsetActivity : DeviceActivity {
  MemoryType destination = MemoryType::unknown;
  std::optional<std::uint64_t> bytes;
};

/// Every other command: markers, barriers, frees, command buffers.
struct CommandActivity : DeviceActivity {};

/// What one queue did for an annotation of the program or of the framework: from the start of the first command that was submitted in it,
/// or in one inside of it, to the end of the last one. Markers and barriers do nothing.
struct DeviceAnnotationActivity : Activity {
  const QueueDefinition* queue = nullptr;
  std::string_view name;
  std::optional<ExternalId> external_id;  ///< Of a framework's annotation.
  std::uint64_t commands = 0;             ///< That are in it.
  /// The row, from 0: those of one queue and one row lie in each other or beside each other, the outer one is told first.
  std::uint32_t lane = 0;
};

/// Kinds of waiting on the host.
enum class WaitType : std::uint32_t { unknown = 0, queue = 1, events = 2, blocking_call = 3, device = 4, stream_on_event = 5 };
XPU_EXPORT std::string_view to_string(WaitType type) noexcept;

struct SynchronizationActivity : Activity {
  const ThreadDefinition* thread = nullptr;
  const NameDefinition* api = nullptr;
  const QueueDefinition* queue = nullptr;  ///< Null = unknown or several.
  WaitType type = WaitType::unknown;
  std::uint32_t context = 0;
  std::uint32_t wait_count = 0;
  std::int32_t result = 0;
};

/// What recording took its time for: what it did within the program's calls, memory for records, handing them over in the program, asking a
/// driver for times.
enum class OverheadType : std::uint32_t { time = 0, unknown = 1, resource = 2, buffer_flush = 3, driver = 4 };
XPU_EXPORT std::string_view to_string(OverheadType type) noexcept;

/// Time that recording itself took. `time` is sampled: it stands for `count` calls.
struct OverheadActivity : Activity {
  OverheadType type = OverheadType::time;
  const ThreadDefinition* thread = nullptr;
  std::uint64_t count = 1;
};

/// A collective or a message between programs, as the library that communicated told it.
struct CommunicationActivity : Activity {
  const ThreadDefinition* thread = nullptr;
  const NameDefinition* name = nullptr;
  std::uint64_t communicator = 0;
  std::uint64_t send_bytes = 0, receive_bytes = 0;
};

/// An allocation or a release, at `start_ns`.
struct MemoryActivity : Activity {
  const ThreadDefinition* thread = nullptr;  ///< Null = unknown.
  bool allocates = true;
  MemoryType type = MemoryType::device;
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t alive_bytes = 0;  ///< In this context, after the event.
  std::uint32_t context = 0;      ///< In its process.
};

/// What the program said about itself.
struct AnnotationActivity : Activity {
  enum class Type : std::uint8_t { range, mark, counter };
  Type type = Type::mark;
  const ThreadDefinition* thread = nullptr;
  const NameDefinition* text = nullptr;
  double value = 0;            ///< Of a counter.
  bool duration_known = true;  ///< False for a range that was never closed, or a close without an opening (then a mark of no length).
};

/// Records that were dropped, at `start_ns`.
struct LossActivity : Activity {
  bool commands = true;                    ///< False: of calls, waits, memory, annotations.
  const QueueDefinition* queue = nullptr;  ///< Null = unknown.
  std::uint32_t cause = 0;
  std::uint64_t count = 0;
};

}  // namespace xpu::profiler
