#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "drivers/host/point.hpp"
#include "hal/function_module.hpp"
#include "xpu/hal/queue.hpp"

/// Submitted operations as they lie in a queue's blocks (operation_fifo.hpp) until their turn.
namespace xpu::drivers::host {

enum class OperationKind : std::uint8_t {
  jump,  ///< No operation: what follows lies in the next block.
  launch,
  copy,
  fill,
  host_function,
  record,
  gate,
};

/// At the front of each. Never changes once it was published, and is never destroyed: whoever walks over operations reads it.
struct alignas(16) Operation {
  OperationKind kind = OperationKind::jump;
  std::uint32_t size_bytes = 0;  ///< With the rest, a multiple of 16.
  std::uint64_t token = 0;
  hal::CompletionSink* sink = nullptr;  ///< That of the queue object by which it was submitted.
  std::uint64_t queued_ticks = 0;       ///< Moment of the call; 0 where nobody asks.
};

struct LaunchOperation : Operation {
  static constexpr OperationKind kKind = OperationKind::launch;
  std::shared_ptr<const hal::FunctionKernel> kernel;  ///< Given up after the run.
  hal::Geometry geometry;
  std::uint32_t local_memory_bytes = 0;

  /// The block of arguments lies behind the structure.
  std::byte* arguments() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

struct CopyOperation : Operation {
  static constexpr OperationKind kKind = OperationKind::copy;
  void* destination = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;
};

struct FillOperation : Operation {
  static constexpr OperationKind kKind = OperationKind::fill;
  void* destination = nullptr;
  std::size_t bytes = 0;
  std::uint32_t pattern_bytes = 0;
  std::byte pattern[16] = {};
};

struct HostFunctionOperation : Operation {
  static constexpr OperationKind kKind = OperationKind::host_function;
  hal::HostFunction function;
};

struct RecordOperation : Operation {
  static constexpr OperationKind kKind = OperationKind::record;
  PointRef point;  ///< Given up when it is complete.
};

struct GateOperation : Operation {
  static constexpr OperationKind kKind = OperationKind::gate;
  PointRef point;  ///< Moved to the queue when its turn comes.
};

}  // namespace xpu::drivers::host
