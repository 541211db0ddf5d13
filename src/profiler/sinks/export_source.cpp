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
template <typename MakeSink>
Result<ExportSummary> export_with(Session& session, const ExportOptions& options, MakeSink&& make_sink) {
  if (!output_scheme(options.path).empty()) return export_to_registered(session, options);
  const std::string path(without_file_scheme(options.path));
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
  return export_with(session, options, [&](ChromeSink::Write write) {
    return ChromeSink(std::move(write), {name, options.device_only, options.progress, options.compatibility, options.metadata});
  });
}

Result<ExportSummary> export_perfetto(Session& session, const ExportOptions& options) {
  return export_with(session, options,
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
