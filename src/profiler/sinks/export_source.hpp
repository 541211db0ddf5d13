#pragma once

#include "xpu/base/result.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/record_source.hpp"

namespace xpu::profiler {

/// `export_chrome` and `export_perfetto` for any source of records.
Result<ExportSummary> export_chrome(const RecordSource& source, const ExportOptions& options);
Result<ExportSummary> export_perfetto(const RecordSource& source, const ExportOptions& options);

}  // namespace xpu::profiler
