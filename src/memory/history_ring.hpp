#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/memory/history.hpp"

namespace xpu::memory {

/// A clock for the hot path, in a unit that two readings of it and of the host's clock tell.
inline std::uint64_t read_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return now_ns();
#endif
}

/// Entries of one stream and pool that follow each other, as short as they can be: most of what a history costs is writing them.
class HistoryChunk {
 public:
  static constexpr std::size_t kEntries = 256;
  struct Entry {
    std::uint64_t ticks, address, bytes;
    StackId stack;
    TraceAction action;
    bool is_double;  ///< A free_requested that was completed at once: two entries.
  };
  std::array<Entry, kEntries> entries;
  std::size_t count = 0;  // of `entries`, once no writer has it any more
  std::int64_t stream = 0;
  PoolId pool;
};

/// What happened to the memory of one allocator: the newest entries, for whoever asks, and all of them for trackers.
///
/// An arena writes into a chunk of its own, under its own lock, so that keeping a history costs no lock more. Full chunks lie in one queue,
/// whose first one goes when it has become too long. Thread-safe but for what says otherwise.
class HistoryRing {
 public:
  /// The place where one arena writes, under its lock.
  class Writer {
    friend class HistoryRing;
    std::size_t count() const noexcept { return static_cast<std::size_t>(next_ - chunk_->entries.data()); }

    std::shared_ptr<HistoryChunk> chunk_;
    HistoryChunk::Entry* next_ = nullptr;  // in chunk_
    HistoryChunk::Entry* end_ = nullptr;   // of what may be written without looking
    std::uint64_t generation_ = 0;
  };

  /// Whether entries are wanted at all, by history or trackers.
  bool is_active() const noexcept { return is_kept_.load(std::memory_order_relaxed) || has_trackers_.load(std::memory_order_relaxed); }
  /// Whether there is nothing but a history of everything: then `append_plainly` does.
  bool is_plain() const noexcept {
    return is_kept_.load(std::memory_order_relaxed) && !has_trackers_.load(std::memory_order_relaxed) &&
           skipped_actions_.load(std::memory_order_relaxed) == 0;
  }
  bool is_kept() const noexcept { return is_kept_.load(std::memory_order_relaxed); }
  /// Of the history that is kept, or was last: another one each time that `start` is called, from 1.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  bool has_trackers() const noexcept { return has_trackers_.load(std::memory_order_relaxed); }
  /// Keeps a history from now on; what was kept before goes. `max_entries` > 0.
  void start(std::size_t max_entries, std::uint32_t skipped_actions) XPU_EXCLUDES(mutex_);
  void stop() XPU_EXCLUDES(mutex_);
  void attach(TraceTracker tracker) XPU_EXCLUDES(mutex_);

  /// `entry` is what happened but for its time. `is_double`: a free_requested that is completed, too.
  void append(Writer& writer, const TraceEntry& entry, bool is_double) XPU_EXCLUDES(mutex_) {
    if (is_kept_.load(std::memory_order_relaxed)) keep(writer, entry, is_double);
    if (has_trackers_.load(std::memory_order_relaxed)) [[unlikely]]
      keep_for_trackers(entry, is_double);
  }
  /// Without stack, trackers and skipped actions. `stream` and `pool`: the same for this writer since `look_again`.
  [[gnu::always_inline]] void append_plainly(Writer& writer, const HistoryChunk::Entry& entry, std::int64_t stream, const PoolId& pool)
      XPU_EXCLUDES(mutex_) {
    if (writer.next_ == writer.end_) [[unlikely]]
      find_place(writer, stream, pool);
    *writer.next_++ = entry;
  }
  /// The stream, the pool, or what is wanted may be another one from now on.
  static void look_again(Writer& writer) noexcept { writer.end_ = writer.next_; }
  /// What belongs to no arena.
  void append(const TraceEntry& entry) XPU_EXCLUDES(mutex_);
  /// Calls the trackers for what is new, with no lock held. While one thread does, it does so for all.
  void tell() XPU_EXCLUDES(mutex_) {
    if (has_trackers_.load(std::memory_order_relaxed)) [[unlikely]]
      tell_trackers();
  }
  /// `writers`: all there are, whose locks are held.
  History view(const std::vector<const Writer*>& writers) const XPU_EXCLUDES(mutex_);

 private:
  void keep(Writer& writer, const TraceEntry& entry, bool is_double) XPU_EXCLUDES(mutex_) {
    const std::uint32_t skipped = skipped_actions_.load(std::memory_order_relaxed);
    TraceAction action = entry.action;
    if (skipped != 0) [[unlikely]] {
      if (is_double && (skipped & bit_of(action)) != 0) action = TraceAction::free_completed;
      is_double = is_double && (skipped & (bit_of(TraceAction::free_requested) | bit_of(TraceAction::free_completed))) == 0;
      if ((skipped & bit_of(action)) != 0) return;
    }
    find_place(writer, entry.stream, entry.pool);
    *writer.next_++ = {read_ticks(), entry.address, entry.bytes, entry.stack, action, is_double};
  }
  void find_place(Writer& writer, std::int64_t stream, const PoolId& pool) XPU_EXCLUDES(mutex_);
  /// Each shared, because copies of foreign code would come and go under the lock.
  using Trackers = std::vector<std::shared_ptr<const TraceTracker>>;

  void open_chunk(Writer& writer, std::int64_t stream, const PoolId& pool) XPU_REQUIRES(mutex_);
  void keep_for_trackers(const TraceEntry& entry, bool is_double) XPU_EXCLUDES(mutex_);
  void tell_trackers() XPU_EXCLUDES(mutex_);

  std::atomic<bool> is_kept_{false}, has_trackers_{false};
  std::atomic<std::uint32_t> skipped_actions_{0};
  std::atomic<std::uint64_t> generation_{0};  // of histories: chunks of an older one are nobody's
  mutable base::Mutex mutex_;
  std::size_t max_entries_ XPU_GUARDED_BY(mutex_) = 0;
  std::uint64_t start_ticks_ XPU_GUARDED_BY(mutex_) = 0, start_ns_ XPU_GUARDED_BY(mutex_) = 0;
  std::uint64_t lost_until_ticks_ XPU_GUARDED_BY(mutex_) = 0;  // entries up to then may be missing
  std::deque<std::shared_ptr<HistoryChunk>> full_ XPU_GUARDED_BY(mutex_);
  std::size_t full_entries_ XPU_GUARDED_BY(mutex_) = 0;  // in these, a double one as one
  mutable base::Mutex common_mutex_;                     // before mutex_
  Writer common_ XPU_GUARDED_BY(common_mutex_);
  std::shared_ptr<const Trackers> trackers_ XPU_GUARDED_BY(mutex_);
  std::vector<TraceEntry> untold_ XPU_GUARDED_BY(mutex_);
  bool is_telling_ XPU_GUARDED_BY(mutex_) = false;
};

}  // namespace xpu::memory
