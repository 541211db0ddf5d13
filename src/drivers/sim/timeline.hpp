#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "drivers/sim/operation.hpp"

namespace xpu::drivers::sim {

class Timeline;

/// A queue as the timeline knows it; what a native handle points to.
struct QueueState {
  const std::uint64_t id;
  const std::shared_ptr<DeviceState> device;
  const hal::QueueOptions options;
  const Timeline* const timeline;  // for comparison only: two queues with one timeline have one context

 private:
  friend class Timeline;
  QueueState(std::uint64_t new_id, std::shared_ptr<DeviceState> new_device, const hal::QueueOptions& new_options, const Timeline* owner)
      : id(new_id), device(std::move(new_device)), options(new_options), timeline(owner) {}

  Time tail_{0};  // the end of everything submitted so far; under the timeline's lock
};

/// The virtual time of one driver and what is pending in it. Thread-safe.
///
/// As a wait names what was recorded before, start and end of an operation are known when it is submitted. What remains is to let the
/// effects happen in the order of the ends: an operation ends after those in front of it and those that it waited for, and of two with one
/// end the one that was submitted first goes first, so no effect comes before one that it depends on.
///
/// One thread at a time runs effects, with no lock held: whichever moves the time. Others that wait for one of them wait for that thread.
///
/// Handles (driver, devices, queues, events) hold the timeline, pending operations do not: when the last handle is gone, the destructor
/// lets everything end that is still pending.
class Timeline {
 public:
  Timeline() = default;
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  std::shared_ptr<QueueState> make_queue(std::shared_ptr<DeviceState> device, const hal::QueueOptions& options) XPU_EXCLUDES(mutex_);

  /// `work`, `token`, `sink` and `plan` are filled in; the rest is decided here. Waits for room when very much is pending.
  Result<> submit(QueueState& queue, std::unique_ptr<Operation> operation) XPU_EXCLUDES(mutex_);
  /// The end of what is in front, or the end of this call, which takes `call_time`.
  Result<Time> record(const QueueState& queue, Time call_time) XPU_EXCLUDES(mutex_);
  /// What is submitted to the queue from now on starts at `point` at the earliest.
  Result<> wait(QueueState& queue, Time point, Time call_time) XPU_EXCLUDES(mutex_);

  /// The time at which everything that was submitted so far to the queue, or to any queue of the device, has ended.
  template <typename QueueOrDevice>
  Time tail_of(const QueueOrDevice& of) const XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return of.tail_;
  }

  /// Whether what ends at or before `point` has ended. If not, the time moves on to the next end.
  bool query(Time point) XPU_EXCLUDES(mutex_);
  /// Moves the time on to `point`. `unavailable` from within a kernel or host function.
  Result<> synchronize(Time point) XPU_EXCLUDES(mutex_);
  Result<> advance(Time time) XPU_EXCLUDES(mutex_);
  /// Whether this thread is inside a kernel or host function, of any queue: the time goes on when it returns.
  bool is_executing_on_this_thread() const XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return is_executing_here();
  }

  /// The first asynchronous error of the queue, or of any queue of the device; it is forgotten.
  std::optional<Error> take_error(const QueueState& queue) XPU_EXCLUDES(mutex_);
  std::optional<Error> take_error(const DeviceState& device) XPU_EXCLUDES(mutex_);

  /// As `hal::Driver::prepare_for_exit`.
  void give_up(std::uint32_t limit_ms) XPU_EXCLUDES(mutex_);

  Time now() const XPU_EXCLUDES(mutex_);
  std::uint64_t steps() const XPU_EXCLUDES(mutex_);

 private:
  using Key = std::pair<Time, std::uint64_t>;  // end, number of the submission
  struct QueueError {
    std::shared_ptr<const DeviceState> device;
    std::uint64_t queue_id;
    Error error;
  };
  struct LateRecord {
    std::unique_ptr<Operation> operation;
    hal::Completion completion;
  };

  bool is_executing_here() const XPU_REQUIRES(mutex_) { return executor_ == std::this_thread::get_id(); }
  bool has_ended(Time point) const XPU_REQUIRES(mutex_);
  Result<> check_usable(const DeviceState& device) const XPU_REQUIRES(mutex_);
  /// One step of the simulation; the time never goes back.
  void step_to(Time time) XPU_REQUIRES(mutex_);
  void run_until(Time point) XPU_REQUIRES(mutex_);
  void run(std::unique_ptr<Operation> operation) XPU_REQUIRES(mutex_);
  void wait_until_ended(Time point) XPU_REQUIRES(mutex_);
  void wait_for_room() XPU_REQUIRES(mutex_);
  void keep_error(const std::shared_ptr<const DeviceState>& device, std::uint64_t queue_id, Error error) XPU_REQUIRES(mutex_);
  void deliver_late_records() XPU_EXCLUDES(mutex_);

  mutable base::Mutex mutex_;
  std::condition_variable_any executor_left_;
  Time now_ XPU_GUARDED_BY(mutex_){0};
  std::uint64_t steps_ XPU_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_submission_ XPU_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_queue_id_ XPU_GUARDED_BY(mutex_) = 0;
  std::map<Key, std::unique_ptr<Operation>> pending_ XPU_GUARDED_BY(mutex_);
  std::thread::id executor_ XPU_GUARDED_BY(mutex_);        // the thread that runs effects, if any
  Time running_end_ XPU_GUARDED_BY(mutex_){0};             // of the operation that it runs
  std::vector<QueueError> errors_ XPU_GUARDED_BY(mutex_);  // the first of each queue, in order
  std::vector<LateRecord> late_records_ XPU_GUARDED_BY(mutex_);
  bool has_given_up_ XPU_GUARDED_BY(mutex_) = false;
};

}  // namespace xpu::drivers::sim
