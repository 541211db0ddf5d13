#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "drivers/sim/device_state.hpp"
#include "hal/function_module.hpp"
#include "xpu/hal/queue.hpp"

namespace xpu::drivers::sim {

/// Everything of a launch that the caller may forget once it returned, copied; the kernel keeps its code.
struct KernelCall {
  std::shared_ptr<const hal::FunctionKernel> kernel;
  hal::Geometry geometry;
  std::vector<std::byte> arguments;
  std::uint32_t local_memory_bytes = 0;
};
struct CopyCall {
  void* destination = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;
};
struct FillCall {
  void* destination = nullptr;
  std::array<std::byte, 16> pattern{};
  std::size_t pattern_bytes = 0, bytes = 0;
};

/// An operation between its submission and its end.
struct Operation {
  std::variant<KernelCall, CopyCall, FillCall, hal::HostFunction> work;
  std::shared_ptr<DeviceState> device;
  std::uint64_t queue_id = 0;
  std::uint64_t token = 0;  // 0: not timed
  hal::CompletionSink* sink = nullptr;
  Plan plan;
  Time queued{0}, submit{0}, start{0}, end{0};

  OperationKind kind() const noexcept { return static_cast<OperationKind>(work.index()); }
  bool is_timed() const noexcept { return token != 0 && sink != nullptr; }
  hal::Completion completion(hal::CompletionStatus status) const;
};

/// Does what it is there for, on this thread; an error is the operation's. Called with no lock held.
Result<> execute(const Operation& operation);
/// Tells a host function that it is over. Once for each operation, before its completion is delivered.
void drop(const Operation& operation);
/// What the program made of the record: delivered never, once or twice. Late ones: by the caller, later.
void deliver(const Operation& operation, const hal::Completion& completion);

}  // namespace xpu::drivers::sim
