#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/result.hpp"
#include "xpu/hal/driver.hpp"

/// Which drivers and devices a process uses: the reading of `XPU_DRIVER` and `XPU_VISIBLE_DEVICES`. Messages do not name the variable: the
/// caller does.
namespace xpu::hal {

/// A comma list of names, in this order; empty means the default, "host". Spaces round names do not count. An unknown name, an empty one or
/// one that comes twice is an error that names it and says which there are.
Result<std::vector<const DriverEntry*>> select_drivers(std::string_view list);

/// A comma list of ordinals (of the enumeration over all drivers) and UUIDs (whole, or the first digits when only one device has them; with
/// or without dashes), in the order in which the devices then count: positions in `devices`. Decimal digits are an ordinal unless there are
/// 8 or more. An entry that is no such thing, out of range, ambiguous or there twice is an error that names it. An empty list hides every
/// device.
Result<std::vector<std::uint32_t>> select_devices(std::string_view list, const std::vector<DeviceProperties>& devices);

}  // namespace xpu::hal
