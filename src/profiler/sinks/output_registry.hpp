#pragma once

#include <memory>

#include "xpu/base/result.hpp"
#include "xpu/profiler/outputs.hpp"

namespace xpu::profiler {

/// The sink for a path with a scheme. Errors: those of `check_output` and of the factory; internal when the factory made nothing.
Result<std::unique_ptr<Sink>> make_output(const ExportOptions& options);

}  // namespace xpu::profiler
