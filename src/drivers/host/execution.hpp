#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/probe.hpp"
#include "hal/function_module.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/queue.hpp"

/// What operations do when their turn has come, on whichever thread.
namespace xpu::drivers::host {

class QueueState;
class WorkerPool;

/// Round user code that the driver runs: the probe takes what it does for work of its own, and the driver knows which queues' operations
/// this thread is in the middle of, because such a thread must not wait for room or for a turn.
class UserCode {
 public:
  explicit UserCode(const QueueState& queue) noexcept : queue_(&queue), outer_(innermost_) { innermost_ = this; }
  ~UserCode() { innermost_ = outer_; }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

  static bool is_running() noexcept { return innermost_ != nullptr; }
  static bool is_running(const QueueState& queue) noexcept {
    const UserCode* at = innermost_;
    while (at != nullptr && at->queue_ != &queue) at = at->outer_;
    return at != nullptr;
  }

 private:
  static constinit thread_local const UserCode* innermost_ __attribute__((tls_model("initial-exec")));

  probe::ScopeSuspended suspended_;
  const QueueState* queue_;
  const UserCode* outer_;
};

/// DeviceProperties::max_work_group_size as a power of two. Items run in a loop, so this is a round figure and no limit of the machine.
inline constexpr unsigned kMostGroupItemsShift = 20;

/// A launch when its turn has come.
struct KernelRun {
  const hal::FunctionKernel& kernel;
  const hal::Geometry& geometry;
  const std::byte* arguments;
  std::uint32_t local_memory_bytes;  ///< Beside the kernel's own.
};

/// `helpers` null: everything on this thread. An exception that the kernel lets out is an error, and its other groups may not run.
Result<> run_kernel(const QueueState& queue, const KernelRun& run, std::uint32_t processors, WorkerPool* helpers) noexcept;
void run_copy(void* destination, const void* source, std::size_t bytes, WorkerPool* helpers) noexcept;
void run_fill(void* destination, std::span<const std::byte> pattern, std::size_t bytes, WorkerPool* helpers) noexcept;
/// With `drop`.
Result<> run_host_function(const QueueState& queue, const hal::HostFunction& function) noexcept;

}  // namespace xpu::drivers::host
