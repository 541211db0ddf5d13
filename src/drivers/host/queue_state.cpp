#include "drivers/host/queue_state.hpp"

#include <algorithm>
#include <span>

#include "drivers/host/futex.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::drivers::host {

constinit thread_local QueueState::Deferred QueueState::deferred_ __attribute__((tls_model("initial-exec")));

QueueState::QueueState(std::shared_ptr<DriverState> driver, std::uint32_t device, const hal::QueueOptions& options) noexcept
    : driver_(std::move(driver)),
      executor_(driver_->options.executor),
      priority_(options.priority),
      is_in_order_(!options.out_of_order),
      device_(device),
      fifo_(driver_->blocks, mutex_) {}

Error QueueState::closed() { return {ErrorCode::unavailable, "the process is exiting, and the driver host begins nothing new"}; }

bool QueueState::begin_in_turn() noexcept {
  if (UserCode::is_running()) return false;
  while (!try_begin()) {
    wait_until_ended(kNoDeadline);
    if ((word_.load(std::memory_order_relaxed) & kClosed) != 0) return false;
  }
  return true;
}

bool QueueState::wait_until_ended(std::uint64_t deadline_ns) noexcept {
  if (spin_until([this] { return has_ended(); }, driver_->spin_ns)) return true;
  while (true) {
    std::uint32_t seen = word_.load(std::memory_order_acquire);
    if ((seen & kBusy) == 0) return true;
    if (deadline_ns != kNoDeadline && now_ns() >= deadline_ns) return false;
    if ((seen & kSleepers) == 0 && !word_.compare_exchange_strong(seen, seen | kSleepers, std::memory_order_relaxed)) continue;
    futex_wait(word_, seen | kSleepers, deadline_ns);
  }
}

void QueueState::wait_for_all() {
  if (has_ended()) return;
  const PointRef point = driver_->points.take();
  if (submit<RecordOperation>(0, [&](RecordOperation& operation) { operation.point = point; })) {
    point->wait(driver_->spin_ns);
  } else {
    wait_until_ended(kNoDeadline);  // closed: nothing comes after what runs now
  }
}

void QueueState::set_error(Error error) noexcept {
  const base::MutexLock lock(mutex_);
  if (error_.has_value()) return;
  error_ = std::move(error);
  error_order_ = driver_->error_count.fetch_add(1, std::memory_order_relaxed);
  has_error_.store(true, std::memory_order_release);
}

std::optional<std::uint64_t> QueueState::error_order() const noexcept {
  if (!has_error()) return std::nullopt;
  const base::MutexLock lock(mutex_);
  return error_.has_value() ? std::optional(error_order_) : std::nullopt;
}

Result<> QueueState::take_error() noexcept {
  if (!has_error()) return {};
  const base::MutexLock lock(mutex_);
  if (!error_.has_value()) return {};
  has_error_.store(false, std::memory_order_relaxed);
  return *std::exchange(error_, std::nullopt);
}

void QueueState::end_slowly(std::uint64_t end_ticks) noexcept {
  last_end_ticks_ = end_ticks != 0 ? end_ticks : now_ns();
  if (try_end()) return;
  {
    const base::MutexLock lock(mutex_);
    self_ = shared_from_this();
  }
  dispatch();
}

bool QueueState::try_end() noexcept {
  std::shared_ptr<QueueState> self;  // goes last: it may be all that keeps this queue
  std::uint32_t before = 0;
  {
    const base::MutexLock lock(mutex_);
    if (!fifo_.rewind_when_empty()) return false;
    self = std::move(self_);
    before = word_.fetch_and(kClosed, std::memory_order_acq_rel);
  }
  if ((before & kSleepers) != 0) futex_wake(word_);
  return true;
}

void QueueState::begin_appended(OperationKind kind) noexcept {
  // A queue that only waits costs no worker.
  if (kind == OperationKind::gate) {
    Operation* gate = fifo_.claim();
    if (gate != nullptr && !pass(static_cast<GateOperation&>(*gate))) return;
  }
  dispatch();
}

void QueueState::dispatch() noexcept {
  if (driver_->pool != nullptr) return driver_->pool->schedule(*this);
  next = nullptr;
  (deferred_.first == nullptr ? deferred_.first : deferred_.last->next) = this;
  deferred_.last = this;
  run_deferred();
}

void QueueState::run_deferred() noexcept {
  if (UserCode::is_running() || std::exchange(deferred_.is_running, true)) return;
  while (deferred_.first != nullptr) std::exchange(deferred_.first, deferred_.first->next)->run_batch();
  deferred_.is_running = false;
}

void QueueState::wait_for_room() {
  std::uint64_t begun = fifo_.claimed();
  std::uint64_t deadline_ns = now_ns() + kLongestStallNs;
  while (fifo_.size() >= kMostPending && begun != stalled_at_) {
    is_full_.store(true, std::memory_order_seq_cst);
    const std::uint32_t seen = room_.load(std::memory_order_relaxed);
    if (fifo_.size() < kMostPending) break;  // the runner may have looked at is_full_ just before
    mutex_.unlock();
    futex_wait(room_, seen, deadline_ns);
    mutex_.lock();
    const bool has_begun_another = fifo_.claimed() != begun;
    if (!has_begun_another && now_ns() < deadline_ns) continue;
    if (!has_begun_another) stalled_at_ = begun;  // what holds the queue may be waiting for this very thread
    begun = fifo_.claimed();
    deadline_ns = now_ns() + kLongestStallNs;
  }
}

void QueueState::make_room() noexcept {
  {
    const base::MutexLock lock(mutex_);
    is_full_.store(false, std::memory_order_relaxed);
    room_.fetch_add(1, std::memory_order_release);
  }
  futex_wake(room_);
}

bool QueueState::pass(GateOperation& gate) noexcept {
  Point* point = nullptr;  // kept by gate_: once the queue waits there, another thread may do anything with it
  {
    const base::MutexLock lock(mutex_);
    gate_ = std::move(gate.point);
    point = gate_.get();
  }
  if (point->add_waiter(*this)) return false;
  leave_gate();
  return true;
}

void QueueState::leave_gate() noexcept {
  const base::MutexLock lock(mutex_);
  last_end_ticks_ = std::max(last_end_ticks_, gate_->ticks());
  gate_ = {};
}

void QueueState::resume() noexcept {
  leave_gate();
  dispatch();
}

void QueueState::run_batch() noexcept {
  std::uint32_t count = 0;
  while (true) {
    Operation* operation = fifo_.claim();
    if (operation == nullptr) {
      if (try_end()) return;
      continue;
    }
    // A whole half of the room at once: a submitter that is woken for each operation is slower than none.
    if (is_full_.load(std::memory_order_seq_cst) && fifo_.size() <= kMostPending / 2) make_room();
    if (operation->kind == OperationKind::gate) {
      if (!pass(static_cast<GateOperation&>(*operation))) return;
      continue;
    }
    if (operation->kind == OperationKind::record) {
      if (!reach(static_cast<RecordOperation&>(*operation))) return;
      continue;
    }
    run(*operation);
    if (driver_->pool != nullptr && driver_->pool->should_yield(level(), ++count)) return driver_->pool->put_back(*this);
  }
}

bool QueueState::reach(RecordOperation& record) noexcept {
  const std::shared_ptr<DriverState> kept = driver_;
  const PointRef point = std::move(record.point);
  const std::uint64_t ticks = std::max(last_end_ticks_, record.queued_ticks);
  // Idle first: who has waited for the last point of a queue finds it idle.
  const bool has_gone = fifo_.size() == 0 && try_end();
  complete_point(*point.get(), ticks);
  return !has_gone;
}

void QueueState::run(Operation& operation) noexcept {
  WorkerPool* const helpers = driver_->pool.get();
  hal::Ticks ticks{operation.queued_ticks, operation.queued_ticks, 0, 0};
  if (operation.token != 0) ticks.start = now_ns();
  Result<> outcome;
  switch (operation.kind) {
    case OperationKind::launch: {
      auto& launch = static_cast<LaunchOperation&>(operation);
      outcome = run_kernel(*this, {*launch.kernel, launch.geometry, launch.arguments(), launch.local_memory_bytes},
                           driver_->options.processors, helpers);
      break;
    }
    case OperationKind::copy: {
      const auto& copy = static_cast<CopyOperation&>(operation);
      run_copy(copy.destination, copy.source, copy.bytes, helpers);
      break;
    }
    case OperationKind::fill: {
      const auto& fill = static_cast<FillOperation&>(operation);
      run_fill(fill.destination, std::span(fill.pattern, fill.pattern_bytes), fill.bytes, helpers);
      break;
    }
    case OperationKind::host_function: outcome = run_host_function(*this, static_cast<HostFunctionOperation&>(operation).function); break;
    case OperationKind::record:
    case OperationKind::gate:
    case OperationKind::jump: return;
  }
  ticks.end = last_end_ticks_ = now_ns();
  if (operation.kind == OperationKind::launch) static_cast<LaunchOperation&>(operation).kernel.reset();
  deliver(operation.sink, operation.token, outcome.has_value(), ticks);
  if (!outcome) set_error(std::move(outcome).error());
}

void QueueState::drop(Operation& operation) noexcept {
  switch (operation.kind) {
    case OperationKind::launch: static_cast<LaunchOperation&>(operation).kernel.reset(); break;
    case OperationKind::host_function: {
      const hal::HostFunction& function = static_cast<HostFunctionOperation&>(operation).function;
      const UserCode guard(*this);
      if (function.drop != nullptr) function.drop(function.user);
      break;
    }
    case OperationKind::record: {
      const PointRef point = std::move(static_cast<RecordOperation&>(operation).point);
      complete_point(*point.get(), std::max(now_ns(), operation.queued_ticks));
      return;
    }
    case OperationKind::gate: static_cast<GateOperation&>(operation).point = {}; return;
    case OperationKind::copy:
    case OperationKind::fill:
    case OperationKind::jump: break;
  }
  const std::uint64_t now = now_ns();
  deliver(operation.sink, operation.token, false, {operation.queued_ticks, operation.queued_ticks, now, now});
}

OperationFifo::Rest QueueState::close() noexcept {
  OperationFifo::Rest rest;
  {
    const base::MutexLock lock(mutex_);
    word_.fetch_or(kClosed, std::memory_order_acq_rel);
    rest = fifo_.take_rest();
  }
  make_room();  // who waits for some gets the refusal
  return rest;
}

void QueueState::drop_rest(OperationFifo::Rest rest) noexcept {
  if (rest.count != 0) set_error({ErrorCode::unavailable, "the process is exiting: operations that had not begun were dropped"});
  while (Operation* operation = rest.next()) drop(*operation);
  PointRef gate;
  {
    const base::MutexLock lock(mutex_);
    gate = gate_;
  }
  if (!gate || !gate->remove_waiter(*this)) return;
  {
    const base::MutexLock lock(mutex_);
    gate_ = {};
  }
  const bool has_ended = try_end();  // nothing can be left
  static_cast<void>(has_ended);
}

}  // namespace xpu::drivers::host
