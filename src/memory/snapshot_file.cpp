#include "memory/snapshot_file.hpp"

#include <unordered_map>

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
  SnapshotWriter(const SnapshotFile& file, const std::string& path) : file_(file), pickle_(path) {}

  Result<> write() {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const SnapshotSegment& segment : file_.snapshot.segments) write(segment);
    pickle_.end_list();
    pickle_.text("device_traces");
    pickle_.begin_list();
    for (int device = 0; device <= file_.device; ++device) {
      pickle_.begin_list();
      if (device == file_.device) file_.history.for_each([&](const TraceEntry& entry) { write(entry); });
      pickle_.end_list();
    }
    pickle_.end_list();
    pickle_.text("allocator_settings");
    pickle_.begin_dict();
    pickle_.text("PYTORCH_ALLOC_CONF");
    pickle_.text(to_string(file_.config));
    pickle_.text("expandable_segments");
    pickle_.boolean(file_.is_expandable);
    pickle_.end_dict();
    pickle_.end_dict();
    return pickle_.finish();
  }

 private:
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

  void frames(StackId stack) {
    pickle_.text("frames");
    const auto known = stacks_.find(stack);
    if (known != stacks_.end()) return pickle_.recall(known->second);
    pickle_.begin_list();
    if (stack != 0 && file_.stacks != nullptr) {
      for (const StackRecorder::Frame& frame : file_.stacks->frames(stack)) {
        pickle_.begin_dict();
        text("filename", frame.file);
        number("line", std::uint64_t{frame.line});
        text("name", frame.name);
        pickle_.end_dict();
      }
    }
    pickle_.end_list();
    stacks_.emplace(stack, pickle_.remember());
  }

  void write(const SnapshotSegment& segment) {
    pickle_.begin_dict();
    number("device", std::int64_t{file_.device});
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
    frames(0);
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const SnapshotBlock& block : segment.blocks) {
      pickle_.begin_dict();
      number("address", block.address);
      number("size", block.size_bytes);
      number("requested_size", block.requested_bytes);
      text("state", name_of(block.state));
      frames(block.stack);
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write(const TraceEntry& entry) {
    pickle_.begin_dict();
    text("action", to_string(entry.action));
    number(entry.action == TraceAction::oom ? "device_free" : "addr", entry.address);
    number("size", entry.bytes);
    number("stream", entry.stream);
    number("time_us", (entry.time_ns + since_epoch_ns_) / 1'000);
    pool("mempool_id", entry.pool);
    if (entry.stack != 0) frames(entry.stack);
    pickle_.end_dict();
  }

  const SnapshotFile& file_;
  PickleWriter pickle_;
  const std::uint64_t since_epoch_ns_ = now_ns(ClockDomain::realtime) - now_ns();  // at the zero of our times
  std::unordered_map<StackId, std::uint32_t> stacks_;                              // written already
};

}  // namespace

Result<> write_snapshot(const SnapshotFile& file, const std::string& path) { return SnapshotWriter(file, path).write(); }

}  // namespace xpu::memory
