#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/host/options.hpp"
#include "xpu/hal/properties.hpp"

namespace xpu::drivers::host {

/// What the system says of its processor; empty and 0 where it says nothing.
struct ProcessorFacts {
  std::string vendor_id;
  std::string model_name;
  std::uint32_t family = 0, model = 0, stepping = 0;
  std::uint32_t clock_mhz = 0;
  std::vector<std::string> flags;

  bool has_flag(std::string_view flag) const;
};

/// From the text of /proc/cpuinfo: the first processor's entry.
ProcessorFacts parse_processor_facts(std::string_view text);

/// Of this machine; read once per process, so that two calls are equal.
const ProcessorFacts& processor_facts();

/// The properties of one device. Its UUID is a hash over the machine's id (/etc/machine-id), the processor's vendor, family, model and
/// stepping, and the ordinal: the same in every process, also after a new start. `options` without defaults left open.
DeviceProperties device_properties(const ProcessorFacts& facts, std::string_view machine_id, const Options& options, std::uint32_t ordinal);
/// The same of this machine.
DeviceProperties device_properties(const Options& options, std::uint32_t ordinal);

}  // namespace xpu::drivers::host
