#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/pending_ring.hpp"
#include "base/probe.hpp"
#include "interceptors/opencl/device_clock.hpp"
#include "interceptors/opencl/objects.hpp"
#include "interceptors/opencl/spin_lock.hpp"

namespace xpu::interceptors::opencl {

/// A command of the driver whose end is still to be published. We hold one reference to the event.
struct PendingCommand {
  probe::OperationId id = 0;
  cl_event event = nullptr;
};

/// The pending commands of one thread on one queue: no command waits behind one of another queue, and no two threads share a cache line per
/// launch. Made once, never freed; when its thread ends, another thread that uses the queue takes it over.
///
/// The owner pushes and polls; anybody may read (the harvester, a thread that waited for the queue, the end of the process), one at a time.
/// Nobody waits for a reader, because a driver may run the program's callbacks inside a query of ours, and these may wait for anything.
class CommandRing {
 public:
  static constexpr std::size_t kFirstCapacity = 256;
  static constexpr std::size_t kMaxCapacity = 131'072;
  static constexpr std::size_t kPollFrom = 64;        ///< Pending commands.
  static constexpr std::uint32_t kPollEvery = 8;      ///< Launches, while commands end as fast as they come.
  static constexpr std::uint32_t kPollRarely = 64;    ///< Launches, when nothing had ended or there was nothing to do.
  static constexpr std::uint32_t kWatchEvery = 1024;  ///< Launches; the first ones more often.

  /// Null without memory.
  static CommandRing* make(Queue* queue) noexcept;

  // ---- the owner

  /// Remembers a command, and from time to time looks at what has ended. False when the ring is full: the caller keeps the event.
  bool push(PendingCommand command) noexcept {
    // Room for a portion that a reader has taken out and may put back.
    ring_lock_.lock();
    const std::size_t pending = ring_.size();
    const bool is_kept = pending + kPortion < kMaxCapacity && ring_.push(PendingCommand{command});
    ring_lock_.unlock();
    if (!is_kept) [[unlikely]]
      return push_when_full(command);
    const std::uint32_t launches = launches_.load(std::memory_order_relaxed) + 1;
    launches_.store(launches, std::memory_order_relaxed);
    if (launches >= next_poll_) [[unlikely]]
      poll(pending + 1);
    return true;
  }
  /// Whether the next command is to be watched for the device's clock.
  bool wants_watch() noexcept { return launches_.load(std::memory_order_relaxed) >= next_watch_ && can_watch(); }
  /// Just before the driver is called for it.
  void prepare_watch() noexcept { watched_.enter = HostMoment::now(); }
  /// Just before it is pushed; `exit_ns`: when the driver returned.
  [[gnu::noinline]] void watch(probe::OperationId id, std::uint64_t exit_ns) noexcept;

  // ---- anybody

  /// Publishes everything that has ended, unless somebody else does just now.
  [[gnu::noinline]] void drain() noexcept;
  /// The end of the process: what has ended but has no times is published without them; what runs is left alone.
  void drain_finally() noexcept;
  /// Whether we hold a reference to `event`.
  bool holds(cl_event event) noexcept;
  bool is_empty() noexcept;
  /// Commands ever pushed, modulo 2^32: a ring in use polls itself.
  std::uint32_t launches() const noexcept { return launches_.load(std::memory_order_relaxed); }
  std::uint32_t launches_seen = 0;  ///< The harvester's, for comparison.

  Queue* const queue;
  std::atomic<const void*> owner{nullptr};  ///< The thread's state; null: free to be taken over.
  CommandRing* next = nullptr;              ///< Of the same queue.

 private:
  struct LateCommand {
    PendingCommand command;
    std::uint64_t since_ns = 0;
  };
  static constexpr std::size_t kMaxLate = 256;
  static constexpr std::size_t kPortion = 64;
  /// Of a poll: few, because an allocator keeps only a handful of freed blocks for the next allocation, and a driver frees what we let go
  /// of.
  static constexpr std::size_t kSmallPortion = 8;
  /// How many portions one stands for whose cost is told.
  static constexpr std::uint32_t kSamplePortionsEvery = 16;
  static constexpr std::uint64_t kPatienceNs = 100'000'000;

  explicit CommandRing(Queue* queue_of_ring) : queue(queue_of_ring), ring_(kFirstCapacity, kMaxCapacity) {}

  [[gnu::noinline]] bool can_watch() noexcept;
  [[gnu::noinline]] bool push_when_full(PendingCommand command) noexcept;
  [[gnu::noinline]] void poll(std::size_t pending) noexcept;
  std::size_t take_finished(PendingCommand* batch, std::size_t limit) noexcept XPU_REQUIRES(reader_) XPU_NO_THREAD_SAFETY_ANALYSIS;
  /// Of the `limit` oldest, at most kPortion. Returns how many left the ring.
  std::size_t drain_portion(std::size_t limit) noexcept XPU_REQUIRES(reader_);
  [[gnu::noinline]] void drain_late(bool is_final) noexcept XPU_REQUIRES(reader_);
  /// What is the same for a whole batch.
  struct Batch {
    const probe::Subscriber* listener;
    probe::Id queue;
    bool wants_all_ticks;
    explicit Batch(const CommandRing& ring) noexcept;
  };
  bool publish_times(const Batch& batch, PendingCommand command) noexcept;
  [[gnu::noinline]] void finish_without_times(PendingCommand command) noexcept XPU_REQUIRES(reader_);
  void publish_without_times(PendingCommand command, cl_int status) noexcept;
  [[gnu::noinline]] void learn_from(cl_event event, std::uint64_t end_ticks) noexcept;

  // In the order in which a launch touches them.
  SpinLock ring_lock_;
  base::PendingRing<PendingCommand> ring_ XPU_GUARDED_BY(ring_lock_);
  std::atomic<std::uint32_t> launches_{0};  // written by the owner alone
  std::uint32_t next_poll_ = kPollFrom;     // the owner's, as launches
  std::uint32_t next_watch_ = 0;            // the owner's, as launches
  std::uint32_t watches_ = 0;               // the owner's

  // One watched command at a time: written before it is pushed, read after it was taken out; 0 = none.
  std::atomic<probe::OperationId> watched_id_{0};
  WatchedCommand watched_;

  SpinLock reader_;  // only ever tried
  std::uint32_t portions_ XPU_GUARDED_BY(reader_) = 0;
  std::uint32_t never_timed_ XPU_GUARDED_BY(reader_) = 0;  // in a row
  std::size_t late_count_ XPU_GUARDED_BY(reader_) = 0;
  LateCommand late_[kMaxLate] XPU_GUARDED_BY(reader_);  // ended, but the driver does not tell the times yet
};

/// The ring of this thread for `queue`; null without memory.
CommandRing* ring_for_this_thread(Queue& queue) noexcept;

/// Publishes what has ended on `queue`, of every thread.
void drain_queue(Queue& queue) noexcept;

/// True when a forked child must not touch what its parent left; makes the queue's rings new ones.
void forget_rings_after_fork(Queue& queue) noexcept;

}  // namespace xpu::interceptors::opencl
