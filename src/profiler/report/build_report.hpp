#pragma once

#include "xpu/base/result.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/trace/conservation.hpp"

namespace xpu::profiler {

/// `make_report` for any session, with the books of its queues.
Result<Report> build_report(Session& session, const trace::Conservation& books, const ReportOptions& options);

/// The same over any source of records.
Result<Report> build_report(const RecordSource& source, const trace::Conservation& books, const ReportOptions& options);

}  // namespace xpu::profiler
