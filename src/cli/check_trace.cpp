#include "cli/check_trace.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/console.hpp"
#include "cli/text.hpp"

namespace xpu::cli {
namespace {

using profiler::Severity;
using profiler::TraceFinding;
using profiler::TracePlace;
using Json = nlohmann::ordered_json;

constexpr std::size_t kPlacesInText = 3, kPlacesInJson = 20;

/// Names of kernels are made by templates and may have thousands of characters.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 160;
  std::string safe = printable(text);
  if (safe.size() <= kLongest) return safe;
  std::size_t size = 0;
  while (size < kLongest) size += utf8_length(std::string_view(safe).substr(size));
  return safe.substr(0, size) + "...";
}

std::string place_text(const TracePlace& place) {
  std::string text = place.event ? fmt::format("event {}", *place.event) : std::string("the file");
  auto out = std::back_inserter(text);
  if (place.time_ns) fmt::format_to(out, " at {}", microseconds_text(*place.time_ns));
  if (!place.name.empty()) fmt::format_to(out, " \"{}\"", shown(place.name));
  if (!place.detail.empty()) fmt::format_to(out, ": {}", shown(place.detail));
  return text;
}

Json place_json(const TracePlace& place) {
  return {{"event", place.event ? Json(*place.event) : Json(nullptr)},
          {"name", place.name},
          {"time_ns", place.time_ns ? Json(*place.time_ns) : Json(nullptr)},
          {"detail", place.detail}};
}

}  // namespace

std::string trace_rules_text() {
  std::string text;
  for (const profiler::TraceRule& rule : profiler::trace_rules())
    fmt::format_to(std::back_inserter(text), "  {:<26} {:<8} {}\n", rule.name, to_string(rule.severity), rule.meaning);
  return text;
}

std::string check_trace_text(const profiler::TraceCheck& check) {
  std::string text = fmt::format("{}\n", printable(check.path));
  auto out = std::back_inserter(text);
  fmt::format_to(out, "  trace of {}: {} ({} of kernels), {}\n", counted(check.events, "event"), counted(check.slices, "slice"),
                 with_thousands(check.kernels), counted(check.flows, "arrow"));
  fmt::format_to(out, "  {}, {} of them with a correlation, {} with its call; {}, {} of them with device slices\n",
                 counted(check.device_slices, "device slice"), with_thousands(check.device_slices_with_correlation),
                 with_thousands(check.device_slices_with_call), counted(check.calls, "call"),
                 with_thousands(check.calls_with_device_slice));
  if (!check.findings.empty()) fmt::format_to(out, "\n  {:<26} {:<8} {:>10}\n", "finding", "severity", "count");
  for (const TraceFinding& finding : check.findings) {
    fmt::format_to(out, "  {:<26} {:<8} {:>10}  {}\n", finding.rule->name, to_string(finding.rule->severity), with_thousands(finding.count),
                   finding.rule->meaning);
    for (const TracePlace& place : finding.places) fmt::format_to(out, "      {}\n", place_text(place));
  }
  fmt::format_to(out, "{}: {}, {}, {}\n", check.ok() ? "OK" : "WRONG", counted(check.findings_of(Severity::error), "error"),
                 counted(check.findings_of(Severity::warning), "warning"), counted(check.findings_of(Severity::note), "note"));
  return text;
}

std::string check_trace_json(const profiler::TraceCheck& check) {
  Json findings = Json::array();
  for (const TraceFinding& finding : check.findings) {
    Json places = Json::array();
    for (const TracePlace& place : finding.places) places.push_back(place_json(place));
    findings.push_back({{"rule", finding.rule->name},
                        {"severity", to_string(finding.rule->severity)},
                        {"meaning", finding.rule->meaning},
                        {"count", finding.count},
                        {"places", std::move(places)}});
  }
  const Json document = {
      {"schema", "xpu.check_trace/1"},
      {"path", check.path},
      {"ok", check.ok()},
      {"errors", check.findings_of(Severity::error)},
      {"warnings", check.findings_of(Severity::warning)},
      {"notes", check.findings_of(Severity::note)},
      {"events", check.events},
      {"slices", check.slices},
      {"kernels", check.kernels},
      {"flows", check.flows},
      {"device_slices",
       {{"count", check.device_slices},
        {"with_correlation", check.device_slices_with_correlation},
        {"with_call", check.device_slices_with_call}}},
      {"calls",
       {{"count", check.calls}, {"with_correlation", check.calls_with_correlation}, {"with_device_slice", check.calls_with_device_slice}}},
      {"findings", std::move(findings)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int check_trace(const CheckRequest& request) {
  profiler::TraceChecker::Options options;
  options.places = request.format == Format::json ? kPlacesInJson : kPlacesInText;
  const auto check = profiler::TraceChecker(options).check_file(request.name);
  if (!check) {
    say("{}", check.error().message);
    return kUsage;  // there is nothing to be right or wrong: another file was meant
  }
  const auto printed = print(request.format == Format::json ? check_trace_json(*check) : check_trace_text(*check));
  if (!printed) {
    say("{}", printed.error().message);
    return kFailed;
  }
  return check->ok() ? kOk : kFailed;
}

}  // namespace xpu::cli
