#pragma once

#include <cstdint>
#include <vector>

#include "xpu/base/clock.hpp"
#include "xpu/trace/clock_map.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace::view {

/// A command's four moments as host times; each is 0 when it is not known.
struct DeviceTimes {
  std::uint64_t append_ns = 0, submit_ns = 0, start_ns = 0, end_ns = 0;
  std::uint64_t error_ns = 0;  ///< Of all four, in the same direction.
  bool is_placed = false;
};

/// A device's clock as its records tell it while they come in. One owner at a time.
class DeviceClock {
 public:
  explicit DeviceClock(ClockDomain host_clock) : host_clock_(host_clock) {}

  void describe(const DeviceRecord& record) noexcept;
  /// A reading against another host clock says nothing about ours and is passed over.
  void add(const ClockReadingRecord& reading);

  bool has_readings() const noexcept { return !points_.empty(); }
  /// The times of a command. `near_ns` is a host time not far from it (its submitting call's), which tells the turns of a counter that
  /// wraps apart; 0 = unknown. Stamps that contradict the order queued, submit, start, end are unknown.
  DeviceTimes place(const OperationCompletedRecord& completed, std::uint64_t near_ns);

  std::size_t kept_readings() const noexcept { return points_.size(); }

 private:
  void rebuild();

  ClockDomain host_clock_;
  TickUnit unit_;
  bool counts_ = false;     // the length of a tick is known
  bool is_ours_ = false;    // by the device's description
  bool all_native_ = true;  // every reading is of the driver's own making
  bool is_stale_ = false;   // map_ does not contain all points_
  std::vector<ClockPoint> points_;
  ClockMap map_;
};

}  // namespace xpu::trace::view
