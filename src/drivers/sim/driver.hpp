#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "drivers/sim/device.hpp"
#include "xpu/hal/driver.hpp"

namespace xpu::drivers::sim {

class SimDriver final : public hal::Driver {
 public:
  /// A program that cannot be read or is not allowed is the error of every call.
  explicit SimDriver(Result<Program> program);

  const char* name() const noexcept override { return "sim"; }
  Result<std::vector<DeviceProperties>> enumerate() override;
  Result<std::unique_ptr<hal::Device>> open_device(std::uint32_t ordinal) override;
  void prepare_for_exit(std::uint32_t limit_ms) noexcept override { timeline_->give_up(limit_ms); }

 private:
  const Result<Program> program_;
  const std::shared_ptr<Timeline> timeline_;
  std::shared_ptr<Rules> rules_;  // null where the program is an error
  base::Mutex mutex_;
  std::optional<std::uint64_t> origin_ns_ XPU_GUARDED_BY(mutex_);  // of all devices; nothing before the first one is opened
};

/// What the table of drivers calls.
std::unique_ptr<hal::Driver> create_driver();

}  // namespace xpu::drivers::sim
