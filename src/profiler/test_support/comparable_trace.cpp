#include "profiler/test_support/comparable_trace.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "profiler/test_support/perfetto_reader.hpp"

namespace xpu::profiler::test_support {
namespace {

using Json = nlohmann::json;

std::int64_t nanoseconds(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1'000); }

bool is_call(const Json& event) {
  const std::string category = event.value("cat", "");
  return category == "xpu_runtime" || category == "xpu_driver";
}
bool is_command(const Json& event) {
  const std::string category = event.value("cat", "");
  return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" ||
         (event.contains("args") && event.at("args").contains("device"));
}

/// What numbers and times of a trace mean.
class Reading {
 public:
  explicit Reading(const Json& events) {
    for (const Json& event : events) {
      if (is_call(event)) first_ns_ = std::min(first_ns_, nanoseconds(event.at("ts")));
    }
    for (const Json& event : events) {
      if (!is_call(event)) continue;
      calls_[event.at("args").at("correlation").get<std::uint64_t>()] =
          fmt::format("{} on {} at {}", event.at("name").get<std::string>(), event.at("tid").get<std::uint64_t>(), since(event.at("ts")));
    }
  }
  std::int64_t since(const Json& time) const { return nanoseconds(time) - first_ns_; }
  std::string call_of(const Json& correlation) const {
    const auto found = calls_.find(correlation.get<std::uint64_t>());
    return found == calls_.end() ? "no call" : found->second;
  }

 private:
  std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
  std::map<std::uint64_t, std::string> calls_;  // by correlation
};

}  // namespace

std::vector<std::string> comparable_events(const std::string& document, DeviceTimes times) {
  const Json trace = Json::parse(document, nullptr, false);
  if (trace.is_discarded()) return {"no trace: the document is no JSON"};
  const Json& events = trace.at("traceEvents");
  const Reading reading(events);
  std::vector<std::string> lines;
  for (const Json& original : events) {
    Json event = original;
    const std::string phase = event.at("ph").get<std::string>();
    const bool without_times = times == DeviceTimes::left_out && (is_command(event) || phase == "f");
    if (without_times) {
      event.erase("ts");
    } else if (event.contains("ts") && phase != "M") {
      event["ts"] = reading.since(event.at("ts"));
    }
    if (event.contains("id")) event["id"] = reading.call_of(event.at("id"));
    if (event.contains("args")) {
      Json& arguments = event["args"];
      if (arguments.contains("correlation")) arguments["correlation"] = reading.call_of(arguments.at("correlation"));
      if (without_times) {
        for (const char* of_times : {"moved ns", "ends"}) arguments.erase(of_times);
      }
      for (const char* time : {"queued", "submitted"}) {
        if (arguments.contains(time)) arguments[time] = without_times ? Json() : Json(reading.since(arguments.at(time)));
      }
    }
    lines.push_back(event.dump());
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::map<std::string, std::int64_t> device_starts(const std::string& document) {
  const Json trace = Json::parse(document, nullptr, false);
  std::map<std::string, std::int64_t> starts;
  if (trace.is_discarded()) return starts;
  const Json& events = trace.at("traceEvents");
  const Reading reading(events);
  for (const Json& event : events) {
    if (is_command(event) && event.at("args").contains("correlation"))
      starts[reading.call_of(event.at("args").at("correlation"))] = reading.since(event.at("ts"));
  }
  return starts;
}

std::int64_t largest_clock_error_ns(const std::string& document) {
  const Json trace = Json::parse(document, nullptr, false);
  std::int64_t largest_ns = 0;
  if (trace.is_discarded()) return largest_ns;
  for (const Json& clock : trace.at("clocks")) {
    const Json& error = clock.at("error max ns");
    if (!error.is_null()) largest_ns = std::max(largest_ns, error.get<std::int64_t>());
  }
  return largest_ns;
}

std::string comparable_figures(const std::string& document, DeviceTimes times) {
  Json trace = Json::parse(document, nullptr, false);
  if (trace.is_discarded()) return "no trace: the document is no JSON";
  for (const char* own : {"traceEvents", "traceName", "baseTimeNanoseconds"}) trace.erase(own);
  if (times == DeviceTimes::left_out) {
    for (const char* of_times : {"out of range", "before their call"}) trace["errorStatistics"].erase(of_times);
  }
  for (Json& clock : trace["clocks"]) {
    clock.erase("readings");
    if (times == DeviceTimes::exact) continue;
    for (const char* error : {"error median ns", "error max ns"}) clock.erase(error);
  }
  return trace.dump(1);
}

std::vector<std::string> comparable_perfetto_events(const std::string& bytes) {
  const PerfettoTrace trace = read_perfetto(bytes);
  std::vector<std::string> lines;
  for (const std::string& problem : trace.problems) lines.push_back("problem: " + problem);
  std::map<std::uint64_t, std::string> calls;  // by the command that they submitted
  for (const PerfettoEvent& call : trace.slices) {
    if (call.submitted_event_id != 0) calls[call.submitted_event_id] = fmt::format("{} on {} at {}", call.name, call.track, call.start_ns);
  }
  const auto add = [&](std::string_view kind, const std::vector<PerfettoEvent>& events) {
    for (const PerfettoEvent& event : events) {
      std::string line =
          fmt::format("{} {} {} {} on {} of {} at {} +{} value {} device {}", kind, event.category, event.name, event.kernel_name,
                      event.track, event.pid, event.start_ns, event.duration_ns, event.value, event.device);
      if (event.event_id != 0) line += " of " + calls[event.event_id];
      for (const auto& [name, value] : event.arguments) {
        if (name != "correlation") line += fmt::format(" {}={}", name, value);
      }
      for (const std::uint64_t groups : event.grid) line += fmt::format(" grid {}", groups);
      lines.push_back(std::move(line));
    }
  };
  add("slice", trace.slices);
  add("command", trace.commands);
  // "recording" stands where its own session began.
  std::vector<PerfettoEvent> instants = trace.instants;
  for (PerfettoEvent& instant : instants) {
    if (instant.category == "xpu_recording") instant.start_ns = 0;
  }
  add("instant", instants);
  add("counter", trace.counters);
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> differences(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  std::vector<std::string> found;
  std::set_symmetric_difference(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(found));
  return found;
}

std::string read_trace_file(const std::string& path) {
  std::string contents;
  gzFile file = ::gzopen(path.c_str(), "rb");  // reads other files as they are
  if (file == nullptr) return contents;
  char piece[65'536];
  for (int count = 0; (count = ::gzread(file, piece, sizeof piece)) > 0;) contents.append(piece, static_cast<std::size_t>(count));
  ::gzclose(file);
  return contents;
}

}  // namespace xpu::profiler::test_support
