#include "xpu/profiler/report.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/recording_name.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::cli {
namespace {

int fail(const Error& error) {
  say("{}", error.message);
  return error.code == ErrorCode::invalid_argument ? kUsage : kFailed;
}

bool wants_color() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr && terminal != nullptr && std::string_view(terminal) != "dumb";
}

}  // namespace

int report(const ReportRequest& request) {
  const auto name = find_recording(request.name);
  if (!name) return fail(name.error());
  const auto recording = trace::Recording::open(*name);
  if (!recording) {
    say("{}", recording.error().message);
    return kFailed;
  }
  if (!recording->finished()) say("{}: recording was not finished", recording->path());
  if (!recording->damage().empty()) say("{} is damaged: {}", recording->path(), recording->damage());

  profiler::ReportOptions options = request.options;
  options.width = terminal_columns();
  options.color = wants_color();
  const auto made = profiler::make_report(*recording, options);
  if (!made) return fail(made.error());

  std::string text;
  switch (request.format) {
    case Format::text: text = profiler::report_text(*made, options); break;
    case Format::json: text = profiler::report_json(*made); break;
    case Format::csv: text = profiler::report_csv(*made, request.table); break;
  }
  if (request.format == Format::json && !text.ends_with('\n')) text += '\n';
  const auto printed = print(text);
  return printed ? kOk : fail(printed.error());
}

}  // namespace xpu::cli
