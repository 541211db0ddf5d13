#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "python/bindings.hpp"
#include "xpu/hal/properties.hpp"
#include "xpu/runtime/device.hpp"
#include "xpu/runtime/runtime.hpp"

namespace xpu::python {
namespace {

/// Lives for ever, as the properties of a device do.
const DeviceProperties& properties_of(int device) { return value(Device::get(device)).properties(); }

std::string pci_text(const PciAddress& pci) {
  if (pci == PciAddress{}) return {};
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.device, pci.function);
  return text;
}

void bind_properties(py::module_& module) {
  py::class_<Uuid>(module, "Uuid", "16 bytes that name a device for good.")
      .def_property_readonly("bytes", [](const Uuid& uuid) { return std::vector<int>(uuid.bytes.begin(), uuid.bytes.end()); })
      .def("__str__", [](const Uuid& uuid) { return to_string(uuid); })
      .def("__repr__", [](const Uuid& uuid) { return "Uuid('" + to_string(uuid) + "')"; })
      .def("__hash__", [](const Uuid& uuid) { return py::hash(py::str(to_string(uuid))); })
      .def("__eq__", [](const Uuid& one, const Uuid& other) { return one == other; }, py::is_operator());

  using Properties = DeviceProperties;
  py::class_<Properties>(module, "DeviceProperties", "What is known of a device; what its driver cannot tell is 0, empty or False.")
      .def_readonly("name", &Properties::name)
      .def_readonly("platform_name", &Properties::platform_name)
      .def_readonly("vendor", &Properties::vendor)
      .def_readonly("driver_version", &Properties::driver_version)
      .def_readonly("version", &Properties::version)
      .def_property_readonly("type", [](const Properties& properties) { return to_string(properties.type); })
      .def_readonly("device_id", &Properties::device_id)
      .def_readonly("architecture", &Properties::architecture)
      .def_readonly("uuid", &Properties::uuid)
      .def_property_readonly("pci_address", [](const Properties& properties) { return pci_text(properties.pci); })
      .def_readonly("max_compute_units", &Properties::max_compute_units)
      .def_readonly("gpu_eu_count", &Properties::gpu_eu_count)
      .def_readonly("gpu_eu_count_per_subslice", &Properties::gpu_eu_count_per_subslice)
      .def_readonly("gpu_eu_simd_width", &Properties::gpu_eu_simd_width)
      .def_readonly("gpu_hw_threads_per_eu", &Properties::gpu_hw_threads_per_eu)
      .def_readonly("gpu_subslice_count", &Properties::gpu_subslice_count)
      .def_readonly("max_work_group_size", &Properties::max_work_group_size)
      .def_readonly("max_work_item_sizes", &Properties::max_work_item_sizes)
      .def_readonly("max_group_count", &Properties::max_group_count)
      .def_readonly("max_work_item_dimensions", &Properties::max_work_item_dimensions)
      .def_readonly("max_num_sub_groups", &Properties::max_num_sub_groups)
      .def_readonly("sub_group_sizes", &Properties::sub_group_sizes)
      .def_readonly("max_clock_frequency", &Properties::max_clock_frequency_mhz)
      .def_readonly("memory_clock_rate", &Properties::memory_clock_rate_mhz)
      .def_readonly("memory_bus_width", &Properties::memory_bus_width_bits)
      .def_readonly("address_bits", &Properties::address_bits)
      .def_readonly("max_parameter_size", &Properties::max_parameter_bytes)
      .def_readonly("total_memory", &Properties::total_memory_bytes)
      .def_readonly("max_mem_alloc_size", &Properties::max_allocation_bytes)
      .def_readonly("local_mem_size", &Properties::local_memory_bytes)
      .def_readonly("last_level_cache_size", &Properties::last_level_cache_bytes)
      .def_readonly("cache_line_size", &Properties::cache_line_bytes)
      .def_readonly("mem_base_addr_align", &Properties::memory_alignment_bytes)
      .def_readonly("has_fp16", &Properties::has_fp16)
      .def_readonly("has_fp64", &Properties::has_fp64)
      .def_readonly("has_atomic64", &Properties::has_atomic64)
      .def_readonly("has_bfloat16_conversions", &Properties::has_bfloat16_conversions)
      .def_readonly("has_subgroup_matrix_multiply_accumulate", &Properties::has_subgroup_matrix_multiply_accumulate)
      .def_readonly("has_subgroup_matrix_multiply_accumulate_tensor_float32",
                    &Properties::has_subgroup_matrix_multiply_accumulate_tensor_float32)
      .def_readonly("has_subgroup_2d_block_io", &Properties::has_subgroup_2d_block_io)
      .def_readonly("is_integrated_gpu", &Properties::is_integrated_gpu)
      .def_readonly("partition_max_sub_devices", &Properties::max_sub_devices)
      .def_readonly("profiling_timer_resolution", &Properties::timer_resolution_ns)
      .def_readonly("native_vector_widths", &Properties::native_vector_widths)
      .def_readonly("preferred_vector_widths", &Properties::preferred_vector_widths)
      .def("__repr__", [](const Properties& properties) { return to_string(properties); })
      .def("__eq__", [](const Properties& one, const Properties& other) { return one == other; }, py::is_operator());
}

void bind_reports(py::module_& module) {
  py::class_<DeviceReport>(module, "DeviceReport", "A device that a driver offers; index is -1 where it is hidden, for a reason.")
      .def_readonly("index", &DeviceReport::index)
      .def_readonly("reason", &DeviceReport::reason)
      .def_readonly("properties", &DeviceReport::properties);
  py::class_<DriverReport>(module, "DriverReport", "A driver that is built in, and why it offers nothing where it does not.")
      .def_readonly("name", &DriverReport::name)
      .def_readonly("is_selected", &DriverReport::is_selected)
      .def_readonly("reason", &DriverReport::reason)
      .def_readonly("devices", &DriverReport::devices);
  py::class_<RuntimeReport>(module, "RuntimeReport", "Drivers and devices; error is that of XPU_DRIVER or XPU_VISIBLE_DEVICES.")
      .def_readonly("drivers", &RuntimeReport::drivers)
      .def_readonly("error", &RuntimeReport::error);
  module.def("describe_runtime", &describe_runtime, WithoutGil());
}

}  // namespace

void bind_devices(py::module_& module) {
  bind_properties(module);
  bind_reports(module);
  module.def("initialize", [] { value(initialize()); }, WithoutGil());
  module.def("is_initialized", &is_initialized);
  module.def("is_in_bad_fork", &is_in_bad_fork);
  // Both open drivers, which may take long.
  module.def("is_available", &is_available, WithoutGil());
  module.def("device_count", [] { return value(Device::count()); }, WithoutGil());
  module.def("device_properties", &properties_of, py::arg("device"), py::return_value_policy::reference, WithoutGil());
  module.def("device_driver", [](int device) { return value(Device::get(device)).driver(); }, py::arg("device"), WithoutGil());
  module.def("current_device", &Device::current);
  module.def("set_device", [](int device) { value(Device::set_current(device)); }, py::arg("device"), WithoutGil());
  module.def("synchronize", [](int device) { value(synchronize(device)); }, py::arg("device"), WithoutGil());
  module.def(
      "memory_info",
      [](int device) {
        const MemoryInfo info = value(value(Device::get(device)).memory_info());
        return std::pair(info.free_bytes, info.total_bytes);
      },
      py::arg("device"), WithoutGil());
}

}  // namespace xpu::python
