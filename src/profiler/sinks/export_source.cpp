#include "profiler/sinks/export_source.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include "profiler/sinks/file_output.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {

Result<ExportSummary> export_source(const RecordSource& source, const ExportOptions& options) {
  XPU_TRY_ASSIGN(const std::unique_ptr<FileOutput> file, FileOutput::create(options.path));
  const std::size_t slash = options.path.rfind('/');
  ChromeSink sink([&](std::string_view piece) { return file->write(piece); },
                  {slash == std::string::npos ? options.path : options.path.substr(slash + 1), options.device_only, options.progress});
  Session session(source);
  session.add_sink(sink);
  XPU_TRY(session.run());
  ExportSummary summary = sink.summary();
  XPU_TRY_ASSIGN(summary.bytes, file->finish());
  summary.path = options.path;
  return summary;
}

}  // namespace xpu::profiler
