#include "profiler/sinks/export_source.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include "profiler/sinks/file_output.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/perfetto_sink.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

/// `make_sink` gives the sink that writes to the function it is given.
template <typename MakeSink>
Result<ExportSummary> export_with(Session& session, const std::string& path, MakeSink&& make_sink) {
  XPU_TRY_ASSIGN(const std::unique_ptr<FileOutput> file, FileOutput::create(path));
  auto sink = make_sink([&](std::string_view piece) { return file->write(piece); });
  XPU_TRY(session.run({&sink}));
  ExportSummary summary = sink.summary();
  XPU_TRY_ASSIGN(summary.bytes, file->finish());
  summary.path = path;
  return summary;
}

}  // namespace

Result<ExportSummary> export_chrome(Session& session, const ExportOptions& options) {
  const std::size_t slash = options.path.rfind('/');
  const std::string name = slash == std::string::npos ? options.path : options.path.substr(slash + 1);
  return export_with(session, options.path, [&](ChromeSink::Write write) {
    return ChromeSink(std::move(write), {name, options.device_only, options.progress, options.compatibility, options.metadata});
  });
}

Result<ExportSummary> export_perfetto(Session& session, const ExportOptions& options) {
  return export_with(session, options.path,
                     [&](PerfettoSink::Write write) { return PerfettoSink(std::move(write), {options.device_only, options.progress}); });
}

Result<ExportSummary> export_chrome(const RecordSource& source, const ExportOptions& options) {
  Session session(source);
  return export_chrome(session, options);
}

Result<ExportSummary> export_perfetto(const RecordSource& source, const ExportOptions& options) {
  Session session(source);
  return export_perfetto(session, options);
}

bool is_perfetto_name(std::string_view path) noexcept { return path.ends_with(".pftrace") || path.ends_with(".pftrace.gz"); }

Result<ExportSummary> export_as_named(Session& session, const ExportOptions& options) {
  return is_perfetto_name(options.path) ? export_perfetto(session, options) : export_chrome(session, options);
}

}  // namespace xpu::profiler
