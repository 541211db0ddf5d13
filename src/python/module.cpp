#include "python/bindings.hpp"
#include "xpu/base/version.hpp"

PYBIND11_MODULE(_core, module) {
  module.doc() = "What the package xpu needs of libxpu.";
  module.def("version", &xpu::version);
  xpu::python::bind_errors(module);
  xpu::python::bind_devices(module);
  xpu::python::bind_streams(module);
  xpu::python::bind_profiler(module);
}
