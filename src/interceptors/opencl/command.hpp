#pragma once

#include <cstdint>

#include "base/probe.hpp"
#include "interceptors/opencl/command_ring.hpp"
#include "interceptors/opencl/layer_state.hpp"
#include "interceptors/opencl/objects.hpp"
#include "interceptors/opencl/thread_state.hpp"
#include "interceptors/opencl/wrappers.hpp"

namespace xpu::interceptors::opencl {

/// One call of the program, from its entry to its return.
///
///     Command command(Entry::clEnqueueTask, probe::Command::task_kernel, queue, event);
///     if (!command.is_recorded()) return command.pass(target().clEnqueueTask(queue, kernel, count, list, event));
///     command.set_kernel(kernel);
///     return command.finish(target().clEnqueueTask(queue, kernel, count, list, command.start()));
///
/// The driver always gets an event of ours to fill in, so that what it leaves there when it fails reaches the program unchanged.
class Command {
 public:
  Command(Entry entry, probe::Command kind, cl_command_queue queue, cl_event* program_event) noexcept;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// False: the program's own arguments go to the driver, and its answer through `pass`.
  bool is_recorded() const noexcept { return listener_ != nullptr; }
  cl_int pass(cl_int result) noexcept;

  void set_kernel(cl_kernel handle) noexcept;
  void set_geometry(const probe::Geometry& geometry) noexcept { operation_.geometry = &geometry; }
  void set_copy(const probe::CopyDetail& detail) noexcept { operation_.copy = &detail; }

  /// Just before the driver is called: what to give it as the event. Everything set before must live until `finish`.
  cl_event* start() noexcept;
  /// Before a second try with another entry point: forgets what a refused call left in the event.
  void start_again() noexcept { event_ = untouched(); }
  /// Just after: publishes what it answered and returns that.
  cl_int finish(cl_int result) noexcept;
  /// The same for a call that returns when the command has ended.
  cl_int finish_blocking(cl_int result) noexcept;
  cl_int finish_transfer(cl_int result, cl_bool is_blocking) noexcept {
    return is_blocking != CL_FALSE ? finish_blocking(result) : finish(result);
  }

  /// Null when the driver does not know it.
  Queue* queue() const noexcept { return ring_ != nullptr ? ring_->queue : nullptr; }

 private:
  // Cold: kept out of the launch's own code, which then needs few registers and little stack.
  [[gnu::cold]] void find_ring() noexcept;
  [[gnu::cold]] void find_kernel(cl_kernel handle) noexcept;
  [[gnu::cold]] void pass_on() noexcept;
  [[gnu::cold]] void read_clock() noexcept;
  [[gnu::cold]] void begin_sample() noexcept;
  [[gnu::cold]] void end_sample(std::uint64_t returned_ns) noexcept;
  [[gnu::cold]] void accept_without_ring(std::uint64_t exit_ns) noexcept;
  [[gnu::cold]] void lose(probe::LossCause cause) noexcept;

  // An address that no driver makes an event at: shows whether the driver wrote one.
  cl_event untouched() noexcept { return reinterpret_cast<cl_event>(this); }

  const probe::Subscriber* listener_;                 ///< Null: not recorded.
  const probe::Subscriber* call_listener_ = nullptr;  ///< Inside a scope: publishes the call only.
  ThreadState* thread_ = nullptr;
  CommandRing* ring_ = nullptr;
  cl_command_queue handle_;
  cl_event* program_event_;
  cl_event event_ = nullptr;
  std::uint32_t wanted_ = 0;
  bool is_watched_ = false;
  bool is_sampled_ = false;
  probe::OperationId id_ = 0;
  std::uint64_t entered_ns_, called_ns_;  // when sampled
  probe::Operation operation_;
};

// What every launch runs through is inline: as functions of another file these few lines cost as much again.

[[gnu::always_inline]] inline Command::Command(Entry entry, probe::Command kind, cl_command_queue queue, cl_event* program_event) noexcept
    : listener_(listener_or_null()), handle_(queue), program_event_(program_event) {
  if (listener_ == nullptr) return;
  operation_.api = api_id(entry);
  operation_.command = kind;
  if (program_event != nullptr) operation_.flags = probe::kUserEvent;
  thread_ = this_thread();
  if (thread_ == nullptr || *thread_->scope_depth != 0) [[unlikely]] {
    pass_on();
    return;
  }
  wanted_ = listener_->wanted.load(std::memory_order_relaxed);
  if (--thread_->until_sample == 0) [[unlikely]]
    begin_sample();
  ring_ = thread_->rings[ThreadState::slot_of<ThreadState::kRings>(queue)];
  if (ring_ == nullptr || !ring_->queue->is_for(queue)) [[unlikely]] {
    find_ring();
    if (ring_ == nullptr) return;
  }
  operation_.queue = ring_->queue->id;
  if (ring_->queue->is_out_of_order.load(std::memory_order_relaxed)) operation_.flags |= probe::kOutOfOrderQueue;
}

[[gnu::always_inline]] inline void Command::set_kernel(cl_kernel handle) noexcept {
  const Kernel* kernel = thread_->kernels[ThreadState::slot_of<ThreadState::kKernels>(handle)];
  if (kernel == nullptr || !kernel->is_for(handle) || kernel->description.load(std::memory_order_acquire) != Kernel::Description::published)
      [[unlikely]] {
    find_kernel(handle);
    return;
  }
  operation_.kernel = kernel->id;
}

[[gnu::always_inline]] inline cl_event* Command::start() noexcept {
  if (ring_ != nullptr && ring_->wants_watch()) [[unlikely]] {
    is_watched_ = true;
    ring_->prepare_watch();
  }
  operation_.enter_ns = now_ns();
  // After a pause nobody has read the clock for long, and the command may run for long before anybody does.
  const Device* device = ring_ == nullptr ? nullptr : ring_->queue->device.load(std::memory_order_acquire);
  if (device != nullptr && device->clock.is_due(operation_.enter_ns)) [[unlikely]]
    read_clock();
  id_ = listener_->begin(operation_);
  if (id_ == 0) [[unlikely]]
    return program_event_;
  if ((wanted_ & probe::kCalls) != 0) listener_->call_begin(operation_.api, operation_.enter_ns);
  event_ = untouched();
  if (is_sampled_) [[unlikely]]
    called_ns_ = now_ns();
  return &event_;
}

[[gnu::always_inline]] inline cl_int Command::finish(cl_int result) noexcept {
  if (id_ == 0) [[unlikely]]
    return result;
  std::uint64_t returned_ns = 0, exit_ns = 0;
  if ((wanted_ & probe::kHostExitTimes) != 0) {
    returned_ns = exit_ns = now_ns();
  } else if (is_sampled_ || is_watched_) [[unlikely]] {
    returned_ns = now_ns();
  }
  if (event_ == untouched()) [[unlikely]] {
    event_ = nullptr;
  } else if (program_event_ != nullptr) {
    *program_event_ = event_;
  }

  if (result != CL_SUCCESS) [[unlikely]] {
    listener_->submitted(id_, operation_, {.exit_ns = exit_ns, .result = result, .queue_sequence = 0});
  } else if (ring_ == nullptr) [[unlikely]] {
    accept_without_ring(exit_ns);
  } else {
    const std::uint32_t sequence = ring_->queue->sequence.fetch_add(1, std::memory_order_relaxed) + 1;
    const bool is_expected = listener_->submitted(id_, operation_, {.exit_ns = exit_ns, .result = CL_SUCCESS, .queue_sequence = sequence});
    if (event_ == nullptr) [[unlikely]] {
      if (is_expected) lose(probe::LossCause::driver_refused_event);
    } else if (!is_expected) [[unlikely]] {
      if (program_event_ == nullptr) target().clReleaseEvent(event_);
    } else if (program_event_ != nullptr && target().clRetainEvent(event_) != CL_SUCCESS) [[unlikely]] {
      lose(probe::LossCause::driver_refused_event);
    } else {
      if (is_watched_) [[unlikely]]
        ring_->watch(id_, returned_ns);
      if (!ring_->push({id_, event_})) [[unlikely]] {
        target().clReleaseEvent(event_);
        lose(probe::LossCause::ring_full);
      }
    }
  }
  if (is_sampled_) [[unlikely]]
    end_sample(returned_ns);
  return result;
}

/// A call that submits nothing, published when somebody wants calls.
class Call {
 public:
  explicit Call(Entry entry) noexcept {
    const probe::Subscriber* listener = listener_or_null();
    if (listener == nullptr || !wants(*listener, probe::kCalls)) return;
    begin(*listener, entry);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  template <typename Result>
  Result finish(Result result, cl_int code) noexcept {
    if (listener_ != nullptr) end(code);
    return result;
  }
  cl_int finish(cl_int code) noexcept { return finish(code, code); }

 private:
  void begin(const probe::Subscriber& listener, Entry entry) noexcept;
  void end(cl_int code) noexcept;

  const probe::Subscriber* listener_ = nullptr;
  std::uint64_t enter_ns_;
  probe::Id api_;
};

/// A call that waits, published when somebody wants waits.
class WaitCall {
 public:
  WaitCall(Entry entry, probe::WaitType type) noexcept;
  cl_int finish(cl_int result, const void* handle, const Queue* queue, std::uint32_t wait_count) noexcept;

 private:
  const probe::Subscriber* listener_ = nullptr;
  probe::WaitType type_;
  std::uint64_t enter_ns_ = 0;
  probe::Id api_ = 0;
};

}  // namespace xpu::interceptors::opencl
