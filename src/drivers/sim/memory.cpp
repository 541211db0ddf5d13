#include "drivers/sim/memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace xpu::drivers::sim {
namespace {

std::uint64_t machine_memory_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Result<> FaultyMemory::check(std::size_t bytes) const {
  if (is_lost_.load(std::memory_order_acquire))
    return Error{ErrorCode::device_lost, "the device of sim is lost, as its program says; it must be opened again"};
  if (rules_ != nullptr && rules_->strikes(FaultKind::out_of_memory)) {
    return Error{ErrorCode::out_of_device_memory,
                 fmt::format("{} bytes of {} memory were refused because the program of sim says so", bytes, hal::to_string(kind_))};
  }
  return {};
}

Result<void*> FaultyMemory::allocate(std::size_t bytes, std::size_t alignment) {
  XPU_TRY(check(bytes));
  return memory_.allocate(bytes, alignment);
}

Result<> FaultyMemory::map(void* address, std::size_t bytes) {
  XPU_TRY(check(bytes));
  return memory_.map(address, bytes);
}

DeviceMemory::DeviceMemory(std::uint64_t limit_bytes, const std::shared_ptr<Rules>& rules, const std::atomic<bool>& is_lost)
    : DeviceMemory(std::make_shared<hal::MemoryBudget>(limit_bytes), rules, is_lost) {}

DeviceMemory::DeviceMemory(const std::shared_ptr<hal::MemoryBudget>& budget, const std::shared_ptr<Rules>& rules,
                           const std::atomic<bool>& is_lost)
    : device_(hal::MemoryKind::device, budget, rules, is_lost),
      shared_(hal::MemoryKind::shared, budget, rules, is_lost),
      host_(hal::MemoryKind::host, std::make_shared<hal::MemoryBudget>(machine_memory_bytes()), nullptr, is_lost) {}

hal::MemoryProvider& DeviceMemory::of(hal::MemoryKind kind) noexcept {
  switch (kind) {
    case hal::MemoryKind::device: return device_;
    case hal::MemoryKind::shared: return shared_;
    case hal::MemoryKind::host: return host_;
  }
  return device_;
}

}  // namespace xpu::drivers::sim
