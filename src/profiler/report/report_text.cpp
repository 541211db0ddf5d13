#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/report/text_format.hpp"
#include "profiler/report/text_table.hpp"
#include "xpu/profiler/report.hpp"

namespace xpu::profiler {
namespace {

using Times = std::vector<std::optional<std::int64_t>>;

std::optional<std::int64_t> signed_time(std::optional<std::uint64_t> ns) {
  if (!ns) return std::nullopt;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(*ns, INT64_MAX));
}

std::string percent(std::optional<double> share) {
  if (!share) return "-";
  return *share > 0 && *share < 0.0005 ? "<0.1" : fmt::format("{:.1f}", *share * 100);
}

/// "busy 71.2 %"; the ends of the scale are kept for what is really nothing or everything.
std::string percent_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  if (part != 0 && part != whole) {
    const double value = 100 * static_cast<double>(part) / static_cast<double>(whole);
    if (value < 0.05) return "<0.1 %";
    return fmt::format("{:.1f} %", std::min(value, 99.9));
  }
  return part == 0 ? "0 %" : "100 %";
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return with_thousands(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

/// A column of times of one kind, in one unit.
struct TimeColumn {
  template <typename Rows, typename Time>
  TimeColumn(const Rows& rows, Time&& time_of) {
    for (const auto& row : rows) times.push_back(time_of(row));
    unit.emplace(times);
  }
  std::string heading(std::string_view name) const { return std::string(name) + ' ' + std::string(unit->name()); }
  std::string cell(std::size_t row) const { return unit->show(times[row]); }

  Times times;
  std::optional<TimeUnit> unit;
};

class ReportText {
 public:
  ReportText(const Report& report, const ReportOptions& options)
      : report_(report),
        options_(options),
        style_{options.width > 0 ? static_cast<std::size_t>(options.width) : 100, options.wide, options.color} {}

  std::string write() {
    headline();
    kernels();
    transfers("Copies", report_.copies);
    transfers("Fills", report_.fills);
    api();
    calls();
    ranges();
    memory();
    books();
    return std::move(text_);
  }

 private:
  void headline();
  void device_line(const Report::Device& device);
  void commands_line();
  void kernels();
  void transfers(std::string_view title, const std::vector<Report::Transfer>& transfers);
  void api();
  void calls();
  void ranges();
  void memory();
  void memory_details(const Report::Memory& row);
  std::string context_name(const Report::Memory& row) const { return fmt::format("context {}{}", row.context, of_process(row.pid)); }
  void books();
  void pending();
  void clocks();
  void overhead();

  void line(std::string_view text) { text_.append(text).append("\n"); }
  /// "label      what it is"
  void fact(std::string_view label, std::string_view text) { line(fmt::format("{:<{}}{}", label, kLabelWidth, text)); }
  /// A fact of several parts, on as many lines as they need.
  void fact(std::string_view label, const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) {
      const bool fits = style_.wide || kLabelWidth + display_width(text) + 2 + display_width(part) <= style_.width;
      if (!text.empty() && !fits) {
        fact(std::exchange(label, ""), text + ';');
        text.clear();
      }
      text += (text.empty() ? "" : "; ") + part;
    }
    if (!text.empty()) fact(label, text);
  }
  /// Columns for a text that shares its line with a label and `other`.
  std::size_t room_beside(std::string_view other) const {
    const std::size_t taken = kLabelWidth + 2 + display_width(other);
    return style_.wide ? SIZE_MAX : std::max(style_.width, taken + kShortestText) - taken;
  }
  template <typename Rows>
  std::size_t shown_rows(const Rows& rows) const {
    return options_.top <= 0 ? rows.size() : std::min(rows.size(), static_cast<std::size_t>(options_.top));
  }
  template <typename Rows>
  std::vector<typename Rows::value_type> top_rows(const Rows& rows) const {
    return {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown_rows(rows))};
  }
  void finish_table(const TextTable& table, std::size_t shown, std::size_t all) {
    text_ += '\n' + table.render(style_);
    if (shown < all) line(style_.dim(fmt::format("… and {} more (--top 0 shows all)", with_thousands(all - shown))));
  }
  bool many_processes() const { return report_.processes.size() > 1; }
  std::string of_process(std::uint64_t pid) const { return many_processes() ? fmt::format(" of process {}", pid) : ""; }
  std::string place_of(const Report::Kernel& kernel) const;

  static constexpr std::size_t kLabelWidth = 11;
  static constexpr std::size_t kShortestText = 20;

  const Report& report_;
  const ReportOptions& options_;
  const TextStyle style_;
  std::string text_;
};

void ReportText::headline() {
  const Report::Program& program = report_.program;
  std::string command;
  for (const std::string& argument : program.argv) command += (command.empty() ? "" : " ") + printable(argument);
  std::string end;
  bool bad_end = false;
  if (program.exit_code) {
    end = fmt::format("exit {}", *program.exit_code);
    bad_end = *program.exit_code != 0;
  } else if (program.signal) {
    const char* name = ::sigabbrev_np(*program.signal);
    end = name == nullptr ? fmt::format("killed by signal {}", *program.signal) : fmt::format("killed by SIG{}", name);
    bad_end = true;
  } else {
    end = "end not known";
    bad_end = true;
  }
  if (program.wall_ns) end += " after " + duration_text(*program.wall_ns);
  fact("program", style_.bold(shorten(command, room_beside(end))) + "  " + (bad_end ? style_.alarming(end) : end));
  if (!program.path.empty()) fact("recording", printable(program.path));
  if (!program.finished) fact("", style_.alarming("the recording was not finished"));
  if (!program.damage.empty()) fact("", style_.alarming(printable(program.damage)));
  for (const Report::Process& process : report_.processes) {
    if (many_processes())
      fact("process",
           fmt::format("{}  {}{}", process.pid, printable(process.name), process.closed ? "" : style_.alarming("  did not detach")));
  }
  for (const Report::Device& device : report_.devices) device_line(device);
  commands_line();
}

void ReportText::device_line(const Report::Device& device) {
  std::string text = printable(device.name);
  if (!device.driver.empty()) text += " (" + printable(device.driver) + ')';
  std::string use = "not used";
  if (device.span_ns) {
    use = fmt::format("busy {} of {}, idle {}", percent_of(*device.busy_ns, *device.span_ns), duration_text(*device.span_ns),
                      duration_text(*device.idle_ns));
  } else if (device.commands != 0) {
    use = "busy time not known";
  }
  fact(fmt::format("device {}", device.id), shorten(text, room_beside(use)) + "  " + use);
}

void ReportText::commands_line() {
  std::uint64_t kernels = 0, copies = 0, fills = 0;
  for (const Report::Kernel& kernel : report_.kernels) kernels += kernel.calls;
  for (const Report::Transfer& copy : report_.copies) copies += copy.calls;
  for (const Report::Transfer& fill : report_.fills) fills += fill.calls;
  const Report::Conservation& books = report_.conservation;
  std::string text = with_thousands(books.submitted) + " submitted";
  std::string parts;
  const auto part = [&](std::uint64_t count, std::string_view one, std::string_view many) {
    if (count != 0) parts += fmt::format("{}{} {}", parts.empty() ? ": " : ", ", with_thousands(count), count == 1 ? one : many);
  };
  if (options_.kernels_regex.empty()) part(kernels, "kernel", "kernels");
  part(copies, "copy", "copies");
  part(fills, "fill", "fills");
  text += parts;
  text += "; ";
  text += books.lost == 0 ? "none lost" : style_.alarming(fmt::format("{} lost", with_thousands(books.lost)));
  if (books.failed != 0) text += "; " + style_.alarming(fmt::format("{} failed", with_thousands(books.failed)));
  if (books.pending != 0) text += "; " + style_.alarming(fmt::format("{} pending", with_thousands(books.pending)));
  fact("commands", text);
}

/// What a row is about besides its kernel.
std::string ReportText::place_of(const Report::Kernel& kernel) const {
  switch (options_.by) {
    case ReportOptions::By::process: return kernel.process ? fmt::format("{}", *kernel.process) : "-";
    case ReportOptions::By::queue:
      return kernel.queue ? fmt::format("{}{}", *kernel.queue, many_processes() ? fmt::format(" of {}", kernel.process.value_or(0)) : "")
                          : "-";
    case ReportOptions::By::thread: return kernel.thread ? fmt::format("{}", *kernel.thread) : "-";
    case ReportOptions::By::none:
    case ReportOptions::By::kernel: break;
  }
  return kernel.device ? fmt::format("{}", *kernel.device) : "several";
}

void ReportText::kernels() {
  if (report_.kernels.empty()) {
    if (!options_.kernels_regex.empty()) line(fmt::format("\nNo kernel matches '{}'.", printable(options_.kernels_regex)));
    return;
  }
  const std::vector<Report::Kernel> rows = top_rows(report_.kernels);
  const TimeColumn total(rows, [](const Report::Kernel& row) { return signed_time(row.total_ns); });
  const TimeColumn average(rows, [](const Report::Kernel& row) { return signed_time(row.avg_ns); });
  const TimeColumn shortest(rows, [](const Report::Kernel& row) { return signed_time(row.min_ns); });
  const TimeColumn median(rows, [](const Report::Kernel& row) { return signed_time(row.median_ns); });
  const TimeColumn p99(rows, [](const Report::Kernel& row) { return signed_time(row.p99_ns); });
  const TimeColumn longest(rows, [](const Report::Kernel& row) { return signed_time(row.max_ns); });
  const TimeColumn delay(
      rows, [](const Report::Kernel& row) { return row.launch_delay_ns ? std::optional(row.launch_delay_ns->median) : std::nullopt; });
  const bool failures = std::any_of(rows.begin(), rows.end(), [](const Report::Kernel& row) { return row.failed != 0; });
  const bool delays = std::any_of(rows.begin(), rows.end(), [](const Report::Kernel& row) { return row.launch_delay_ns.has_value(); });
  const char* place = options_.by == ReportOptions::By::process  ? "process"
                      : options_.by == ReportOptions::By::queue  ? "queue"
                      : options_.by == ReportOptions::By::thread ? "thread"
                      : report_.devices.size() > 1               ? "device"
                                                                 : nullptr;

  TextTable table("Kernels");
  if (place != nullptr) table.add_column(place);
  table.add_column("calls");
  if (failures) table.add_column("failed");
  table.add_column(total.heading("total"));
  table.add_column("share %");
  table.add_column(average.heading("avg"), 1);
  table.add_column(shortest.heading("min"), 4);
  table.add_column(median.heading("median"));
  table.add_column(p99.heading("p99"), 2);
  table.add_column(longest.heading("max"));
  if (delays) table.add_column(delay.heading("delay"), 3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Report::Kernel& row = rows[i];
    std::vector<std::string> cells = {printable(row.name)};
    if (place != nullptr) cells.push_back(place_of(row));
    cells.push_back(with_thousands(row.calls));
    if (failures) cells.push_back(with_thousands(row.failed));
    cells.insert(cells.end(),
                 {total.cell(i), percent(row.share), average.cell(i), shortest.cell(i), median.cell(i), p99.cell(i), longest.cell(i)});
    if (delays) cells.push_back(delay.cell(i));
    table.add_row(std::move(cells));
  }
  finish_table(table, rows.size(), report_.kernels.size());
}

void ReportText::transfers(std::string_view title, const std::vector<Report::Transfer>& transfers) {
  if (transfers.empty()) return;
  const TimeColumn total(transfers, [](const Report::Transfer& row) { return signed_time(row.total_ns); });
  const bool failures = std::any_of(transfers.begin(), transfers.end(), [](const Report::Transfer& row) { return row.failed != 0; });
  TextTable table{std::string(title)};
  table.add_column("calls");
  if (failures) table.add_column("failed");
  table.add_column("bytes");
  table.add_column(total.heading("total"));
  table.add_column("GB/s");
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Report::Transfer& row = transfers[i];
    std::string route = row.route;
    std::replace(route.begin(), route.end(), '_', ' ');
    std::vector<std::string> cells = {route, with_thousands(row.calls)};
    if (failures) cells.push_back(with_thousands(row.failed));
    cells.push_back(row.bytes ? bytes_text(*row.bytes) : "-");
    cells.push_back(total.cell(i));
    cells.push_back(row.bytes_per_s ? fmt::format("{:.2f}", static_cast<double>(*row.bytes_per_s) / 1e9) : "-");
    table.add_row(std::move(cells));
  }
  finish_table(table, transfers.size(), transfers.size());
}

void ReportText::api() {
  if (report_.api.empty()) return;
  const std::vector<Report::Api> rows = top_rows(report_.api);
  const TimeColumn total(rows, [](const Report::Api& row) { return signed_time(row.total_ns); });
  const TimeColumn average(
      rows, [](const Report::Api& row) { return row.total_ns && row.calls != 0 ? signed_time(*row.total_ns / row.calls) : std::nullopt; });
  const TimeColumn longest(rows, [](const Report::Api& row) { return signed_time(row.max_ns); });
  const bool failures = std::any_of(rows.begin(), rows.end(), [](const Report::Api& row) { return row.failed != 0; });
  TextTable table("Calls on the host");
  table.add_column("calls");
  if (failures) table.add_column("failed");
  table.add_column(total.heading("total"));
  table.add_column(average.heading("avg"));
  table.add_column(longest.heading("max"));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Report::Api& row = rows[i];
    std::vector<std::string> cells = {printable(row.name) + (row.waits ? " (waits)" : ""), with_thousands(row.calls)};
    if (failures) cells.push_back(with_thousands(row.failed));
    cells.insert(cells.end(), {total.cell(i), average.cell(i), longest.cell(i)});
    table.add_row(std::move(cells));
  }
  finish_table(table, rows.size(), report_.api.size());
}

void ReportText::calls() {
  constexpr std::size_t kSlowestShown = 3;
  if (!report_.slowest_calls.empty() || !report_.failed_calls.empty()) text_ += '\n';
  if (!report_.slowest_calls.empty()) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < std::min(kSlowestShown, report_.slowest_calls.size()); ++i) {
      const Report::Call& call = report_.slowest_calls[i];
      parts.push_back(fmt::format("{} {} at {}{}", printable(call.name), duration_text(call.duration_ns.value_or(0)),
                                  signed_duration_text(call.start_ns), of_process(call.pid)));
    }
    fact("slowest", parts);
  }
  for (std::size_t i = 0; i < shown_rows(report_.failed_calls); ++i) {
    const Report::Call& call = report_.failed_calls[i];
    fact(i == 0 ? "failed" : "",
         style_.alarming(fmt::format("{} returned {}, {}", printable(call.name), call.result,
                                     call.calls == 1 ? "once" : fmt::format("{} times", with_thousands(call.calls)))) +
             fmt::format(", first at {}{}", signed_duration_text(call.start_ns), of_process(call.pid)));
  }
}

void ReportText::ranges() {
  if (report_.ranges.empty()) {
    if (!options_.ranges_regex.empty()) line(fmt::format("\nNo annotated range matches '{}'.", printable(options_.ranges_regex)));
    return;
  }
  const std::vector<Report::Range> rows = top_rows(report_.ranges);
  const TimeColumn host(rows, [](const Report::Range& row) { return signed_time(row.host_ns); });
  const TimeColumn host_self(rows, [](const Report::Range& row) { return signed_time(row.host_self_ns); });
  const TimeColumn device(rows, [](const Report::Range& row) { return signed_time(row.device_ns); });
  const TimeColumn device_self(rows, [](const Report::Range& row) { return signed_time(row.device_self_ns); });
  TextTable table("Annotated ranges");
  table.add_column("calls");
  table.add_column(host.heading("host"));
  table.add_column(host_self.heading("host self"), 1);
  table.add_column("commands", 2);
  table.add_column(device.heading("device"));
  table.add_column(device_self.heading("device self"));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Report::Range& row = rows[i];
    table.add_row({printable(row.name), row.calls == 0 ? "-" : with_thousands(row.calls), host.cell(i), host_self.cell(i),
                   with_thousands(row.commands), device.cell(i), device_self.cell(i)});
  }
  finish_table(table, rows.size(), report_.ranges.size());
}

void ReportText::memory() {
  if (report_.memory.empty()) return;
  TextTable table("Memory");
  table.add_column("peak");
  table.add_column("alive at end");
  table.add_column("allocated");
  table.add_column("released");
  const std::vector<Report::Memory> rows = top_rows(report_.memory);
  for (const Report::Memory& row : rows) {
    table.add_row({context_name(row), bytes_text(row.peak_bytes), bytes_text(row.alive_bytes), with_thousands(row.allocations),
                   with_thousands(row.releases)});
  }
  finish_table(table, rows.size(), report_.memory.size());
  for (const Report::Memory& row : rows) memory_details(row);
}

constexpr std::size_t kOwnersShown = 5;

/// One bar for each figure, an eighth of `most` high for each step; none for 0.
std::string bars_text(const std::vector<std::uint64_t>& figures, std::uint64_t most) {
  constexpr const char* kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string bars;
  for (const std::uint64_t figure : figures) {
    const double eighths = 8.0 * static_cast<double>(figure) / static_cast<double>(most);
    bars += kBars[std::clamp(static_cast<int>(std::ceil(eighths)), 0, 8)];
  }
  return bars;
}

/// Its course and, where that says more than the peak itself, whose the peak is.
void ReportText::memory_details(const Report::Memory& row) {
  if (row.peak_bytes == 0) return;
  const std::string context = report_.memory.size() == 1 ? std::string() : ", " + context_name(row);
  if (row.timeline_bytes.size() > 1) {
    const std::uint64_t span_ns = row.timeline_step_ns * row.timeline_bytes.size();
    fact("in time", {bars_text(row.timeline_bytes, row.peak_bytes),
                     fmt::format("from {} to {}, peak at {}{}", signed_duration_text(row.timeline_start_ns),
                                 signed_duration_text(row.timeline_start_ns + static_cast<std::int64_t>(span_ns)),
                                 signed_duration_text(row.peak_ns), context)});
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kOwnersShown, row.owners.size()); ++i) {
    const Report::MemoryOwner& owner = row.owners[i];
    parts.push_back(fmt::format("{} {}", printable(owner.name), bytes_text(owner.bytes)));
    if (owner.blocks != 0) parts.back() += fmt::format(" in {}", plural(owner.blocks, "block"));
  }
  if (row.owners.size() > kOwnersShown) parts.push_back(fmt::format("and {} more", row.owners.size() - kOwnersShown));
  fact("at peak", parts);
}

void ReportText::books() {
  const Report::Conservation& books = report_.conservation;
  text_ += '\n';
  const std::string sum = fmt::format("{} submitted = {} recorded + {} lost + {} pending", with_thousands(books.submitted),
                                      with_thousands(books.recorded), with_thousands(books.lost), with_thousands(books.pending));
  fact("books",
       std::vector{sum, books.unexplained == 0 ? "0 unexplained" : style_.alarming(fmt::format("{} UNEXPLAINED", books.unexplained))});
  std::vector<std::string> details;
  const auto detail = [&](std::uint64_t count, std::string_view text) {
    if (count != 0) details.push_back(with_thousands(count) + ' ' + std::string(text));
  };
  detail(books.untimed, "without times");
  detail(books.refused, books.refused == 1 ? "call refused by the driver" : "calls refused by the driver");
  detail(books.filtered, "filtered out");
  detail(books.other_records_lost, "records of calls, waits and memory lost");
  detail(books.cpu_traces_discarded, "CPU traces discarded, which came out of time");
  detail(books.cpu_operations_discarded, "operations of the framework discarded");
  detail(books.dangling_flow_ends, "ends of arrows between operations left out");
  fact("", details);
  for (const Report::Loss& loss : report_.losses) {
    fact("lost",
         style_.alarming(fmt::format("{} on queue {}{}: {}", with_thousands(loss.count), loss.queue, of_process(loss.pid), loss.cause)));
  }
  pending();
  clocks();
  overhead();
  for (const std::string& error : report_.participant_errors) fact("child", style_.alarming(printable(error)));
}

void ReportText::pending() {
  const std::vector<Report::Pending>& commands = report_.conservation.pending_commands;
  constexpr std::size_t kPendingShown = 5;
  const std::size_t shown = std::min(commands.size(), kPendingShown);
  for (std::size_t i = 0; i < shown; ++i) {
    fact(i == 0 ? "pending" : "", fmt::format("{} on queue {}{}, submitted at {}", printable(commands[i].name), commands[i].queue,
                                              of_process(commands[i].pid), signed_duration_text(commands[i].enter_ns)));
  }
  if (shown < commands.size()) fact("", fmt::format("… and {} more", with_thousands(commands.size() - shown)));
}

void ReportText::clocks() {
  for (const Report::Clock& clock : report_.clocks) {
    std::string error = fmt::format("device {}{}: ", clock.device, of_process(clock.pid));
    if (clock.error_max_ns) {
      error +=
          fmt::format("error at most {}, median {}", duration_text(*clock.error_max_ns), duration_text(clock.error_median_ns.value_or(0)));
    } else {
      error += "no command was placed in host time";
    }
    std::string source = plural(clock.readings, "reading");
    if (clock.tick_ns) source += fmt::format(", tick {:g} ns", *clock.tick_ns);
    if (clock.domain != ClockDomain::unknown) source += fmt::format(", {}", to_string(clock.domain));
    fact("clock", std::vector{error, source});
  }
}

void ReportText::overhead() {
  const Report::Overhead& overhead = report_.overhead;
  if (!overhead.program_ns && !overhead.recorder_ns) return;
  std::vector<std::string> parts;
  if (overhead.program_ns) {
    parts.push_back("about " + duration_text(*overhead.program_ns) + " in the program");
    if (report_.program.wall_ns)
      parts.back() += fmt::format(" ({} of its time)", percent_of(*overhead.program_ns, *report_.program.wall_ns));
  }
  if (overhead.recorder_ns) parts.push_back(duration_text(*overhead.recorder_ns) + " CPU in the recorder");
  fact("overhead", parts);
}

}  // namespace

std::string report_text(const Report& report, const ReportOptions& options) { return ReportText(report, options).write(); }

}  // namespace xpu::profiler
