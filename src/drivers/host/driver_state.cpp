#include "drivers/host/driver_state.hpp"

namespace xpu::drivers::host {
namespace {

constexpr std::uint64_t kEventSpinNs = 20'000;

}  // namespace

DriverState::DriverState(const Options& chosen)
    : options(chosen),
      spin_ns(chosen.processors > 1 ? kEventSpinNs : 0),
      pool(chosen.executor == Executor::caller ? nullptr : std::make_shared<WorkerPool>(chosen.threads, chosen.processors)) {
  for (std::uint32_t device = 0; device < chosen.devices; ++device) {
    device_budgets.push_back(std::make_shared<hal::MemoryBudget>(chosen.memory_bytes));
    host_budgets.push_back(std::make_shared<hal::MemoryBudget>(chosen.memory_bytes));
  }
}

DriverState::~DriverState() {
  if (pool != nullptr) pool->stop();
}

}  // namespace xpu::drivers::host
