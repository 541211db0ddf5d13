#include "drivers/sim/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace xpu::drivers::sim {
namespace {

// Enough that no program notices, and a bound on memory for one that submits and never waits.
constexpr std::size_t kMaxPending = 4'096;

Error programmed_failure(const Operation& operation) {
  const auto* kernel = std::get_if<KernelCall>(&operation.work);
  const std::string name = kernel != nullptr ? fmt::format("kernel '{}'", kernel->kernel->info().name) : to_string(operation.kind());
  return {ErrorCode::internal, fmt::format("{} failed because the program of sim says so", name)};
}

Error waits_for_itself() {
  return {ErrorCode::unavailable,
          "a kernel or host function of sim waits for the device, which goes on only when that function has returned"};
}

}  // namespace

Timeline::~Timeline() {
  {
    const base::MutexLock lock(mutex_);
    run_until(kEndOfTime);
  }
  deliver_late_records();
}

std::shared_ptr<QueueState> Timeline::make_queue(std::shared_ptr<DeviceState> device, const hal::QueueOptions& options) {
  const base::MutexLock lock(mutex_);
  return std::shared_ptr<QueueState>(new QueueState(++last_queue_id_, std::move(device), options, this));
}

Result<> Timeline::submit(QueueState& queue, std::unique_ptr<Operation> operation) {
  const base::MutexLock lock(mutex_);
  wait_for_room();
  XPU_TRY(check_usable(*queue.device));
  DeviceState& device = *queue.device;
  operation->device = queue.device;
  operation->queue_id = queue.id;
  operation->queued = now_;
  step_to(later(now_, operation->plan.submit));
  operation->submit = now_;
  operation->start = std::max(queue.tail_, later(now_, operation->plan.launch));
  operation->end = later(operation->start, operation->plan.duration);
  queue.tail_ = operation->end;
  device.tail_ = std::max(device.tail_, queue.tail_);
  const Key key(operation->end, ++last_submission_);
  pending_.emplace(key, std::move(operation));
  return {};
}

Result<Time> Timeline::record(const QueueState& queue, Time call_time) {
  const base::MutexLock lock(mutex_);
  XPU_TRY(check_usable(*queue.device));
  step_to(later(now_, call_time));
  return std::max(queue.tail_, now_);
}

Result<> Timeline::wait(QueueState& queue, Time point, Time call_time) {
  const base::MutexLock lock(mutex_);
  XPU_TRY(check_usable(*queue.device));
  step_to(later(now_, call_time));
  queue.tail_ = std::max(queue.tail_, point);
  queue.device->tail_ = std::max(queue.device->tail_, queue.tail_);
  return {};
}

bool Timeline::query(Time point) {
  const base::MutexLock lock(mutex_);
  const std::thread::id nobody;
  if (executor_ == nobody) run_until(now_);
  const bool ended = has_ended(point);
  if (!ended && executor_ == nobody) run_until(pending_.begin()->first.first);
  return ended;
}

Result<> Timeline::synchronize(Time point) {
  // Before anything new ends: what is late now ended before this call.
  deliver_late_records();
  const base::MutexLock lock(mutex_);
  if (is_executing_here() && !has_ended(point)) return waits_for_itself();
  wait_until_ended(point);
  step_to(point);
  return {};
}

Result<> Timeline::advance(Time time) {
  const base::MutexLock lock(mutex_);
  if (is_executing_here()) return waits_for_itself();
  const Time point = later(now_, time);
  wait_until_ended(point);
  step_to(point);
  return {};
}

std::optional<Error> Timeline::take_error(const QueueState& queue) {
  const base::MutexLock lock(mutex_);
  const auto found = std::find_if(errors_.begin(), errors_.end(), [&](const QueueError& error) { return error.queue_id == queue.id; });
  if (found == errors_.end()) return std::nullopt;
  Error error = std::move(found->error);
  errors_.erase(found);
  return error;
}

std::optional<Error> Timeline::take_error(const DeviceState& device) {
  const base::MutexLock lock(mutex_);
  const auto found = std::find_if(errors_.begin(), errors_.end(), [&](const QueueError& error) { return error.device.get() == &device; });
  if (found == errors_.end()) return std::nullopt;
  Error error = std::move(found->error);
  errors_.erase(found);
  return error;
}

void Timeline::give_up(std::uint32_t limit_ms) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  std::map<Key, std::unique_ptr<Operation>> dropped;
  Time moment{0};
  {
    const base::MutexLock lock(mutex_);
    has_given_up_ = true;
    dropped.swap(pending_);
    moment = now_;
    while (executor_ != std::thread::id() && !is_executing_here()) {
      if (executor_left_.wait_until(mutex_, limit) == std::cv_status::timeout) break;
    }
  }
  for (const auto& [key, operation] : dropped) {
    operation->start = operation->end = std::max(operation->submit, moment);
    drop(*operation);
    deliver(*operation, operation->completion(hal::CompletionStatus::failed));
  }
  deliver_late_records();
}

Time Timeline::now() const {
  const base::MutexLock lock(mutex_);
  return now_;
}

std::uint64_t Timeline::steps() const {
  const base::MutexLock lock(mutex_);
  return steps_;
}

bool Timeline::has_ended(Time point) const {
  const bool is_pending = !pending_.empty() && pending_.begin()->first.first <= point;
  const bool is_running = executor_ != std::thread::id() && running_end_ <= point;
  return !is_pending && !is_running;
}

Result<> Timeline::check_usable(const DeviceState& device) const {
  if (has_given_up_) return Error{ErrorCode::unavailable, "the process exits: nothing new begins on devices of sim"};
  if (device.is_lost.load(std::memory_order_relaxed)) return device_lost_error(device);
  return {};
}

void Timeline::step_to(Time time) {
  now_ = std::max(now_, time);
  ++steps_;
}

/// With no executor: this thread becomes it until everything that ends at or before `point` has ended.
void Timeline::run_until(Time point) {
  executor_ = std::this_thread::get_id();
  while (!pending_.empty() && pending_.begin()->first.first <= point) run(std::move(pending_.extract(pending_.begin()).mapped()));
  executor_ = {};
  executor_left_.notify_all();
}

void Timeline::run(std::unique_ptr<Operation> operation) {
  const std::shared_ptr<DeviceState> device = operation->device;
  const Plan& plan = operation->plan;
  running_end_ = operation->end;
  step_to(operation->end);
  bool is_lost = device->is_lost.load(std::memory_order_relaxed);
  if (is_lost) {
    operation->start = operation->end = std::max(operation->submit, device->lost_at_);
  } else if (plan.has(FaultKind::device_lost)) {
    is_lost = true;
    device->lost_at_ = operation->end;
    device->is_lost.store(true, std::memory_order_release);
  }

  // The executor is alone with the operation, so nothing of it needs the lock; user code runs in here.
  mutex_.unlock();
  Result<> result;
  if (is_lost) {
    result = device_lost_error(*device);
  } else {
    result = plan.has(FaultKind::operation_fails) ? programmed_failure(*operation) : execute(*operation);
  }
  drop(*operation);
  const hal::Completion completion = operation->completion(result ? hal::CompletionStatus::ok : hal::CompletionStatus::failed);
  const bool is_late = plan.has(FaultKind::record_late);
  const std::uint64_t queue_id = operation->queue_id;
  if (!is_late) {
    deliver(*operation, completion);
    operation.reset();  // may unload the kernel's code
  }
  mutex_.lock();

  // A lost device is no error of a queue: it stays, and each wait returns it.
  if (!result && !is_lost) keep_error(device, queue_id, std::move(result).error());
  if (is_late) late_records_.push_back({std::move(operation), completion});
  executor_left_.notify_all();
}

void Timeline::wait_until_ended(Time point) {
  while (!has_ended(point)) {
    if (executor_ == std::thread::id()) {
      run_until(point);
    } else {
      executor_left_.wait(mutex_);
    }
  }
}

/// As a device with a queue of that depth: the call returns when the first operation has ended. Effects that submit do not wait.
void Timeline::wait_for_room() {
  while (pending_.size() >= kMaxPending && !is_executing_here()) wait_until_ended(pending_.begin()->first.first);
}

void Timeline::keep_error(const std::shared_ptr<const DeviceState>& device, std::uint64_t queue_id, Error error) {
  const auto is_of_this_queue = [&](const QueueError& kept) { return kept.queue_id == queue_id; };
  if (std::none_of(errors_.begin(), errors_.end(), is_of_this_queue)) errors_.push_back({device, queue_id, std::move(error)});
}

void Timeline::deliver_late_records() {
  std::vector<LateRecord> records;
  {
    const base::MutexLock lock(mutex_);
    records.swap(late_records_);
  }
  for (const LateRecord& record : records) deliver(*record.operation, record.completion);
}

}  // namespace xpu::drivers::sim
