#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "xpu/base/export.hpp"

namespace xpu {

/// What kind of processor a device is.
enum class DeviceType : std::uint8_t { cpu, gpu, accelerator, host };
/// "cpu", "gpu", "accelerator" or "host".
XPU_EXPORT const char* to_string(DeviceType type) noexcept;

/// 16 bytes that name a device for good: the same in every process and after every start.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const Uuid&) const = default;
};
/// "00112233-4455-6677-8899-aabbccddeeff", 36 characters.
XPU_EXPORT std::string to_string(const Uuid& uuid);

/// Where a device sits; all zero when it has no such place.
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0, device = 0, function = 0;
  bool operator==(const PciAddress&) const = default;
};

/// Everything that is known of a device. Two reads of one device are equal. What a driver cannot tell is 0, empty or false.
struct DeviceProperties {
  std::string name;
  std::string platform_name;
  std::string vendor;
  std::string driver_version;
  std::string version;  ///< Of the device's API, e.g. "OpenCL 3.0"; empty when there is none.
  DeviceType type = DeviceType::cpu;
  std::uint32_t device_id = 0;  ///< Of the PCI device; for a CPU (family << 16 | model << 8 | stepping).
  std::uint64_t architecture = 0;
  Uuid uuid;
  PciAddress pci;

  std::uint32_t max_compute_units = 0;
  std::uint32_t gpu_eu_count = 0;
  std::uint32_t gpu_eu_count_per_subslice = 0;
  std::uint32_t gpu_eu_simd_width = 0;
  std::uint32_t gpu_hw_threads_per_eu = 0;
  std::uint32_t gpu_subslice_count = 0;
  std::uint64_t max_work_group_size = 0;
  std::array<std::uint64_t, 3> max_work_item_sizes{};
  std::array<std::uint64_t, 3> max_group_count{};
  std::uint32_t max_work_item_dimensions = 0;
  std::uint32_t max_num_sub_groups = 0;
  std::vector<std::uint32_t> sub_group_sizes;
  std::uint32_t max_clock_frequency_mhz = 0;
  std::uint32_t memory_clock_rate_mhz = 0;
  std::uint32_t memory_bus_width_bits = 0;
  std::uint32_t address_bits = 0;
  std::uint64_t max_parameter_bytes = 0;  ///< Of all arguments of one launch.

  std::uint64_t total_memory_bytes = 0;
  std::uint64_t max_allocation_bytes = 0;
  std::uint64_t local_memory_bytes = 0;
  std::uint64_t last_level_cache_bytes = 0;
  std::uint32_t cache_line_bytes = 0;
  std::uint32_t memory_alignment_bytes = 0;  ///< Of every allocation.

  bool has_fp16 = false;
  bool has_fp64 = false;
  bool has_atomic64 = false;
  bool has_bfloat16_conversions = false;
  bool has_subgroup_matrix_multiply_accumulate = false;
  bool has_subgroup_matrix_multiply_accumulate_tensor_float32 = false;
  bool has_subgroup_2d_block_io = false;
  bool is_integrated_gpu = false;  ///< It shares the host's memory.

  std::uint32_t max_sub_devices = 0;
  std::uint64_t timer_resolution_ns = 0;  ///< Of device timestamps, at least 1.
  /// Elements of char, short, int, long, float, double and half that one vector instruction takes; 0 = the type is not there.
  std::array<std::uint32_t, 7> native_vector_widths{};
  std::array<std::uint32_t, 7> preferred_vector_widths{};

  bool operator==(const DeviceProperties&) const = default;
};

/// On one line in a fixed order: name, platform_name, type, device_id, uuid, driver_version, total_memory (MB), local_mem_size (KB),
/// max_compute_units, memory_clock_rate, memory_bus_width, gpu_eu_count, gpu_subslice_count, max_work_group_size, max_num_sub_groups,
/// sub_group_sizes, has_fp16, has_fp64, has_atomic64.
XPU_EXPORT std::string to_string(const DeviceProperties& properties);

}  // namespace xpu
