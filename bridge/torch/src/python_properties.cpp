#include <pybind11/stl.h>

#include "check.hpp"
#include "devices.hpp"
#include "python_module.hpp"

namespace xpu_torch {
namespace {

namespace py = pybind11;

py::bytes bytes_of(const xpu::Uuid& uuid) { return {reinterpret_cast<const char*>(uuid.bytes.data()), uuid.bytes.size()}; }

}  // namespace

void bind_properties(py::module_& module) {
  using Properties = xpu::DeviceProperties;
  py::class_<xpu::Uuid>(module, "_XPUuuid")
      .def_property_readonly("bytes", [](const xpu::Uuid& uuid) { return std::vector<std::uint8_t>(uuid.bytes.begin(), uuid.bytes.end()); })
      .def("__str__", [](const xpu::Uuid& uuid) { return xpu::to_string(uuid); })
      .def(
          "__eq__", [](const xpu::Uuid& self, const xpu::Uuid& other) { return self == other; }, py::is_operator())
      .def("__hash__", [](const xpu::Uuid& uuid) { return py::hash(bytes_of(uuid)); });

  // Of devices, which live for ever.
  py::class_<Properties, std::unique_ptr<Properties, py::nodelete>>(module, "_XpuDeviceProperties")
      .def_readonly("name", &Properties::name)
      .def_readonly("platform_name", &Properties::platform_name)
      .def_readonly("vendor", &Properties::vendor)
      .def_readonly("device_id", &Properties::device_id)
      .def_readonly("driver_version", &Properties::driver_version)
      .def_readonly("version", &Properties::version)
      .def_readonly("max_compute_units", &Properties::max_compute_units)
      .def_readonly("gpu_eu_count", &Properties::gpu_eu_count)
      .def_readonly("gpu_subslice_count", &Properties::gpu_subslice_count)
      .def_readonly("max_work_group_size", &Properties::max_work_group_size)
      .def_readonly("max_num_sub_groups", &Properties::max_num_sub_groups)
      .def_readonly("memory_clock_rate", &Properties::memory_clock_rate_mhz)
      .def_readonly("memory_bus_width", &Properties::memory_bus_width_bits)
      .def_readonly("sub_group_sizes", &Properties::sub_group_sizes)
      .def_readonly("local_mem_size", &Properties::local_memory_bytes)
      .def_readonly("last_level_cache_size", &Properties::last_level_cache_bytes)
      .def_readonly("has_fp16", &Properties::has_fp16)
      .def_readonly("has_fp64", &Properties::has_fp64)
      .def_readonly("has_atomic64", &Properties::has_atomic64)
      .def_readonly("has_bfloat16_conversions", &Properties::has_bfloat16_conversions)
      .def_readonly("has_subgroup_matrix_multiply_accumulate", &Properties::has_subgroup_matrix_multiply_accumulate)
      .def_readonly("has_subgroup_matrix_multiply_accumulate_tensor_float32",
                    &Properties::has_subgroup_matrix_multiply_accumulate_tensor_float32)
      .def_readonly("has_subgroup_2d_block_io", &Properties::has_subgroup_2d_block_io)
      .def_readonly("is_integrated_gpu", &Properties::is_integrated_gpu)
      .def_readonly("total_memory", &Properties::total_memory_bytes)
      .def_readonly("architecture", &Properties::architecture)
      .def_property_readonly("type", [](const Properties& properties) { return std::string(xpu::to_string(properties.type)); })
      .def_readonly("uuid", &Properties::uuid)
      .def(
          "__eq__", [](const Properties& self, const Properties& other) { return self == other; }, py::is_operator())
      .def("__hash__", [](const Properties& properties) { return py::hash(bytes_of(properties.uuid)); })
      .def("__repr__", [](const Properties& properties) { return "_Xpu" + xpu::to_string(properties); });

  module.def(
      "get_device_properties", [](int device) { return const_cast<Properties*>(&check(xpu::Device::get(device)).properties()); },
      py::return_value_policy::reference);
}

}  // namespace xpu_torch
