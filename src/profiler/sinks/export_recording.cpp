#include "profiler/sinks/export_source.hpp"
#include "xpu/profiler/export.hpp"

namespace xpu::profiler {

Result<ExportSummary> export_chrome(const trace::Recording& recording, const ExportOptions& options) {
  return export_chrome(RecordingSource(recording), options);
}

Result<ExportSummary> export_perfetto(const trace::Recording& recording, const ExportOptions& options) {
  return export_perfetto(RecordingSource(recording), options);
}

}  // namespace xpu::profiler
