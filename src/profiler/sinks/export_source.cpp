#include "profiler/sinks/export_source.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include "profiler/sinks/file_output.hpp"
#include "profiler/sinks/output_registry.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/perfetto_sink.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

NamedSink make_chrome_sink(ChromeSink::Write write, const ExportOptions& options) {
  const std::size_t slash = options.path.rfind('/');
  const std::string name = slash == std::string::npos ? options.path : options.path.substr(slash + 1);
  auto sink = std::make_unique<ChromeSink>(
      std::move(write), ChromeSink::Options{name, options.device_only, options.progress, options.compatibility, options.metadata});
  const ExportSummary* summary = &sink->summary();
  return {std::move(sink), summary};
}

NamedSink make_perfetto_sink(PerfettoSink::Write write, const ExportOptions& options) {
  auto sink = std::make_unique<PerfettoSink>(std::move(write), PerfettoSink::Options{options.device_only, options.progress});
  const ExportSummary* summary = &sink->summary();
  return {std::move(sink), summary};
}

/// What can be said of a trace whose sink is somebody else's.
class CountingSink final : public Sink {
 public:
  void handle_kernel_activity(const KernelActivity& kernel) override { summary.kernels += kernel.timed && kernel.placed ? 1 : 0; }
  Result<> end(const LinkSummary& link) override {
    summary.untimed = link.untimed + link.unplaced;
    return {};
  }
  ExportSummary summary;
};

Result<ExportSummary> export_to_registered(Session& session, const ExportOptions& options) {
  XPU_TRY_ASSIGN(const std::unique_ptr<Sink> sink, make_output(options));
  CountingSink counter;
  XPU_TRY(session.run({sink.get(), &counter}));
  counter.summary.path = options.path;
  return counter.summary;
}

/// `make_sink` gives the sink that writes to the function it is given.
Result<ExportSummary> export_with(Session& session, const ExportOptions& options,
                                  NamedSink (*make_sink)(std::function<Result<>(std::string_view)>, const ExportOptions&)) {
  if (!output_scheme(options.path).empty()) return export_to_registered(session, options);
  const std::string path(without_file_scheme(options.path));
  XPU_TRY_ASSIGN(const std::unique_ptr<FileOutput> file, FileOutput::create(path));
  const NamedSink made = make_sink([&](std::string_view piece) { return file->write(piece); }, options);
  XPU_TRY(session.run({made.sink.get()}));
  ExportSummary summary = *made.summary;
  XPU_TRY_ASSIGN(summary.bytes, file->finish());
  summary.path = path;
  return summary;
}

}  // namespace

NamedSink make_sink_as_named(std::function<Result<>(std::string_view)> write, const ExportOptions& options) {
  return is_perfetto_name(options.path) ? make_perfetto_sink(std::move(write), options) : make_chrome_sink(std::move(write), options);
}

Result<ExportSummary> export_chrome(Session& session, const ExportOptions& options) {
  return export_with(session, options, make_chrome_sink);
}

Result<ExportSummary> export_perfetto(Session& session, const ExportOptions& options) {
  return export_with(session, options, make_perfetto_sink);
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
