#include <exception>
#include <utility>

#include "python/bindings.hpp"
#include "xpu/base/error.hpp"

namespace xpu::python {
namespace {

void raise(const Error& error) {
  const py::object make = py::module_::import("xpu._errors").attr("make_error");
  const py::object exception = make(to_string(error.code), error.message, error.native_code);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

}  // namespace

void bind_errors(py::module_& module) {
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const BadResult& bad) {
      raise(bad.error());
    }
  });
  // For tests, which compare them with the classes.
  py::list codes;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) codes.append(to_string(static_cast<ErrorCode>(code)));
  module.attr("error_codes") = py::tuple(codes);
}

}  // namespace xpu::python
