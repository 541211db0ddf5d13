#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "drivers/sim/rules.hpp"
#include "hal/host_memory.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::drivers::sim {

/// Memory of this process with the faults of the program. Thread-safe.
class FaultyMemory final : public hal::MemoryProvider {
 public:
  /// `rules` null: never refused. `is_lost` lives as long as the device.
  FaultyMemory(hal::MemoryKind kind, const std::shared_ptr<hal::MemoryBudget>& budget, std::shared_ptr<Rules> rules,
               const std::atomic<bool>& is_lost)
      : kind_(kind), memory_(kind, budget), rules_(std::move(rules)), is_lost_(is_lost) {}

  Result<void*> allocate(std::size_t bytes, std::size_t alignment) override;
  void free(void* address) noexcept override { memory_.free(address); }
  Result<void*> reserve(std::size_t bytes) override { return memory_.reserve(bytes); }
  void unreserve(void* address, std::size_t bytes) noexcept override { memory_.unreserve(address, bytes); }
  Result<> map(void* address, std::size_t bytes) override;
  void unmap(void* address, std::size_t bytes) noexcept override { memory_.unmap(address, bytes); }
  std::size_t granularity() const noexcept override { return memory_.granularity(); }
  Result<hal::MemoryInfo> info() override { return memory_.info(); }

 private:
  Result<> check(std::size_t bytes) const;

  const hal::MemoryKind kind_;
  hal::HostMemoryProvider memory_;
  const std::shared_ptr<Rules> rules_;
  const std::atomic<bool>& is_lost_;
};

/// All memory of one device: device and shared memory within one limit, host memory within what the machine has.
class DeviceMemory {
 public:
  DeviceMemory(std::uint64_t limit_bytes, const std::shared_ptr<Rules>& rules, const std::atomic<bool>& is_lost);

  hal::MemoryProvider& of(hal::MemoryKind kind) noexcept;

 private:
  DeviceMemory(const std::shared_ptr<hal::MemoryBudget>& budget, const std::shared_ptr<Rules>& rules, const std::atomic<bool>& is_lost);

  FaultyMemory device_, shared_, host_;
};

}  // namespace xpu::drivers::sim
