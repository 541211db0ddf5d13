#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/profiler/trace_checker.hpp"

namespace xpu::profiler::test_support {

/// A trace that a test writes event by event, in JSON.
class WrittenTrace {
 public:
  WrittenTrace() = default;

  /// An object in JSON.
  WrittenTrace& add(std::string event) {
    events_.push_back(std::move(event));
    return *this;
  }
  /// A slice of `category` on a row, times in microseconds. `more` begins with a comma or is empty.
  WrittenTrace& add_slice(std::string_view category, std::string_view name, int pid, int tid, double ts, double dur,
                          std::string_view more = "") {
    std::ostringstream event;
    event << R"({"ph":"X","cat":")" << category << R"(","name":")" << name << R"(","pid":)" << pid << R"(,"tid":)" << tid << R"(,"ts":)"
          << ts << R"(,"dur":)" << dur << more << '}';
    return add(event.str());
  }
  WrittenTrace& add_call(int correlation, double ts, double dur = 2.5) {
    return add_slice("xpu_runtime", "launch", 100, 101, ts, dur, correlation_args(correlation));
  }
  WrittenTrace& add_kernel(int correlation, double ts, double dur = 5.5) {
    return add_slice("kernel", "gemm", 0, 1, ts, dur, correlation_args(correlation));
  }
  /// `phase` s, t or f.
  WrittenTrace& add_flow(char phase, int id, int pid, int tid, double ts) {
    std::ostringstream event;
    event << R"({"ph":")" << phase << R"(","bp":"e","cat":"ac2g","name":"ac2g","id":)" << id << R"(,"pid":)" << pid << R"(,"tid":)" << tid
          << R"(,"ts":)" << ts << '}';
    return add(event.str());
  }
  /// A call, its kernel and the arrow between them: nothing is wrong with it.
  WrittenTrace& add_launch(int correlation, double ts) {
    return add_call(correlation, ts)
        .add_flow('s', correlation, 100, 101, ts)
        .add_kernel(correlation, ts + 10)
        .add_flow('f', correlation, 0, 1, ts + 10);
  }
  WrittenTrace& add_metadata(std::string_view name, int pid, int tid, std::string_view args) {
    std::ostringstream event;
    event << R"({"ph":"M","name":")" << name << R"(","pid":)" << pid << R"(,"tid":)" << tid << R"(,"args":{)" << args << "}}";
    return add(event.str());
  }
  /// A member of the document, before the events or behind them.
  WrittenTrace& add_member(std::string member) {
    members_.push_back(std::move(member));
    return *this;
  }

  std::string text() const {
    std::string text = "{\"schemaVersion\": 1,\n\"traceEvents\": [";
    for (std::size_t i = 0; i < events_.size(); ++i) text += (i == 0 ? "\n" : ",\n") + events_[i];
    text += "\n]";
    for (const std::string& member : members_) text += ",\n" + member;
    return text + "}\n";
  }

  static std::string correlation_args(int correlation) { return R"(,"args":{"correlation":)" + std::to_string(correlation) + '}'; }

 private:
  std::vector<std::string> events_, members_;
};

/// As on the first of December 2026.
inline Result<TraceCheck> check_text(const std::string& text) {
  TraceChecker::Options options;
  options.now_unix_ns = 1'796'083'200'000'000'000;
  std::istringstream input(text);
  return TraceChecker(options).check(input);
}

/// "rule: count" each; a text that is no trace is "no trace: " and the reason.
inline std::vector<std::string> findings_in(const std::string& text) {
  const auto check = check_text(text);
  if (!check) return {"no trace: " + check.error().message};
  std::vector<std::string> found;
  for (const TraceFinding& finding : check->findings)
    found.push_back(std::string(finding.rule->name) + ": " + std::to_string(finding.count));
  return found;
}
inline std::vector<std::string> findings_in(const WrittenTrace& trace) { return findings_in(trace.text()); }

/// The first place of a rule; an empty one when it is not broken.
inline TracePlace first_place(const WrittenTrace& trace, std::string_view rule) {
  const auto check = check_text(trace.text());
  if (!check) return {};
  for (const TraceFinding& finding : check->findings) {
    if (finding.rule->name == rule && !finding.places.empty()) return finding.places[0];
  }
  return {};
}

}  // namespace xpu::profiler::test_support
