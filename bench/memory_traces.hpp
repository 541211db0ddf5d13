#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace xpu::memory {

/// One step of a program that uses the memory of a device.
struct TraceOperation {
  enum class Kind : std::uint8_t {
    allocate,
    use,     ///< By another stream.
    free,    ///< In the order of the host: what was submitted before may still run.
    finish,  ///< All work of the stream so far is done.
  };
  Kind kind = Kind::allocate;
  std::uint8_t stream = 0;
  std::uint32_t block = 0;  ///< Counted from 0, as they are allocated.
  std::uint64_t bytes = 0;
};
using MemoryTrace = std::vector<TraceOperation>;

struct Workload {
  const char* name;
  /// The device that finishes it is at most so many times as large as what is live at the most.
  double most_of_live;
  /// The same trace for the same seed, everywhere.
  MemoryTrace (*make)(std::uint64_t seed);
};

/// Programs as they are seen in deep learning: training with fixed and with changing lengths, with recomputed activations, with accumulated
/// gradients, with weights that are gathered from other devices on streams of their own, with experts, on images of changing size;
/// generation of text with caches that grow; and a mixture of sizes that changes while the old blocks go one by one.
std::span<const Workload> workloads() noexcept;

}  // namespace xpu::memory
