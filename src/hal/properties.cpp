#include "xpu/hal/properties.hpp"

#include <fmt/format.h>

#include <iterator>

namespace xpu {

const char* to_string(DeviceType type) noexcept {
  switch (type) {
    case DeviceType::cpu: return "cpu";
    case DeviceType::gpu: return "gpu";
    case DeviceType::accelerator: return "accelerator";
    case DeviceType::host: return "host";
  }
  return "unknown";
}

std::string to_string(const Uuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    fmt::format_to(std::back_inserter(text), "{:02x}", uuid.bytes[i]);
  }
  return text;
}

std::string to_string(const DeviceProperties& properties) {
  return fmt::format(
      "DeviceProperties(name='{}', platform_name='{}', type='{}', device_id=0x{:X}, uuid={}, driver_version='{}', total_memory={}MB, "
      "local_mem_size={}KB, max_compute_units={}, memory_clock_rate={}MHz, memory_bus_width={}-bit, gpu_eu_count={}, "
      "gpu_subslice_count={}, max_work_group_size={}, max_num_sub_groups={}, sub_group_sizes=[{}], has_fp16={}, has_fp64={}, "
      "has_atomic64={})",
      properties.name, properties.platform_name, to_string(properties.type), properties.device_id, to_string(properties.uuid),
      properties.driver_version, properties.total_memory_bytes >> 20, properties.local_memory_bytes >> 10, properties.max_compute_units,
      properties.memory_clock_rate_mhz, properties.memory_bus_width_bits, properties.gpu_eu_count, properties.gpu_subslice_count,
      properties.max_work_group_size, properties.max_num_sub_groups, fmt::join(properties.sub_group_sizes, ", "),
      static_cast<int>(properties.has_fp16), static_cast<int>(properties.has_fp64), static_cast<int>(properties.has_atomic64));
}

}  // namespace xpu
