#include "memory/snapshot_file.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "memory/pickle_writer.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::memory {
namespace {

const char* name_of(SnapshotBlockState state) {
  switch (state) {
    case SnapshotBlockState::active_allocated: return "active_allocated";
    case SnapshotBlockState::active_pending_free: return "active_pending_free";
    case SnapshotBlockState::inactive: return "inactive";
  }
  return "inactive";
}

class SnapshotWriter {
 public:
  SnapshotWriter(std::span<const SnapshotFile> allocators, const std::string& path) : allocators_(allocators), pickle_(path) {}

  Result<> write() {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const SnapshotFile& allocator : allocators_) {
      for (const SnapshotSegment& segment : allocator.snapshot.segments) write(allocator, segment);
    }
    pickle_.end_list();
    pickle_.text("device_traces");
    pickle_.begin_list();
    for (int device = 0; device <= last_device(); ++device) {
      pickle_.begin_list();
      write_history(device);
      pickle_.end_list();
    }
    pickle_.end_list();
    pickle_.text("allocator_settings");
    pickle_.begin_dict();
    pickle_.text("PYTORCH_ALLOC_CONF");
    pickle_.text(to_string(allocators_.empty() ? Config() : allocators_.front().config));
    pickle_.text("expandable_segments");
    pickle_.boolean(!allocators_.empty() && allocators_.front().is_expandable);
    pickle_.end_dict();
    pickle_.end_dict();
    return pickle_.finish();
  }

 private:
  int last_device() const {
    int last = 0;  // one list at least, as PyTorch has
    for (const SnapshotFile& allocator : allocators_) last = std::max(last, allocator.device);
    return last;
  }
  /// Memory is needed only where a device has several allocators.
  void write_history(int device) {
    const auto is_of_device = [&](const SnapshotFile& allocator) { return allocator.device == device; };
    if (std::count_if(allocators_.begin(), allocators_.end(), is_of_device) < 2) {
      for (const SnapshotFile& allocator : allocators_) {
        if (is_of_device(allocator)) allocator.history.for_each([&](const TraceEntry& entry) { write(allocator, entry); });
      }
      return;
    }
    std::vector<std::pair<const SnapshotFile*, TraceEntry>> entries;
    for (const SnapshotFile& allocator : allocators_) {
      if (is_of_device(allocator)) allocator.history.for_each([&](const TraceEntry& entry) { entries.emplace_back(&allocator, entry); });
    }
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.second.time_ns < b.second.time_ns; });
    for (const auto& [allocator, entry] : entries) write(*allocator, entry);
  }

  template <typename Integer>
  void number(std::string_view key, Integer value) {
    pickle_.text(key);
    pickle_.integer(value);
  }
  void text(std::string_view key, std::string_view value) {
    pickle_.text(key);
    pickle_.text(value);
  }
  void pool(std::string_view key, const PoolId& id) {
    pickle_.text(key);
    pickle_.pair(id.graph, id.user);
  }

  void frames(const SnapshotFile& allocator, StackId stack) {
    pickle_.text("frames");
    const std::pair place(stack == 0 ? nullptr : allocator.stacks.get(), stack);
    const auto known = stacks_.find(place);
    if (known != stacks_.end()) return pickle_.recall(known->second);
    pickle_.begin_list();
    if (stack != 0 && allocator.stacks != nullptr) {
      for (const StackRecorder::Frame& frame : allocator.stacks->frames(stack)) {
        pickle_.begin_dict();
        text("filename", frame.file);
        number("line", std::uint64_t{frame.line});
        text("name", frame.name);
        pickle_.end_dict();
      }
    }
    pickle_.end_list();
    stacks_.emplace(place, pickle_.remember());
  }

  void write(const SnapshotFile& allocator, const SnapshotSegment& segment) {
    pickle_.begin_dict();
    number("device", std::int64_t{allocator.device});
    number("address", segment.address);
    number("total_size", segment.total_bytes);
    number("allocated_size", segment.allocated_bytes);
    number("active_size", segment.active_bytes);
    number("requested_size", segment.requested_bytes);
    number("stream", segment.stream);
    text("segment_type", segment.is_small ? "small" : "large");
    pool("segment_pool_id", segment.pool);
    pickle_.text("is_expandable");
    pickle_.boolean(segment.is_expandable);
    frames(allocator, 0);
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const SnapshotBlock& block : segment.blocks) {
      pickle_.begin_dict();
      number("address", block.address);
      number("size", block.size_bytes);
      number("requested_size", block.requested_bytes);
      text("state", name_of(block.state));
      frames(allocator, block.stack);
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write(const SnapshotFile& allocator, const TraceEntry& entry) {
    pickle_.begin_dict();
    text("action", to_string(entry.action));
    number(entry.action == TraceAction::oom ? "device_free" : "addr", entry.address);
    number("size", entry.bytes);
    number("stream", entry.stream);
    number("time_us", (entry.time_ns + since_epoch_ns_) / 1'000);
    pool("mempool_id", entry.pool);
    if (entry.stack != 0) frames(allocator, entry.stack);
    pickle_.end_dict();
  }

  const std::span<const SnapshotFile> allocators_;
  PickleWriter pickle_;
  const std::uint64_t since_epoch_ns_ = now_ns(ClockDomain::realtime) - now_ns();  // at the zero of our times
  std::map<std::pair<const StackRecorder*, StackId>, std::uint32_t> stacks_;       // written already
};

}  // namespace

Result<> write_snapshots(std::span<const SnapshotFile> allocators, const std::string& path) {
  return SnapshotWriter(allocators, path).write();
}

}  // namespace xpu::memory
