#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "xpu/base/result.hpp"

/// The parts of the module `xpu._core`. Thin: what can be said in Python is said in `xpu/`. Whatever may wait is called without the GIL.
namespace xpu::python {

namespace py = pybind11;
using WithoutGil = py::call_guard<py::gil_scoped_release>;

/// From here on a BadResult that leaves a bound function is the exception of `xpu._errors` that its code stands for.
void bind_errors(py::module_& module);
void bind_devices(py::module_& module);
void bind_streams(py::module_& module);
void bind_profiler(py::module_& module);

/// The index of whatever names a device. With the GIL.
inline int device_index(const py::object& device) { return py::module_::import("xpu._devices").attr("device_index")(device).cast<int>(); }

/// The value, or a BadResult. With or without the GIL.
template <typename T>
T value(Result<T> result) {
  return std::move(result).value();
}

}  // namespace xpu::python
