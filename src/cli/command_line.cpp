#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "cli/check_trace.hpp"
#include "cli/console.hpp"
#include "cli/text.hpp"

namespace xpu::cli {
namespace {

/// The library's layout with a usage line of our own, and without the lists of options that exclude each other.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) { column_width(28); }
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override { return "\nUsage: " + usage_ + "\n"; }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }

 private:
  std::string usage_;
};

std::unique_ptr<CLI::App> make_app(const char* name, const char* description, const char* usage, const char* examples) {
  auto app = std::make_unique<CLI::App>(description, std::string("xpu ") + name);
  app->formatter(std::make_shared<HelpFormatter>(usage));
  app->footer(examples);
  app->get_help_ptr()->description("Print this and exit.");
  return app;
}

std::string sentence_of(const CLI::ParseError& error) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Nothing when the command line is right; else the exit code.
std::optional<int> parse_with(CLI::App& app, std::span<const std::string> arguments, int usage_code) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const auto printed = print(app.help());
    if (printed) return kOk;
    say("{}", printed.error().message);
    return kFailed;
  } catch (const CLI::ExtrasError&) {
    say("'{}' was not expected; see {} --help", app.remaining().empty() ? "" : app.remaining().front(), app.get_name());
    return usage_code;
  } catch (const CLI::ParseError& error) {
    say("{}; see {} --help", sentence_of(error), app.get_name());
    return usage_code;
  }
  return std::nullopt;
}

int wrong_value(const CLI::App& app, const char* option, const Error& error, int usage_code) {
  say("{}: {}; see {} --help", option, error.message, app.get_name());
  return usage_code;
}

bool takes_value(const CLI::App& app, const std::string& option) {
  const CLI::Option* found = app.get_option_no_throw(option);
  return found != nullptr && found->get_items_expected_max() > 0;
}

/// For "--output" and "-fo", not for "--output=a" and "-foa".
bool value_is_next_word(const std::string& word, const CLI::App& app) {
  if (word[1] == '-') return word.find('=') == std::string::npos && takes_value(app, word);
  for (std::size_t letter = 1; letter < word.size(); ++letter) {
    if (takes_value(app, std::string("-") + word[letter])) return letter + 1 == word.size();
  }
  return false;
}

/// Empty when it is right, as the library wants it.
std::string complaint_about_number(const std::string& text, const char* what) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= 0) return {};
  return fmt::format("'{}' is not {}, 0 or more", printable(text), what);
}
std::string number_of_rows(const std::string& text) { return complaint_about_number(text, "a number of rows"); }
std::string index_of_device(const std::string& text) { return complaint_about_number(text, "the index of a device"); }

constexpr const char* kNameHelp =
    "A recording: NAME, NAME.xpu, or the folder NAME.xpu.live of an unfinished one. Default: the newest one here.";

}  // namespace

SplitArguments split_program(std::span<const std::string> arguments, const CLI::App& record) {
  std::size_t at = 0;
  while (at < arguments.size() && arguments[at].size() >= 2 && arguments[at][0] == '-' && arguments[at] != "--") {
    at += value_is_next_word(arguments[at], record) ? 2 : 1;
  }
  at = std::min(at, arguments.size());
  SplitArguments split;
  split.ours.assign(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(at));
  if (at < arguments.size() && arguments[at] == "--") ++at;
  split.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
  return split;
}

Parsed<RecordRequest> parse_record(std::span<const std::string> arguments) {
  const auto app = make_app(
      "record", "Runs a program and records what it does with OpenCL or libxpu: every kernel, copy and call, with the device's own times.",
      "xpu record [OPTIONS] [--] PROGRAM [ARGUMENTS...]",
      R"(The program's exit code and signals are kept; 125: xpu itself failed, 126: PROGRAM cannot be executed, 127: it was not found.
Ctrl-C goes to the program alone, and the recording is finished; a signal sent to xpu is passed on to the program.
A program that ends early, or is killed, leaves a readable recording.

Examples:
  xpu record -- ./program --its-own --options
  xpu record -o before -f -- ./program           (writes before.xpu, replaces an older one)
  xpu record --delay 2 --duration 500ms -- ./server
  xpu record --kernels '^gemm' --device-only -- python3 train.py
  xpu record --start-paused -- ./server          (kill -USR2 PID-OF-XPU starts and stops recording))");
  RecordRequest request;
  std::string output;
  std::string delay;
  std::string duration;
  std::string max_live;
  bool device_only = false;
  bool api = false;
  auto* output_option = app->add_option("-o,--output", output, "Recording to write, .xpu is added. Default: PROGRAM-YYYYMMDD-HHMMSS here.")
                            ->type_name("NAME");
  app->add_flag("-f,--force", request.overwrite, "Replace a recording of that name.");
  auto* device_only_option = app->add_flag("--device-only", device_only, "Only what ran on devices: no times of calls. The cheapest.");
  app->add_flag("--api", api, "Every call, also those that submit nothing.")->excludes(device_only_option);
  auto* delay_option = app->add_option("--delay", delay, "Record nothing for the first S seconds (0.5, 200ms).")->type_name("S");
  app->add_option("--duration", duration, "Stop recording after S seconds; the program goes on.")->type_name("S");
  app->add_option("--kernels", request.kernels, "Record only kernels whose name has a match for this POSIX extended expression.")
      ->type_name("REGEX");
  app->add_flag("--start-paused", request.schedule.start_paused,
                "Begin paused. Each SIGUSR2 to xpu resumes or pauses, and does not reach the program.")
      ->excludes(delay_option);
  app->add_option("--max-live", max_live, "Most disk space and memory while recording (512M, 2G). Default: 1G.")->type_name("SIZE");

  SplitArguments split = split_program(arguments, *app);
  if (const auto code = parse_with(*app, split.ours, kRecordFailed)) return {std::nullopt, *code};
  if (output_option->count() > 0) request.output = output;
  if (device_only) request.mode = trace::RecordMode::device_only;
  if (api) request.mode = trace::RecordMode::api;
  if (!delay.empty()) {
    const auto ns = parse_duration(delay);
    if (!ns) return {std::nullopt, wrong_value(*app, "--delay", ns.error(), kRecordFailed)};
    request.schedule.delay_ns = *ns;
  }
  if (!duration.empty()) {
    const auto ns = parse_duration(duration);
    if (!ns) return {std::nullopt, wrong_value(*app, "--duration", ns.error(), kRecordFailed)};
    request.schedule.duration_ns = *ns;
  }
  if (!max_live.empty()) {
    const auto bytes = parse_bytes(max_live);
    if (!bytes) return {std::nullopt, wrong_value(*app, "--max-live", bytes.error(), kRecordFailed)};
    request.max_live_bytes = *bytes;
  }
  if (split.program.empty() || split.program.front().empty()) {
    say("xpu record needs a program to run, for example: xpu record -- ./program");
    return {std::nullopt, kRecordFailed};
  }
  request.program = std::move(split.program);
  return {std::move(request), kOk};
}

Parsed<ReportRequest> parse_report(std::span<const std::string> arguments) {
  using By = profiler::ReportOptions::By;
  static const std::map<std::string, By> kBy{
      {"process", By::process}, {"queue", By::queue}, {"kernel", By::kernel}, {"thread", By::thread}};
  const auto app = make_app(
      "report", "Prints a recording in figures: kernels, copies, calls, annotated ranges, memory, losses, and how exact the times are.",
      "xpu report [OPTIONS] [NAME]",
      R"(Examples:
  xpu report                          (the newest recording in this folder)
  xpu report a.xpu --top 5 --sort max
  xpu report a --kernels gemm --by queue --wide
  xpu report a --csv --table ranges > ranges.csv
  xpu report a --json | python3 -m json.tool)");
  static const std::map<std::string, profiler::ReportTable> kTables{
      {"kernels", profiler::ReportTable::kernels}, {"ranges", profiler::ReportTable::ranges}, {"calls", profiler::ReportTable::calls}};
  ReportRequest request;
  std::string by, table;
  bool json = false;
  bool csv = false;
  app->add_option("name", request.name, kNameHelp)->type_name("");
  app->add_option("--top", request.options.top, "Rows of each table, 0 for all. Default: 20.")->check(number_of_rows)->type_name("N");
  app->add_option("--sort", request.options.sort,
                  "Order of kernels and ranges: total, calls, avg, min, median, p99, max or name. Default: total.")
      ->check(CLI::IsMember({"total", "calls", "avg", "min", "median", "p99", "max", "name"}))
      ->type_name("COLUMN");
  app->add_option("--kernels", request.options.kernels_regex, "Only kernels whose name has a match for this POSIX extended expression.")
      ->type_name("REGEX");
  app->add_option("--ranges", request.options.ranges_regex, "Only annotated ranges whose name has a match for it.")->type_name("REGEX");
  app->add_option("--by", by, "A row of kernels for each process, queue, kernel (over all devices) or thread.")
      ->check(CLI::IsMember({"process", "queue", "kernel", "thread"}))
      ->type_name("WHAT");
  auto* json_option = app->add_flag("--json", json, "Everything as one JSON document, schema xpu.report/1.");
  auto* csv_option = app->add_flag("--csv", csv, "One table as comma-separated values.")->excludes(json_option);
  app->add_option("--table", table, "Which one: kernels, ranges or calls. Default: kernels.")
      ->check(CLI::IsMember({"kernels", "ranges", "calls"}))
      ->type_name("WHAT")
      ->needs(csv_option);
  app->add_flag("--wide", request.options.wide, "Never shorten names.");

  if (const auto code = parse_with(*app, arguments, kUsage)) return {std::nullopt, *code};
  if (!by.empty()) request.options.by = kBy.at(by);
  if (json) request.format = Format::json;
  if (csv) request.format = Format::csv;
  if (!table.empty()) request.table = kTables.at(table);
  return {std::move(request), kOk};
}

Parsed<ExportRequest> parse_export(std::span<const std::string> arguments) {
  const auto app = make_app("export", "Writes a recording as a file that other tools read.", "xpu export [OPTIONS] [NAME]",
                            R"(Formats:
  chrome    Chrome trace JSON as Kineto writes it, for Perfetto (https://ui.perfetto.dev), chrome://tracing, TensorBoard and HTA
  perfetto  Perfetto's own format: a quarter as large, times to the nanosecond

Examples:
  xpu export                           (the newest recording here, as NAME.json.gz beside it)
  xpu export a.xpu --format chrome -o a.json
  xpu export -o a.pftrace)");
  ExportRequest request;
  std::string output;
  std::string format;
  app->add_option("name", request.name, kNameHelp)->type_name("");
  app->add_option("--format", format, "Format of the file: chrome or perfetto. Default: perfetto for -o FILE.pftrace[.gz], else chrome.")
      ->check(CLI::IsMember({"chrome", "perfetto"}))
      ->type_name("FORMAT");
  auto* output_option =
      app->add_option("-o,--output", output, "File to write, compressed when it ends in .gz. Default: NAME.json.gz or NAME.pftrace.gz.")
          ->type_name("FILE");
  app->add_flag("-f,--force", request.overwrite, "Replace the file when it exists.");
  app->add_flag("--device-only", request.device_only, "Only what ran on devices: no calls and no arrows.");
  std::string compatibility;
  app->add_option("--compat", compatibility, "Names that this reader of JSON knows: hta calls launches as CUDA does. Default: true names.")
      ->check(CLI::IsMember({"hta"}))
      ->type_name("READER");

  if (const auto code = parse_with(*app, arguments, kUsage)) return {std::nullopt, *code};
  if (output_option->count() > 0) request.output = output;
  const bool named_so = profiler::is_perfetto_name(output);
  if (format == "perfetto" || (format.empty() && named_so)) request.format = ExportFormat::perfetto;
  if (!compatibility.empty()) {
    if (request.format == ExportFormat::perfetto) {
      say("--compat {} is of the format chrome; see xpu export --help", compatibility);
      return {std::nullopt, kUsage};
    }
    request.compatibility = profiler::Compatibility::hta;
  }
  return {std::move(request), kOk};
}

Parsed<CheckRequest> parse_check(std::span<const std::string> arguments) {
  const auto app =
      make_app("check",
               "Says whether a recording is complete (the books of each queue, losses, clocks, damage), or whether a Chrome trace of "
               "Kineto, PyTorch or xpu is right. What a file is, its contents say.",
               "xpu check [OPTIONS] [NAME]", "");
  app->footer(
      R"(A recording: exit code 0 when every command is explained and the file is whole, 1 when not. Counted losses and commands that had not
finished when the program ended are shown and are no failure.

A trace: 0 when no rule of severity error is broken, 1 when one is, 2 when it is none or breaks off as gzip. The rules:
)" + trace_rules_text() +
      R"(
2 also for a wrong command line.

Examples:
  xpu check
  xpu check a.xpu --json
  xpu export a.xpu -f -o a.json.gz
  xpu check a.json.gz)");
  CheckRequest request;
  bool json = false;
  app->add_option(
         "name", request.name,
         "A recording: NAME, NAME.xpu, or the folder NAME.xpu.live of an unfinished one; or a trace, plain or gzip. Default: the newest "
         "recording here.")
      ->type_name("");
  app->add_flag("--json", json, "One JSON document, schema xpu.check/1, or xpu.check_trace/1 of a trace.");

  if (const auto code = parse_with(*app, arguments, kUsage)) return {std::nullopt, *code};
  if (json) request.format = Format::json;
  return {std::move(request), kOk};
}

Parsed<InfoRequest> parse_info(std::span<const std::string> arguments) {
  const auto app = make_app(
      "info", "Lists the drivers and devices that programs of libxpu get, and why the others are not among them.", "xpu info [OPTIONS]",
      R"(Devices are counted over the drivers that XPU_DRIVER names (a comma list, by default host), then chosen and ordered by
XPU_VISIBLE_DEVICES (a comma list of such numbers and first digits of UUIDs). Nothing is opened unless -v is given.
Exit code: 0, 1 when one of these variables is wrong or a device cannot be opened, 2 for a wrong command line.

Examples:
  xpu info
  XPU_DRIVER=sim xpu info --device 0
  xpu info --verbose
  xpu info --json | python3 -m json.tool)");
  InfoRequest request;
  int device = 0;
  bool json = false;
  auto* device_option = app->add_option("--device", device, "Only the device of this index, with all its properties.")
                            ->check(index_of_device)
                            ->type_name("N");
  app->add_flag("-v,--verbose", request.open_devices,
                "All properties; and open the devices, for their free memory, clocks and capabilities.");
  app->add_flag("--json", json, "One JSON document with all properties, schema xpu.info/1 (docs/formats.md).");

  if (const auto code = parse_with(*app, arguments, kUsage)) return {std::nullopt, *code};
  if (device_option->count() > 0) request.device = device;
  if (json) request.format = Format::json;
  return {request, kOk};
}

}  // namespace xpu::cli
