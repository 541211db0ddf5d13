#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/host/operation_fifo.hpp"
#include "drivers/host/options.hpp"
#include "drivers/host/point.hpp"
#include "drivers/host/worker_pool.hpp"
#include "hal/host_memory.hpp"

namespace xpu::drivers::host {

/// What all objects of one driver share; they and the queues with work in flight keep it alive. Thread-safe.
struct DriverState {
  /// `options` without defaults left open (`with_defaults`).
  explicit DriverState(const Options& options);
  ~DriverState();
  DriverState(const DriverState&) = delete;
  DriverState& operator=(const DriverState&) = delete;

  const Options options;
  /// How long a thread asks whether something has happened before it sleeps; nothing comes of asking on a single processor.
  const std::uint64_t spin_ns;
  BlockPool blocks;
  PointPool points;
  const std::shared_ptr<WorkerPool> pool;  ///< Null when operations run on the submitting thread.
  /// Of each device; device and shared memory draw from one.
  std::vector<std::shared_ptr<hal::MemoryBudget>> device_budgets, host_budgets;
  std::atomic<bool> is_exiting{false};
  std::atomic<std::uint64_t> error_count{0};  ///< Gives asynchronous errors their order.
};

}  // namespace xpu::drivers::host
