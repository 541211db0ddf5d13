#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "xpu/base/result.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// A sink that writes a trace in the form that a name asks for, and where it counts.
struct NamedSink {
  std::unique_ptr<Sink> sink;
  const ExportSummary* summary = nullptr;
};
NamedSink make_sink_as_named(std::function<Result<>(std::string_view)> write, const ExportOptions& options);

/// `export_chrome` and `export_perfetto` for any source of records.
Result<ExportSummary> export_chrome(const RecordSource& source, const ExportOptions& options);
Result<ExportSummary> export_perfetto(const RecordSource& source, const ExportOptions& options);

}  // namespace xpu::profiler
