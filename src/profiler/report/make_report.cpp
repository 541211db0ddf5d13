#include "profiler/report/build_report.hpp"
#include "xpu/profiler/report.hpp"

namespace xpu::profiler {

Result<Report> make_report(const trace::Recording& recording, const ReportOptions& options) {
  XPU_TRY_ASSIGN(const trace::Conservation books, trace::check_conservation(recording));
  XPU_TRY_ASSIGN(Report report, build_report(RecordingSource(recording), books, options));
  report.program.path = recording.path();
  report.program.finished = recording.finished();
  report.program.damage = recording.damage();
  return report;
}

}  // namespace xpu::profiler
