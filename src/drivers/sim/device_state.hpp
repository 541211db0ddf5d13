#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "drivers/sim/device_clock.hpp"
#include "drivers/sim/memory.hpp"
#include "drivers/sim/rules.hpp"
#include "xpu/hal/properties.hpp"

namespace xpu::drivers::sim {

/// What a pending operation needs of its device: kept alive by both, because either may go first.
struct DeviceState {
  DeviceState(std::uint32_t device_ordinal, DeviceProperties device_properties, const Clock& device_clock,
              const std::shared_ptr<Rules>& program_rules)
      : ordinal(device_ordinal),
        properties(std::move(device_properties)),
        clock(device_clock),
        rules(program_rules),
        memory(properties.total_memory_bytes, program_rules, is_lost) {}

  const std::uint32_t ordinal;
  const DeviceProperties properties;
  const DeviceClock clock;
  const std::shared_ptr<Rules> rules;
  std::atomic<bool> is_lost{false};  // set by the timeline
  DeviceMemory memory;

 private:
  friend class Timeline;
  Time tail_{0};     // the end of everything submitted so far; under the timeline's lock
  Time lost_at_{0};  // where is_lost; under the timeline's lock
};

/// For calls that would begin something on a lost device, and for waits.
inline Error device_lost_error(const DeviceState& device) {
  return {ErrorCode::device_lost,
          "device " + std::to_string(device.ordinal) + " of sim is lost, as its program says; it must be opened again"};
}

}  // namespace xpu::drivers::sim
