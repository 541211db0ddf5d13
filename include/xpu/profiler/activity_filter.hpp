#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace xpu::profiler {

/// Which commands a session is about; nothing in it: all of them. The call of a command that is left out is left out, too; what is no
/// command (other calls, waits, annotations, memory) is not touched.
struct ActivityFilter {
  /// Kernels by name as drivers have it: POSIX extended, searched in it. Commands that are no kernels are not touched. Empty: all.
  std::string kernels = {};
  /// Commands whose time on the device is known and shorter than this are left out.
  std::chrono::nanoseconds least_duration{0};
  /// Ids of queues, as reports have them, whose commands are wanted. Empty: all.
  std::vector<std::uint32_t> queues = {};

  bool is_empty() const noexcept { return kernels.empty() && least_duration.count() == 0 && queues.empty(); }
  bool operator==(const ActivityFilter&) const = default;
};

}  // namespace xpu::profiler
