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
  void pass_on() noexcept;
  void find_ring() noexcept;
  void accepted(std::uint64_t returned_ns, std::uint64_t exit_ns) noexcept;
  void lose(probe::LossCause cause) noexcept;

  // An address that no driver makes an event at: shows whether the driver wrote one.
  cl_event untouched() noexcept { return reinterpret_cast<cl_event>(this); }

  const probe::Subscriber* listener_;  ///< Null: not recorded.
  const probe::Subscriber* call_listener_ = nullptr;  ///< Inside a scope: publishes the call only.
  ThreadState* thread_ = nullptr;
  CommandRing* ring_ = nullptr;
  cl_command_queue handle_;
  cl_event* program_event_;
  cl_event event_ = nullptr;
  bool is_watched_ = false;
  bool is_sampled_ = false;
  probe::OperationId id_ = 0;
  std::uint64_t entered_ns_ = 0, called_ns_ = 0;  // when sampled
  probe::Operation operation_;
};

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
