#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "memory/device_allocator.hpp"
#include "memory/live_blocks.hpp"
#include "memory/snapshot_file.hpp"
#include "xpu/base/clock.hpp"

// What an allocator does when somebody wants to know of it.

namespace xpu::memory {

Result<void*> DeviceAllocator::allocate_watched(std::size_t requested_bytes, const StreamRef& stream, PoolSlot pool) {
  XPU_TRY(check_open());
  const NotedStack stack(stack_use_.load(std::memory_order_relaxed) != StackUse::never ? record_stack() : 0, ledger_.record_stack());
  Result<void*> allocated = allocate_quietly(requested_bytes, stream, pool);
  history_.tell();
  return allocated;
}

Result<> DeviceAllocator::free_watched(void* pointer) {
  if (!is_watched_closely_.load(std::memory_order_relaxed)) return free_quietly(pointer, true);
  if (is_closed()) return {};
  const NotedStack stack(stack_use_.load(std::memory_order_relaxed) == StackUse::all ? record_stack() : 0, ledger_.record_stack());
  Result<> freed = free_quietly(pointer, true);
  history_.tell();
  return freed;
}

StackId DeviceAllocator::record_stack() const {
  std::shared_ptr<StackRecorder> stacks;
  {
    const base::MutexLock lock(base_mutex_);
    stacks = stacks_;
  }
  return stacks == nullptr ? 0 : stacks->record();
}

std::shared_ptr<StackRecorder> DeviceAllocator::start_history_locked(const HistoryOptions& options) {
  std::shared_ptr<StackRecorder> stacks = options.stacks;
  {
    const base::MutexLock lock(base_mutex_);
    stacks_.swap(stacks);
  }
  stack_use_.store(options.stack_use, std::memory_order_relaxed);
  history_.start(options.max_entries, options.skipped_actions);
  watch();
  return stacks;
}

std::shared_ptr<StackRecorder> DeviceAllocator::stop_history_locked() {
  stack_use_.store(StackUse::never, std::memory_order_relaxed);
  history_.stop();
  watch();
  arenas_.for_each([](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    arena.forget_stacks();
  });
  std::shared_ptr<StackRecorder> stacks;
  const base::MutexLock lock(base_mutex_);
  stacks_.swap(stacks);
  return stacks;
}

void DeviceAllocator::start_history(const HistoryOptions& options) {
  std::shared_ptr<StackRecorder> former;
  const base::MutexLock lock(history_mutex_);
  former = start_history_locked(options);
}

void DeviceAllocator::stop_history() {
  std::shared_ptr<StackRecorder> former;
  const base::MutexLock lock(history_mutex_);
  former = stop_history_locked();
}

std::uint64_t DeviceAllocator::borrow_history(const HistoryOptions& options) {
  std::shared_ptr<StackRecorder> former;
  const base::MutexLock lock(history_mutex_);
  if (history_.is_kept()) return 0;
  former = start_history_locked(options);
  return history_.generation();
}

void DeviceAllocator::return_history(std::uint64_t borrowed) {
  std::shared_ptr<StackRecorder> former;
  const base::MutexLock lock(history_mutex_);
  if (history_.is_kept() && history_.generation() == borrowed) former = stop_history_locked();
}

void DeviceAllocator::attach_tracker(TraceTracker tracker) {
  history_.attach(std::move(tracker));
  watch();
}

Arena::Watch DeviceAllocator::watch_of_arenas() const {
  if (!is_watch_wanted() && config_.max_split_size_bytes == kUnlimitedBytes) return Arena::Watch::none;
  const bool is_plain = history_.is_plain() && stack_use_.load(std::memory_order_relaxed) == StackUse::never && !ledger_.is_on() &&
                        config_.max_split_size_bytes == kUnlimitedBytes;
  return is_plain ? Arena::Watch::plain_history : Arena::Watch::all;
}

void DeviceAllocator::watch() {
  // Frees of other threads lie about unnoted until somebody collects them: what was freed before belongs to before.
  arenas_.for_each([&](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    arena.collect();
    arena.set_watch(watch_of_arenas());
  });
  is_watched_closely_.store(stack_use_.load(std::memory_order_relaxed) != StackUse::never || ledger_.is_on() || history_.has_trackers(),
                            std::memory_order_relaxed);
  is_watched_.store(is_watch_wanted(), std::memory_order_relaxed);
}

void DeviceAllocator::start_checks(const CheckOptions& options) {
  ledger_.start(options);
  watch();
}

void DeviceAllocator::stop_checks() {
  ledger_.stop();
  watch();
}

LiveBlockReport DeviceAllocator::report_live_blocks(std::size_t max_rows) const {
  const Snapshot now = take_snapshot();
  const bool is_checked = ledger_.is_on();
  std::vector<NotedBlock> live;
  for (const SnapshotSegment& segment : now.segments) {
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state != SnapshotBlockState::active_allocated) continue;
      const StackId stack = is_checked ? 0 : block.stack;
      const NotedBlock seen{block.address, block.size_bytes, block.requested_bytes, segment.stream, segment.pool, stack, 0, 0};
      live.push_back(is_checked ? ledger_.find_live(block.address).value_or(seen) : seen);
    }
  }
  std::shared_ptr<StackRecorder> stacks;
  {
    const base::MutexLock lock(base_mutex_);
    stacks = stacks_;
  }
  return summarise_live_blocks(live, now_ns(), max_rows, [&](StackId stack) {
    if (is_checked) return ledger_.frames(stack);
    return stacks == nullptr ? std::vector<StackRecorder::Frame>() : stacks->frames(stack);
  });
}

SnapshotFile DeviceAllocator::describe_snapshot() const {
  note_snapshot();
  SnapshotFile file;
  file.device = device_;
  file.snapshot = take_snapshot(&file.history);
  file.config = config_;
  file.is_expandable = is_expandable_;
  {
    const base::MutexLock lock(base_mutex_);
    file.stacks = stacks_;
  }
  return file;
}

Result<> DeviceAllocator::write_snapshot(const std::string& path) const {
  const SnapshotFile file = describe_snapshot();
  return write_snapshots({&file, 1}, path);
}

void DeviceAllocator::write_snapshot_at_out_of_memory(std::string path) {
  const base::MutexLock lock(base_mutex_);
  out_of_memory_path_ = std::move(path);
}

void DeviceAllocator::write_due_snapshot() {
  std::string path;
  {
    const base::MutexLock lock(base_mutex_);
    path.swap(out_of_memory_path_);
  }
  if (path.empty()) return;
  if (const Result<> written = write_snapshot(path); !written) XPU_LOG_WARN("memory", "{}", written.error().message);
}

History DeviceAllocator::history() const {
  const AllArenasLock all(arenas_);
  return view_history(all);
}

// The analysis knows no set of locks.
History DeviceAllocator::view_history(const AllArenasLock& all) const XPU_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<const HistoryRing::Writer*> writers;
  for (std::size_t index = 0; index < all.count(); ++index) writers.push_back(&arenas_.at(static_cast<std::uint16_t>(index)).history());
  return history_.view(writers);
}

}  // namespace xpu::memory
