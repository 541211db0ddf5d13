#include "cli/check.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/check_trace.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/recording_name.hpp"
#include "cli/text.hpp"
#include "xpu/profiler/trace_checker.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string device_name(const profiler::Report& report, std::uint32_t device) {
  if (device >= report.devices.size()) return fmt::format("device {}", device);
  return fmt::format("device {} ({})", device, printable(report.devices[device].name));
}

Json books_json(const auto& books) {
  return {{"submitted", books.submitted},    {"recorded", books.recorded}, {"lost", books.lost},
          {"pending", books.pending},        {"untimed", books.untimed},   {"failed", books.failed},
          {"unexplained", books.unexplained}};
}

}  // namespace

std::vector<std::string> find_problems(const profiler::Report& report) {
  std::vector<std::string> problems;
  for (const auto& queue : report.conservation.queues) {
    if (queue.unexplained == 0) continue;
    problems.push_back(fmt::format("queue {} of process {}: {} unexplained ({} submitted, {} recorded, {} lost, {} pending)", queue.queue,
                                   queue.pid, queue.unexplained, queue.submitted, queue.recorded, queue.lost, queue.pending));
  }
  if (problems.empty() && report.conservation.unexplained != 0)
    problems.push_back(fmt::format("{} commands are unexplained", report.conservation.unexplained));
  if (!report.program.damage.empty()) problems.push_back(fmt::format("damage: {}", printable(report.program.damage)));
  return problems;
}

std::string check_text(const profiler::Report& report) {
  const auto& books = report.conservation;
  std::string text = fmt::format("{}\n", printable(report.program.path));
  auto out = std::back_inserter(text);
  if (!report.program.finished) fmt::format_to(out, "  recording was not finished: the recorder ended first, or still runs\n");

  fmt::format_to(out, "\n  {:>8} {:>6} {:>12} {:>12} {:>8} {:>8} {:>8} {:>8} {:>11}\n", "process", "queue", "submitted", "recorded", "lost",
                 "pending", "untimed", "failed", "unexplained");
  const auto row = [&](const std::string& process, const std::string& queue, const auto& line) {
    fmt::format_to(out, "  {:>8} {:>6} {:>12} {:>12} {:>8} {:>8} {:>8} {:>8} {:>11}\n", process, queue, with_thousands(line.submitted),
                   with_thousands(line.recorded), with_thousands(line.lost), with_thousands(line.pending), with_thousands(line.untimed),
                   with_thousands(line.failed), line.unexplained);
  };
  for (const auto& queue : books.queues) row(fmt::format("{}", queue.pid), fmt::format("{}", queue.queue), queue);
  row("all", "", books);
  fmt::format_to(out, "\n");

  if (books.filtered > 0) fmt::format_to(out, "  not wanted (paused or filtered): {}\n", with_thousands(books.filtered));
  if (books.refused > 0) fmt::format_to(out, "  refused by the driver: {}\n", with_thousands(books.refused));
  if (books.other_records_lost > 0)
    fmt::format_to(out, "  lost besides, records of waits, calls and memory: {}\n", with_thousands(books.other_records_lost));
  for (const auto& loss : report.losses) {
    fmt::format_to(out, "  lost in queue {} of process {}: {} ({})\n", loss.queue, loss.pid, with_thousands(loss.count),
                   printable(loss.cause));
  }
  for (const auto& pending : books.pending_commands) {
    fmt::format_to(out, "  pending in queue {} of process {}: {}, submitted {} after the start\n", pending.queue, pending.pid,
                   printable(pending.name), duration_text(pending.enter_ns < 0 ? 0 : static_cast<std::uint64_t>(pending.enter_ns)));
  }
  for (const auto& clock : report.clocks) {
    fmt::format_to(out, "  clock of {} in process {}: {}", device_name(report, clock.device), clock.pid,
                   counted(clock.readings, "reading"));
    if (clock.error_median_ns && clock.error_max_ns)
      fmt::format_to(out, ", error at most {} (median {})", duration_text(*clock.error_max_ns), duration_text(*clock.error_median_ns));
    fmt::format_to(out, "\n");
  }

  const std::vector<std::string> problems = find_problems(report);
  for (const std::string& problem : problems) fmt::format_to(out, "WRONG: {}\n", problem);
  if (problems.empty()) {
    fmt::format_to(out, "OK: {}, {} lost, {} pending, nothing unexplained\n", counted(books.submitted, "command"),
                   with_thousands(books.lost), with_thousands(books.pending));
  }
  return text;
}

std::string check_json(const profiler::Report& report) {
  const auto& books = report.conservation;
  Json totals = books_json(books);
  totals["filtered"] = books.filtered;
  totals["refused"] = books.refused;
  totals["other_records_lost"] = books.other_records_lost;
  Json queues = Json::array();
  for (const auto& queue : books.queues) {
    Json entry = {{"process", queue.pid}, {"queue", queue.queue}};
    entry.update(books_json(queue));
    queues.push_back(std::move(entry));
  }
  Json pending = Json::array();
  for (const auto& command : books.pending_commands)
    pending.push_back({{"name", command.name}, {"process", command.pid}, {"queue", command.queue}, {"enter_ns", command.enter_ns}});
  Json losses = Json::array();
  for (const auto& loss : report.losses)
    losses.push_back({{"cause", loss.cause}, {"process", loss.pid}, {"queue", loss.queue}, {"count", loss.count}});
  Json clocks = Json::array();
  for (const auto& clock : report.clocks) {
    clocks.push_back({{"device", clock.device},
                      {"process", clock.pid},
                      {"readings", clock.readings},
                      {"error_ns", {{"median", or_null(clock.error_median_ns)}, {"max", or_null(clock.error_max_ns)}}}});
  }
  const std::vector<std::string> problems = find_problems(report);
  const Json document = {{"schema", "xpu.check/1"},
                         {"path", report.program.path},
                         {"ok", problems.empty()},
                         {"problems", problems},
                         {"finished", report.program.finished},
                         {"damage", report.program.damage.empty() ? Json(nullptr) : Json(report.program.damage)},
                         {"conservation", std::move(totals)},
                         {"queues", std::move(queues)},
                         {"pending_commands", std::move(pending)},
                         {"losses", std::move(losses)},
                         {"clocks", std::move(clocks)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int check(const CheckRequest& request) {
  const auto fail = [](const Error& error) {
    say("{}", error.message);
    return kFailed;
  };
  if (!request.name.empty() && profiler::TraceChecker::looks_like_trace(request.name)) return check_trace(request);
  const auto name = find_recording(request.name);
  if (!name) return fail(name.error());
  const auto recording = trace::Recording::open(*name);
  if (!recording) return fail(recording.error());
  const auto report = profiler::make_report(*recording, {});
  if (!report) return fail(report.error());
  const auto printed = print(request.format == Format::json ? check_json(*report) : check_text(*report));
  if (!printed) return fail(printed.error());
  return find_problems(*report).empty() ? kOk : kFailed;
}

}  // namespace xpu::cli
