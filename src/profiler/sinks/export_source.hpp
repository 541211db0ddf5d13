#pragma once

#include "xpu/base/result.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/record_source.hpp"

namespace xpu::profiler {

/// `export_chrome` for any source of records.
Result<ExportSummary> export_source(const RecordSource& source, const ExportOptions& options);

}  // namespace xpu::profiler
