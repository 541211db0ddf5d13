#pragma once

#include <torch/csrc/utils/pybind.h>

/// What of the module is bound where.
namespace xpu_torch {

void bind_memory(pybind11::module_& module);
void bind_history(pybind11::module_& module);
void bind_pools(pybind11::module_& module);

}  // namespace xpu_torch
