#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/sinks/perfetto_fields.hpp"
#include "profiler/sinks/proto_writer.hpp"
#include "profiler/time_difference.hpp"
#include "xpu/profiler/sink.hpp"

/// What a Perfetto trace says once and then only numbers: rows (tracks), names, specifications of queues and stages.
namespace xpu::profiler {

/// Names of arguments. The ones that Chrome's JSON has as well are the same there, up to times: those are absolute there.
enum class ArgumentName : std::uint8_t {
  correlation,
  result,
  end,
  waits_for,
  queue,
  events,
  stands_for_calls,
  bytes,
  bandwidth,
  global,
  offset,
  queued_before_ns,
  submitted_before_ns,
  clock_error_ns,
  moved_ns,
  state,
  status,
  shared_memory,
  private_memory,
  sub_group_size,
  lost,
  pending,
  without_times,
  without_place,
  completions_without_call,
  external_id,
  finished,
  commands,
  discarded_cpu_traces,
  discarded_cpu_operations,
  dangling_flow_ends,
  communicator,
  bytes_sent,
  bytes_received,
  graph_id,
  graph_node_id,
};
/// Its number on the packet sequence.
constexpr std::uint32_t id_of(ArgumentName name) { return static_cast<std::uint32_t>(name) + 1; }

enum class Category : std::uint8_t {
  xpu_runtime,
  xpu_sync,
  overhead,
  user_annotation,
  xpu_lost,
  xpu_recording,
  cpu_op,
  cpu_instant_event,
  python_function,
  collective_comm
};
constexpr std::uint32_t id_of(Category category) { return static_cast<std::uint32_t>(category) + 1; }

/// Readers take texts for UTF-8; what is not becomes U+FFFD.
std::string valid_utf8(std::string_view text);

/// Numbers them in the order of their first use and writes each, before the number is handed out, as a packet of its own: nothing here may
/// be called while a packet is being written. One owner at a time.
class PerfettoRows {
 public:
  explicit PerfettoRows(ProtoWriter& out) : out_(out) {}

  /// The head of the file: the clock, and names that are known beforehand. `origin_ns` on the time axis is the first packet's.
  void begin(const SessionInfo& info);

  /// A packet of the time `ns` of the recording's clock; what is written from here to `end_packet` are its further fields.
  [[nodiscard, gnu::always_inline]] ProtoWriter::Message begin_packet(std::int64_t ns) {
    const std::int64_t since_start = difference_ns(ns, epoch_ns_);
    if (since_start < 0) [[unlikely]]
      return begin_early_packet(ns);
    return out_.begin(perfetto::kPacket, perfetto::packet::kSequenceId, kSequence, perfetto::packet::kSequenceFlags,
                      perfetto::packet::kNeedsIncrementalState, perfetto::packet::kTimestamp, since_start);
  }
  [[gnu::always_inline]] void end_packet(ProtoWriter::Message packet) {
    out_.end(packet);
    out_.flush_when_full();
  }

  // Tracks, by UUID. They are counted from 1, which keeps events small.
  std::uint64_t track(const ProcessDefinition& process);
  std::uint64_t track(const ThreadDefinition& thread) {
    const std::uint64_t track = known(thread_tracks_, thread.index);
    return track != 0 ? track : new_track_of(thread);
  }
  std::uint64_t overhead_track(const ThreadDefinition& thread);
  std::uint64_t loss_track(const ProcessDefinition& process);
  std::uint64_t recording_track();
  std::uint64_t memory_counter(const ProcessDefinition& process, std::uint32_t context);
  std::uint64_t counter(const ProcessDefinition& process, const NameDefinition& name);

  // Numbers of interned things.
  std::uint64_t event_name(const NameDefinition& name) {
    const std::uint64_t id = known(event_names_, name.index);
    return id != 0 ? id : new_event_name(name);
  }
  std::uint64_t string_value(std::string_view text);
  std::uint64_t context_of(const QueueDefinition& queue) {
    const std::uint64_t id = known(queue_contexts_, queue.index);
    return id != 0 ? id : new_context_of(queue);
  }
  std::uint64_t hardware_queue(const QueueDefinition& queue, std::uint32_t lane) {
    const std::uint64_t id = queue.index < hardware_queues_.size() ? known(hardware_queues_[queue.index], lane) : 0;
    return id != 0 ? id : new_hardware_queue(queue, lane);
  }
  /// Beside the queue's own: what it did for annotations.
  std::uint64_t annotation_queue(const QueueDefinition& queue, std::uint32_t lane);
  std::uint64_t annotation_stage(std::string_view name);
  std::uint64_t stage(const KernelDefinition& kernel) {
    const std::uint64_t id = known(kernel_stages_, kernel.index);
    return id != 0 ? id : new_stage(kernel);
  }
  std::uint64_t stage(const MemcpyActivity& copy);
  std::uint64_t stage(const MemsetActivity& fill);
  std::uint64_t stage(const CommandActivity& command);
  std::uint64_t compute_kernel(const KernelDefinition& kernel) {
    const std::uint64_t id = known(compute_kernels_, kernel.index);
    return id != 0 ? id : new_compute_kernel(kernel);
  }
  /// Further fields of a launch: what a collective says of the kernels that it submits. Empty for any other operation.
  std::string collective_fields(const CpuOperationActivity& operation);
  /// Fields of a launch: groups and the size of one, and what Perfetto has no fields for. Valid until the next call.
  std::string_view launch_fields(const GeometryDefinition& geometry) {
    if (geometry.index < geometries_.size() && !geometries_[geometry.index].empty()) return geometries_[geometry.index];
    return new_launch_fields(geometry);
  }

 private:
  static std::uint64_t known(const std::vector<std::uint64_t>& ids, std::size_t index) { return index < ids.size() ? ids[index] : 0; }

  // The only sequence of the file.
  static constexpr std::uint32_t kSequence = 1;

  ProtoWriter::Message begin_early_packet(std::int64_t ns);
  template <typename WriteFields>
  void packet(WriteFields&& write_fields) {
    const ProtoWriter::Message packet = out_.begin(perfetto::kPacket, perfetto::packet::kSequenceId, kSequence,
                                                   perfetto::packet::kSequenceFlags, perfetto::packet::kNeedsIncrementalState);
    write_fields();
    end_packet(packet);
  }

  // Each writes the description.
  std::uint64_t new_track_of(const ThreadDefinition& thread);
  std::uint64_t new_event_name(const NameDefinition& name);
  std::uint64_t new_context_of(const QueueDefinition& queue);
  std::uint64_t new_hardware_queue(const QueueDefinition& queue, std::uint32_t lane);
  std::uint64_t new_stage(const KernelDefinition& kernel);
  /// What is no kernel: `category` is the one of Chrome's JSON.
  std::uint64_t new_stage(const std::string& name, std::string_view category);
  std::uint64_t new_compute_kernel(const KernelDefinition& kernel);
  std::string_view new_launch_fields(const GeometryDefinition& geometry);

  void describe_gpu_correlation();
  /// All that are known, the list before is replaced.
  void describe_devices();
  template <typename WriteFields>
  void interned(std::uint32_t field, std::uint64_t id, std::string_view text, WriteFields&& more);
  void interned(std::uint32_t field, std::uint64_t id, std::string_view text);
  template <typename WriteFields>
  std::uint64_t new_track(std::uint64_t parent, std::string_view name, WriteFields&& more);
  std::uint64_t new_track(std::uint64_t parent, std::string_view name);
  std::uint64_t new_specification(std::string_view name, std::string_view description, std::uint32_t category);

  ProtoWriter& out_;
  const Definitions* definitions_ = nullptr;
  std::int64_t epoch_ns_ = 0;  // times of packets count from here
  std::uint64_t tracks_ = 0, specifications_ = 0;
  std::size_t described_devices_ = 0;
  // By index of the definition; 0 = not written yet.
  std::vector<std::uint64_t> process_tracks_, thread_tracks_, overhead_tracks_, loss_tracks_, kernel_stages_, queue_contexts_, event_names_,
      compute_kernels_;
  std::vector<std::vector<std::uint64_t>> hardware_queues_;  // by queue, then lane
  std::vector<std::string> geometries_;
  std::uint64_t overhead_root_ = 0, recording_track_ = 0;
  // By process, then context or name.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> memory_counters_, counters_, contexts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> annotation_queues_;  // by queue, then lane
  std::map<std::string, std::uint64_t, std::less<>> argument_names_;                    // that are none of `ArgumentName`
  std::map<std::string, std::uint64_t, std::less<>> string_values_, stages_, annotation_stages_;
  std::unordered_map<std::uint32_t, std::uint64_t> copy_stages_;  // by `name_key`
  std::vector<std::uint64_t> fill_stages_, command_stages_;       // by memory type, by command
};

}  // namespace xpu::profiler
