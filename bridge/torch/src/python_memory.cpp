#include <c10/core/CachingDeviceAllocator.h>
#include <pybind11/stl.h>

#include <string_view>

#include "check.hpp"
#include "device_allocator.hpp"
#include "devices.hpp"
#include "pools.hpp"
#include "python_module.hpp"
#include "xpu/runtime/runtime.hpp"

namespace xpu_torch {
namespace {

namespace py = pybind11;
using NoGil = py::call_guard<py::gil_scoped_release>;

int initialized_device(int device) {
  TORCH_CHECK(xpu::is_initialized() && device >= 0 && device < device_count(), "Invalid device argument ", device, ": did you call init?");
  return device;
}

// {"allocated_bytes": {"all": {"current": ...}}, "num_ooms": ...} out of "allocated_bytes.all.current".
py::dict memory_stats(int device) {
  py::dict result;
  caching_allocator(initialized_device(device)).statistics().for_each([&](std::string_view key, std::int64_t value) {
    py::dict inner = result;
    for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      const py::str name(key.substr(0, dot));
      if (!inner.contains(name)) inner[name] = py::dict();
      inner = inner[name].cast<py::dict>();
      key.remove_prefix(dot + 1);
    }
    inner[py::str(key)] = value;
  });
  return result;
}

void set_memory_fraction(double fraction, int device) {
  // torch.xpu's own text for a value that the allocator refuses as well.
  if (!(fraction > 0.0 && fraction <= 1.0)) {
    throw py::value_error("invalid fraction:" + std::string(py::str(py::float_(fraction))) + ". Please set within (0, 1].");
  }
  check(caching_allocator(device).set_memory_fraction(fraction));
}

// Two functions of a program's own, as torch.xpu.memory.XPUPluggableAllocator found them.
struct PluggableFunctions {
  void* (*allocate)(std::size_t, int, void*) = nullptr;
  void (*free)(void*, std::size_t, int, void*) = nullptr;
};

}  // namespace

void bind_memory(py::module_& module) {
  module.def("empty_cache", [] { device_allocator().emptyCache({0, 0}); }, NoGil());
  module.def("memory_stats", &memory_stats);
  module.def("reset_peak_memory_stats", [](int device) { caching_allocator(initialized_device(device)).reset_peak_statistics(); });
  module.def("reset_accumulated_memory_stats",
             [](int device) { caching_allocator(initialized_device(device)).reset_accumulated_statistics(); });
  module.def("memory_info", [](int device) { return device_allocator().getMemoryInfo(static_cast<c10::DeviceIndex>(device)); });
  module.def("memory_fraction", [](int device) { return caching_allocator(device).memory_fraction(); });
  module.def("set_memory_fraction", &set_memory_fraction);

  py::class_<PluggableFunctions>(module, "_xpu_XPUAllocator");
  module.def("custom_allocator", [](std::uintptr_t allocate, std::uintptr_t free) {
    return PluggableFunctions{reinterpret_cast<decltype(PluggableFunctions::allocate)>(allocate),
                              reinterpret_cast<decltype(PluggableFunctions::free)>(free)};
  });
  module.def("change_current_allocator", [](const PluggableFunctions& functions) {
    TORCH_CHECK(functions.allocate != nullptr, "the allocator is the device's own and serves already");
    replace_allocator(functions.allocate, functions.free);
  });
  module.def("current_allocator", [] { return PluggableFunctions(); });
}

void bind_pools(py::module_& module) {
  // One object of Python's: a use of the pool of the device that was current when it was made.
  struct MemoryPool {
    c10::MempoolId_t id;
    int device;
    MemoryPool(const py::object& allocator, bool is_user_created, bool use_on_oom)
        : id(new_pool_id(is_user_created)), device(xpu::Device::current()) {
      TORCH_CHECK_NOT_IMPLEMENTED(allocator.is_none(), "a MemPool has the device's own allocator here, no other one");
      retain_pool(device, id, {.is_for_graphs = !is_user_created, .use_on_oom = use_on_oom});
    }
    ~MemoryPool() { release_pool(device, id); }
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;
  };
  py::class_<MemoryPool>(module, "_XPUMemPool")
      .def(py::init<py::object, bool, bool>(), py::arg("allocator") = py::none(), py::arg("is_user_created") = true,
           py::arg("use_on_oom") = false)
      .def_property_readonly("id", [](const MemoryPool& pool) { return pool.id; })
      .def_property_readonly("allocator", [](const MemoryPool&) { return py::none(); })
      .def("use_count", [](const MemoryPool& pool) { return use_count_of_pool(pool.id); });
  module.def("begin_allocate_current_thread_to_pool", &begin_allocate_to_pool);
  module.def("end_allocate_to_pool", &end_allocate_to_pool);
  module.def("release_pool", &release_pool, NoGil());
  module.def("graph_pool_handle", [] { return new_pool_id(true); });
}

}  // namespace xpu_torch
