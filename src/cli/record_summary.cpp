#include "cli/record_summary.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "cli/console.hpp"
#include "cli/recording_name.hpp"
#include "cli/text.hpp"

namespace xpu::cli {
namespace {

std::string busy_text(const profiler::Report& report) {
  std::optional<std::uint64_t> busy_ns;
  for (const auto& device : report.devices) {
    if (device.busy_ns) busy_ns = busy_ns.value_or(0) + *device.busy_ns;
  }
  if (!busy_ns) return "device busy not known";
  return fmt::format("{} busy {}", report.devices.size() > 1 ? "devices" : "device", duration_text(*busy_ns));
}

std::string causes_text(const profiler::Report& report) {
  std::map<std::string, std::uint64_t> causes;
  for (const auto& loss : report.losses) causes[loss.cause] += loss.count;
  std::string text;
  for (const auto& [cause, count] : causes) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cause, with_thousands(count));
  return text.empty() ? "cause not known" : text;
}

}  // namespace

std::string summary_line(const profiler::Report& report, const std::string& shown_path) {
  std::uint64_t kernels = 0;
  for (const auto& kernel : report.kernels) kernels += kernel.calls;
  const auto& books = report.conservation;
  std::string line = fmt::format("{} ({}), {}, {} lost", counted(books.submitted, "command"), counted(kernels, "kernel"), busy_text(report),
                                 with_thousands(books.lost));
  if (books.filtered > 0) line += fmt::format(", {} not wanted", with_thousands(books.filtered));
  return line + fmt::format(" -> {}   next: xpu report {}", shell_word(shown_path), shell_word(without_suffix(shown_path)));
}

std::vector<std::string> summary_warnings(const profiler::Report& report) {
  const auto& books = report.conservation;
  std::vector<std::string> lines;
  if (books.lost > 0) lines.push_back(fmt::format("{} lost ({})", counted(books.lost, "command"), causes_text(report)));
  if (books.other_records_lost > 0)
    lines.push_back(fmt::format("{} of waits, calls or memory lost", counted(books.other_records_lost, "record")));
  if (books.pending > 0) {
    lines.push_back(fmt::format("{} had not finished when the program ended{}", counted(books.pending, "command"),
                                books.pending_commands.empty() ? "" : ", the oldest: " + books.pending_commands.front().name));
  }
  if (books.untimed > 0) lines.push_back(fmt::format("the driver gave no times for {}", counted(books.untimed, "command")));
  if (books.unexplained != 0)
    lines.push_back(
        fmt::format("{} commands are unexplained: the books do not balance, which is a fault of xpu (xpu check)", books.unexplained));
  if (!report.program.damage.empty()) lines.push_back(fmt::format("the recording is damaged: {}", report.program.damage));
  return lines;
}

void say_summary(const std::string& path, const std::string& working_directory, const trace::RecorderStatus& status) {
  const std::string shown = short_path(path, working_directory);
  const auto recording = trace::Recording::open(path);
  if (!recording) return say("{} cannot be read back: {}", shown, recording.error().message);
  const auto report = profiler::make_report(*recording, {});
  if (!report) return say("{} cannot be read back: {}", shown, report.error().message);

  for (const std::string& warning : summary_warnings(*report)) say_text(warning);
  if (status.processes_attached > 0 && report->conservation.submitted == 0) {
    say_text(report->conservation.filtered > 0
                 ? "OpenCL or libxpu was used, but every command was submitted while recording was paused or filtered out"
                 : "OpenCL or libxpu was used, but no command was submitted");
  }
  say_text(summary_line(*report, shown));
}

}  // namespace xpu::cli
