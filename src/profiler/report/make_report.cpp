#include "profiler/report/build_report.hpp"
#include "xpu/profiler/report.hpp"

namespace xpu::profiler {

Result<Report> make_report(const trace::Recording& recording, const ReportOptions& options) {
  XPU_TRY_ASSIGN(const trace::Conservation books, trace::check_conservation(recording));
  const RecordingSource source(recording);
  Session session(source);
  XPU_TRY_ASSIGN(Report report, build_report(session, books, options));
  report.program.path = recording.path();
  report.program.finished = recording.finished();
  report.program.damage = recording.damage();
  return report;
}

Result<Report> make_report(Session& session, const ReportOptions& options) {
  XPU_TRY(session.collect_if_live());
  const RecordSource& source = session.source();
  const trace::ReadBatches read_batches = [&](std::span<const trace::RecordKind> kinds, const RecordSource::Visitor& visit) {
    return source.for_each_batch(kinds, visit);
  };
  XPU_TRY_ASSIGN(const trace::Conservation books, trace::check_conservation_of_part(source.processes(), read_batches));
  return build_report(session, books, options);
}

}  // namespace xpu::profiler
