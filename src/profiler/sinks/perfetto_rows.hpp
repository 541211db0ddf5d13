#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/sinks/perfetto_fields.hpp"
#include "profiler/sinks/proto_writer.hpp"
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
};
/// Its number on the packet sequence.
constexpr std::uint32_t id_of(ArgumentName name) { return static_cast<std::uint32_t>(name) + 1; }

enum class Category : std::uint8_t { xpu_runtime, xpu_sync, overhead, user_annotation, xpu_lost, xpu_recording };
constexpr std::uint32_t id_of(Category category) { return static_cast<std::uint32_t>(category) + 1; }

/// Numbers them in the order of their first use and writes each, before the number is handed out, as a packet of its own: nothing here may
/// be called while a packet is being written. One owner at a time.
class PerfettoRows {
 public:
  explicit PerfettoRows(ProtoWriter& out) : out_(out) {}

  /// The head of the file: the clock, and names that are known beforehand. `origin_ns` on the time axis is the first packet's.
  void begin(const SessionInfo& info);

  /// `ns` of the recording's clock as the time of a packet.
  void time(std::int64_t ns);
  template <typename WriteFields>
  void packet(WriteFields&& write_fields) {
    out_.message(perfetto::kPacket, [&] {
      common_fields();
      write_fields();
    });
  }

  // Tracks, by UUID. They are counted from 1, which keeps events small.
  std::uint64_t track(const ProcessDefinition& process);
  std::uint64_t track(const ThreadDefinition& thread);
  std::uint64_t overhead_track(const ThreadDefinition& thread);
  std::uint64_t loss_track(const ProcessDefinition& process);
  std::uint64_t recording_track();
  std::uint64_t memory_counter(const ProcessDefinition& process, std::uint32_t context);
  std::uint64_t counter(const ProcessDefinition& process, const NameDefinition& name);

  // Numbers of interned things.
  std::uint64_t event_name(const NameDefinition& name);
  std::uint64_t string_value(std::string_view text);
  std::uint64_t context(const ProcessDefinition& process, std::uint32_t context);
  std::uint64_t hardware_queue(const QueueDefinition& queue, std::uint32_t lane);
  std::uint64_t stage(const KernelDefinition& kernel);
  /// What is no kernel: `category` is the one of Chrome's JSON.
  std::uint64_t stage(const std::string& name, std::string_view category);
  std::uint64_t compute_kernel(const KernelDefinition& kernel);
  /// Names of geometry that Perfetto has no fields for; 0 where there is nothing to say.
  std::uint64_t global_size(const GeometryDefinition& geometry);
  std::uint64_t offset(const GeometryDefinition& geometry);

 private:
  struct GeometryTexts {
    bool made = false;
    std::uint64_t global = 0, offset = 0;
  };

  void common_fields();
  void describe_gpu_correlation();
  template <typename WriteFields>
  void interned(std::uint32_t field, std::uint64_t id, std::string_view text, WriteFields&& more);
  void interned(std::uint32_t field, std::uint64_t id, std::string_view text);
  template <typename WriteFields>
  std::uint64_t new_track(std::uint64_t parent, std::string_view name, WriteFields&& more);
  std::uint64_t new_track(std::uint64_t parent, std::string_view name);
  std::uint64_t new_specification(std::string_view name, std::string_view description, std::uint32_t category);
  const GeometryTexts& texts(const GeometryDefinition& geometry);

  ProtoWriter& out_;
  const Definitions* definitions_ = nullptr;
  std::int64_t origin_ns_ = 0;
  std::uint64_t tracks_ = 0, specifications_ = 0;
  // By index of the definition; 0 = not written yet.
  std::vector<std::uint64_t> process_tracks_, thread_tracks_, overhead_tracks_, loss_tracks_, kernel_stages_;
  std::vector<std::vector<std::uint64_t>> hardware_queues_;
  std::vector<bool> event_names_, compute_kernels_;
  std::vector<GeometryTexts> geometries_;
  std::uint64_t overhead_root_ = 0, recording_track_ = 0;
  // By process, then context or name.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> memory_counters_, counters_, contexts_;
  std::map<std::string, std::uint64_t, std::less<>> string_values_, stages_;
};

}  // namespace xpu::profiler
