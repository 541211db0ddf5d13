#pragma once

#include <map>
#include <optional>
#include <string>

#include "xpu/base/result.hpp"
#include "xpu/runtime/device.hpp"
#include "xpu/runtime/runtime.hpp"

/// What `xpu info` says. Opens nothing itself.
namespace xpu::cli {

/// What only an opened device tells.
struct OpenedDevice {
  std::string error;  ///< Why it could not be opened; then the rest means nothing.
  hal::Capabilities capabilities;
  hal::ClockInfo clock;
  std::optional<MemoryInfo> memory;  ///< Nothing when the device has no memory of its own.
};

/// The drivers and devices of a process, and those devices that were opened, by index.
struct Inventory {
  RuntimeReport report;
  std::map<int, OpenedDevice> opened;
};

/// The drivers, and each device on a line; where `columns` (0: no limit) are too few for that, on as many lines as it takes.
std::string info_text(const Inventory& inventory, int columns);
/// Everything that is known of each device; of `device` alone, and without the drivers, when it is not negative.
std::string properties_text(const Inventory& inventory, int columns, int device = -1);
/// The same as one JSON document, schema "xpu.info/1".
std::string info_json(const Inventory& inventory, int device = -1);

}  // namespace xpu::cli
