#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "drivers/host/driver_state.hpp"
#include "drivers/host/execution.hpp"
#include "drivers/host/operation_fifo.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::drivers::host {

/// A queue itself: what `native_handle` points to and any number of hal::Queue objects share. Work in flight keeps it alive.
///
/// One word says whether the queue is idle. Whoever turns it from idle to busy has the *right to run* the queue, alone: a submitter who
/// runs an operation where it stands (`try_begin`, `end`: two atomic operations and no lock), a worker, the pool's list of ready queues, or
/// the point that the queue waits for. Operations that come meanwhile are appended to `fifo_`, and the right ends only when that is empty.
/// Thread-safe.
class QueueState final : public std::enable_shared_from_this<QueueState> {
 public:
  QueueState(std::shared_ptr<DriverState> driver, std::uint32_t device, const hal::QueueOptions& options) noexcept;

  DriverState& driver() const noexcept { return *driver_; }
  const std::shared_ptr<DriverState>& shared_driver() const noexcept { return driver_; }
  std::uint32_t device() const noexcept { return device_; }
  hal::QueuePriority priority() const noexcept { return priority_; }
  bool is_in_order() const noexcept { return is_in_order_; }
  /// 0 before 1 before 2.
  std::uint32_t level() const noexcept { return static_cast<std::uint32_t>(static_cast<int>(priority_) + 1); }

  /// Whether an operation begins where its submitter stands, if it can begin at once.
  bool runs_where_submitted(bool is_promised) const noexcept {
    return executor_ == Executor::caller || (is_promised && executor_ == Executor::adaptive);
  }
  /// Takes the right to run, if the queue is idle; `end` must follow.
  [[nodiscard]] bool try_begin() noexcept {
    std::uint32_t idle = kIdle;
    return word_.compare_exchange_strong(idle, kBusy, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// `end_ticks`: when the operation ended, 0 when nobody read the clock.
  void end(std::uint64_t end_ticks) noexcept {
    std::uint32_t busy = kBusy;
    if (!word_.compare_exchange_strong(busy, kIdle, std::memory_order_release, std::memory_order_relaxed)) [[unlikely]] {
      end_slowly(end_ticks);
    }
    if (deferred_.first != nullptr) [[unlikely]] {
      run_deferred();
    }
  }
  /// For `Executor::caller`, where a submitter waits for its turn: `try_begin` when the queue is idle. False when it must append instead:
  /// this thread is inside an operation, and what it waits for may be waiting for it.
  [[nodiscard]] bool begin_in_turn() noexcept;

  /// Everything submitted has ended, and nothing is refused.
  bool is_idle() const noexcept { return word_.load(std::memory_order_acquire) == kIdle; }
  /// Everything submitted has ended.
  bool has_ended() const noexcept { return (word_.load(std::memory_order_acquire) & kBusy) == 0; }
  /// False when the deadline passed first.
  bool wait_until_ended(std::uint64_t deadline_ns) noexcept;

  /// Appends an operation: `fill_in(T&)` completes it. Above kMostPending it waits for room, unless this thread is inside an operation or
  /// nothing has begun for kLongestStallNs: then it is appended all the same, and so is what follows until something begins.
  template <typename T, typename FillIn>
  Result<> submit(std::size_t extra_bytes, FillIn&& fill_in) XPU_EXCLUDES(mutex_) {
    if (driver_->pool != nullptr) XPU_TRY(driver_->pool->ensure_started());
    bool is_runner = false;
    {
      const base::MutexLock lock(mutex_);
      if (fifo_.size() >= kMostPending && !UserCode::is_running()) wait_for_room();
      if ((word_.load(std::memory_order_relaxed) & kClosed) != 0) return closed();
      fill_in(fifo_.append<T>(extra_bytes));
      fifo_.publish();
      is_runner = (word_.fetch_or(kBusy | kMore, std::memory_order_acq_rel) & kBusy) == 0;
      if (is_runner) self_ = shared_from_this();
    }
    if (is_runner) begin_appended(T::kKind);
    return {};
  }
  static Error closed();

  /// Waits until everything submitted so far has ended.
  void wait_for_all() XPU_EXCLUDES(mutex_);

  void set_error(Error error) noexcept XPU_EXCLUDES(mutex_);
  bool has_error() const noexcept { return has_error_.load(std::memory_order_acquire); }
  /// Of the first asynchronous error; smaller is earlier; nothing when there is none.
  std::optional<std::uint64_t> error_order() const noexcept XPU_EXCLUDES(mutex_);
  /// Returns the asynchronous error and clears it.
  Result<> take_error() noexcept XPU_EXCLUDES(mutex_);

  /// By the one who has the right to run and a reference: runs operations until the queue is idle, waits for a point, or is put back for
  /// the sake of others. The right is gone afterwards, and with it maybe the queue.
  void run_batch() noexcept XPU_EXCLUDES(mutex_);
  /// The point that the queue waited for is complete, and the right to run it is the caller's.
  void resume() noexcept XPU_EXCLUDES(mutex_);

  /// Nothing more is accepted, and nothing more begins. What is returned has to be handed to `drop_rest`, once all queues are closed that
  /// may wait for this one.
  OperationFifo::Rest close() noexcept XPU_EXCLUDES(mutex_);
  /// Delivers what had not begun as failed. By one who holds a reference.
  void drop_rest(OperationFifo::Rest rest) noexcept XPU_EXCLUDES(mutex_);

  /// In the list of ready queues, of a point's waiters, or of a thread's deferred queues: belongs to who has the right to run.
  QueueState* next = nullptr;

 private:
  static constexpr std::uint32_t kIdle = 0;
  static constexpr std::uint32_t kBusy = 1;      // somebody has the right to run
  static constexpr std::uint32_t kMore = 2;      // and must look into fifo_ before giving it up
  static constexpr std::uint32_t kSleepers = 4;  // somebody sleeps until it is idle
  static constexpr std::uint32_t kClosed = 8;
  static constexpr std::uint64_t kMostPending = 65'536;
  static constexpr std::uint64_t kLongestStallNs = 1'000'000'000;

  /// Queues that became ready on a thread that runs operations where they are submitted. They run when it is done with what it is doing: a
  /// chain of queues that wait for each other is a loop and no recursion.
  struct Deferred {
    QueueState* first = nullptr;
    QueueState* last = nullptr;
    bool is_running = false;
  };

  void end_slowly(std::uint64_t end_ticks) noexcept XPU_EXCLUDES(mutex_);
  /// Gives up the right to run when nothing is left; then `this` may be gone.
  [[nodiscard]] bool try_end() noexcept XPU_EXCLUDES(mutex_);
  void begin_appended(OperationKind kind) noexcept XPU_EXCLUDES(mutex_);
  void dispatch() noexcept XPU_EXCLUDES(mutex_);
  static void run_deferred() noexcept;
  void wait_for_room() XPU_REQUIRES(mutex_);
  void make_room() noexcept XPU_EXCLUDES(mutex_);
  /// False: the right to run belongs to the gate's point now.
  [[nodiscard]] bool pass(GateOperation& gate) noexcept XPU_EXCLUDES(mutex_);
  void leave_gate() noexcept XPU_EXCLUDES(mutex_);
  /// False: the right to run has been given up, because nothing is behind the record.
  [[nodiscard]] bool reach(RecordOperation& record) noexcept XPU_EXCLUDES(mutex_);
  void run(Operation& operation) noexcept;
  void drop(Operation& operation) noexcept;

  static constinit thread_local Deferred deferred_ __attribute__((tls_model("initial-exec")));

  const std::shared_ptr<DriverState> driver_;
  const Executor executor_;
  const hal::QueuePriority priority_;
  const bool is_in_order_;
  const std::uint32_t device_;

  std::atomic<std::uint32_t> word_{kIdle};
  std::atomic<std::uint32_t> room_{0};  // changes when there is room again
  std::atomic<bool> is_full_{false};    // somebody waits for that
  std::atomic<bool> has_error_{false};
  std::uint64_t last_end_ticks_ = 0;  // of who has the right to run: when the operation or the gate before the next one ended

  mutable base::Mutex mutex_;
  OperationFifo fifo_;                                            // says itself what needs the lock
  std::shared_ptr<QueueState> self_ XPU_GUARDED_BY(mutex_);       // while operations are in fifo_, or their runner is at work
  PointRef gate_ XPU_GUARDED_BY(mutex_);                          // what the queue waits for
  std::uint64_t stalled_at_ XPU_GUARDED_BY(mutex_) = UINT64_MAX;  // so many had begun when a submitter gave up waiting for room
  std::optional<Error> error_ XPU_GUARDED_BY(mutex_);
  std::uint64_t error_order_ XPU_GUARDED_BY(mutex_) = 0;
};

/// Completes the point and lets the queues go on that waited for it.
inline void complete_point(Point& point, std::uint64_t ticks) noexcept {
  QueueState* waiter = point.complete(ticks);
  while (waiter != nullptr) std::exchange(waiter, waiter->next)->resume();
}

inline void deliver(hal::CompletionSink* sink, std::uint64_t token, bool is_ok, const hal::Ticks& ticks) noexcept {
  if (token == 0 || sink == nullptr) return;
  sink->complete({token, is_ok ? hal::CompletionStatus::ok : hal::CompletionStatus::failed, ticks});
}

}  // namespace xpu::drivers::host
