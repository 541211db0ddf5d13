#include <pybind11/stl.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "check.hpp"
#include "devices.hpp"
#include "pools.hpp"
#include "python_module.hpp"
#include "traceback_recorder.hpp"
#include "xpu/memory/config.hpp"
#include "xpu/runtime/runtime.hpp"

// Snapshots and histories of device memory in the form of torch.xpu.memory.
namespace xpu_torch {
namespace {

namespace py = pybind11;
using xpu::memory::StackUse;
using xpu::memory::TraceAction;

constexpr std::array kActions = {TraceAction::alloc,         TraceAction::free_requested, TraceAction::free_completed,
                                 TraceAction::segment_alloc, TraceAction::segment_free,   TraceAction::segment_map,
                                 TraceAction::segment_unmap, TraceAction::snapshot,       TraceAction::oom};

// Whose numbers the stacks of the current history are; null: none is kept.
std::shared_ptr<xpu::memory::StackRecorder>& current_stacks() {
  static auto& stacks = *new std::shared_ptr<xpu::memory::StackRecorder>();
  return stacks;
}

StackUse stack_use_of(const std::optional<std::string>& context, bool keeps_history) {
  if (!context) return StackUse::never;
  if (*context == "state") return StackUse::state;
  if (*context == "alloc") return keeps_history ? StackUse::alloc : StackUse::state;
  TORCH_CHECK(*context == "all", "expected 'state', 'alloc' or 'all' for context, but got '", *context, "'");
  return keeps_history ? StackUse::all : StackUse::state;
}

std::uint32_t bits_of(const std::vector<std::string>& skipped) {
  std::uint32_t bits = 0;
  for (const std::string& name : skipped) {
    bool is_known = false;
    for (const TraceAction action : kActions) {
      if (name != xpu::memory::to_string(action)) continue;
      bits |= xpu::memory::bit_of(action);
      is_known = true;
    }
    TORCH_CHECK(is_known, "Unknown skip action: ", name);
  }
  return bits;
}

void record_memory_history(const std::optional<std::string>& enabled, const std::optional<std::string>& context, const std::string& stacks,
                           std::size_t max_entries, bool clear_history, const std::vector<std::string>& skip_actions) {
  check(xpu::initialize());
  static_cast<void>(clear_history);  // a new history begins empty
  if (!enabled) {
    for (int device = 0; device < device_count(); ++device) caching_allocator(device).stop_history();
    return;
  }
  TORCH_CHECK(*enabled == "state" || *enabled == "all", "expected enabled to be 'state', 'all' or None, but got '", *enabled, "'");
  TORCH_CHECK(stacks == "python" || stacks == "all", "expected stacks to be 'python' or 'all', but got '", stacks, "'");
  const bool keeps_history = *enabled == "all";
  xpu::memory::HistoryOptions options;
  options.max_entries = keeps_history ? std::min<std::size_t>(max_entries, std::size_t{1} << 31) : 1;
  options.skipped_actions = bits_of(skip_actions);
  options.stack_use = stack_use_of(context, keeps_history);
  if (options.stack_use != StackUse::never) options.stacks = make_traceback_recorder(stacks == "all");
  current_stacks() = options.stacks;
  for (int device = 0; device < device_count(); ++device) check(caching_allocator(device).start_history(options));
}

/// Writes one snapshot; a stack is made once.
class SnapshotWriter {
 public:
  py::list segments(int device, const std::optional<c10::MempoolId_t>& only) {
    py::list list;
    for (const auto& segment : caching_allocator(device).snapshot().segments) {
      const c10::MempoolId_t pool = id_of_pool(device, segment.pool);
      if (only && *only != pool) continue;
      py::dict entry;
      entry["device"] = device;
      entry["address"] = segment.address;
      entry["total_size"] = segment.total_bytes;
      entry["allocated_size"] = segment.allocated_bytes;
      entry["active_size"] = segment.active_bytes;
      entry["requested_size"] = segment.requested_bytes;
      entry["stream"] = stream_address(device, segment.stream);
      entry["segment_type"] = segment.is_small ? "small" : "large";
      entry["segment_pool_id"] = pool;
      entry["is_expandable"] = segment.is_expandable;
      entry["frames"] = py::list();
      py::list blocks;
      for (const auto& block : segment.blocks) blocks.append(block_entry(block));
      entry["blocks"] = blocks;
      list.append(entry);
    }
    return list;
  }

  py::list trace(int device) {
    py::list list;
    caching_allocator(device).history().for_each([&](const xpu::memory::TraceEntry& event) {
      py::dict entry;
      entry["action"] = xpu::memory::to_string(event.action);
      entry[event.action == TraceAction::oom ? "device_free" : "addr"] = event.address;
      entry["size"] = event.bytes;
      entry["stream"] = stream_address(device, event.stream);
      entry["time_us"] = (event.time_ns + realtime_offset_ns()) / 1000;
      entry["segment_pool_id"] = id_of_pool(device, event.pool);
      if (event.stack != 0) entry["frames"] = frames(event.stack);
      list.append(entry);
    });
    return list;
  }

 private:
  static py::str state_name(xpu::memory::SnapshotBlockState state) {
    switch (state) {
      case xpu::memory::SnapshotBlockState::active_allocated: return "active_allocated";
      case xpu::memory::SnapshotBlockState::active_pending_free: return "active_pending_free";
      case xpu::memory::SnapshotBlockState::inactive: break;
    }
    return "inactive";
  }
  py::dict block_entry(const xpu::memory::SnapshotBlock& block) {
    py::dict entry;
    entry["address"] = block.address;
    entry["size"] = block.size_bytes;
    entry["requested_size"] = block.requested_bytes;
    entry["state"] = state_name(block.state);
    entry["frames"] = frames(block.stack);
    return entry;
  }
  py::list frames(xpu::memory::StackId stack) {
    if (stack == 0 || current_stacks() == nullptr) return py::list();
    const auto known = frames_.find(stack);
    if (known != frames_.end()) return known->second;
    py::list list;
    for (const auto& frame : current_stacks()->frames(stack)) {
      py::dict entry;
      entry["filename"] = frame.file;
      entry["name"] = frame.name;
      entry["line"] = frame.line;
      list.append(entry);
    }
    frames_.emplace(stack, list);
    return list;
  }
  static std::uintptr_t stream_address(int device, std::int64_t id) {
    const auto stream = xpu::Stream::from_id(id, device);
    return stream ? address_of(stream->native_handle()) : static_cast<std::uintptr_t>(id);
  }
  // From CLOCK_MONOTONIC to the time of day.
  static std::uint64_t realtime_offset_ns() {
    static const std::uint64_t offset = [] {
      timespec monotonic{}, realtime{};
      clock_gettime(CLOCK_MONOTONIC, &monotonic);
      clock_gettime(CLOCK_REALTIME, &realtime);
      const auto nanoseconds = [](const timespec& time) {
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
      };
      return nanoseconds(realtime) - nanoseconds(monotonic);
    }();
    return offset;
  }

  std::map<xpu::memory::StackId, py::list> frames_;
};

py::dict memory_snapshot(const std::optional<c10::MempoolId_t>& pool) {
  check(xpu::initialize());
  SnapshotWriter writer;
  py::list segments, traces;
  for (int device = 0; device < device_count(); ++device) {
    for (const auto segment : writer.segments(device, pool)) segments.append(segment);
    traces.append(writer.trace(device));
  }
  const char* const options = std::getenv("XPU_MEMORY_CONF");
  py::dict settings;
  settings["PYTORCH_ALLOC_CONF"] = options != nullptr ? options : "";
  settings["expandable_segments"] = device_count() > 0 && caching_allocator(0).has_expandable_segments();
  py::dict snapshot;
  snapshot["segments"] = segments;
  snapshot["device_traces"] = traces;
  snapshot["allocator_settings"] = settings;
  return snapshot;
}

}  // namespace

void bind_history(py::module_& module) {
  module.def("record_memory_history", &record_memory_history);
  module.def("memory_snapshot", &memory_snapshot);
}

}  // namespace xpu_torch
