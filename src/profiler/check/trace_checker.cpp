#include "xpu/profiler/trace_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "profiler/check/correlation_rules.hpp"
#include "profiler/check/document_rules.hpp"
#include "profiler/check/event_rules.hpp"
#include "profiler/check/findings.hpp"
#include "profiler/check/flow_rules.hpp"
#include "profiler/check/gzip_buffer.hpp"
#include "profiler/check/metadata_rules.hpp"
#include "profiler/check/slice_rules.hpp"
#include "profiler/check/trace_parser.hpp"
#include "profiler/check/trace_tables.hpp"

namespace xpu::profiler {
namespace {

std::uint64_t unix_time_ns() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count());
}

/// All rules over one trace.
class Examination {
 public:
  explicit Examination(std::size_t places) : findings_(places) {}

  void add(const TraceEvent& event) {
    if (!check_event(event, findings_)) return;
    constexpr std::int64_t kNsPerMicrosecond = 1'000;
    for (const TraceValue* time : {&event.time, &event.duration})
      tables_.has_fractions = tables_.has_fractions || time->thousandths.value_or(0) % kNsPerMicrosecond != 0;
    slices_.add(event);
    flows_.add(event);
    correlations_.add(event);
    metadata_.add(event);
    document_.add(event);
  }
  void add(std::span<const std::string> path, const TraceValue& value) { document_.add(path, value); }

  TraceCheck finish(const ParsedTrace& parsed, std::uint64_t now_unix_ns) {
    TraceCheck check;
    check.events = parsed.events;
    if (parsed.problem) {
      findings_.add(Rule::invalid_json, *parsed.problem);
    } else if (parsed.events == 0) {
      findings_.add(Rule::no_events, "traceEvents is []");
    }
    document_.finish_clocks();
    slices_.finish();
    check.slices = slices_.slices().size();
    flows_.finish(slices_.slices());
    check.flows = flows_.flows();
    correlations_.finish(check);
    metadata_.finish();
    document_.finish(slices_.slices(), check, now_unix_ns);
    check.findings = findings_.take();
    return check;
  }

 private:
  Findings findings_;
  TraceTables tables_;
  SliceRules slices_{tables_, findings_};
  FlowRules flows_{tables_, findings_};
  CorrelationRules correlations_{tables_, findings_};
  MetadataRules metadata_{findings_};
  DocumentRules document_{tables_, findings_};
};

}  // namespace

TraceChecker::TraceChecker(Options options) : options_(options) {}

Result<TraceCheck> TraceChecker::check(std::istream& input) const {
  Examination examination(options_.places);
  const ParsedTrace parsed =
      parse_trace(input, {[&](const TraceEvent& event) { examination.add(event); },
                          [&](std::span<const std::string> path, const TraceValue& value) { examination.add(path, value); }});
  if (!parsed.has_events) {
    return Error{ErrorCode::invalid_argument,
                 parsed.problem ? fmt::format("it is no trace: {}", *parsed.problem) : "it is no trace: it has no list \"traceEvents\""};
  }
  return examination.finish(parsed, options_.now_unix_ns != 0 ? options_.now_unix_ns : unix_time_ns());
}

Result<TraceCheck> TraceChecker::check_file(const std::string& path) const {
  XPU_TRY_ASSIGN(const auto buffer, GzipBuffer::open(path));
  std::istream input(buffer.get());
  auto checked = check(input);
  // A text that ended early looks like a trace that breaks off.
  XPU_TRY(buffer->status());
  if (!checked) return Error{checked.error().code, path + ": " + checked.error().message};
  checked->path = path;
  return checked;
}

bool TraceChecker::looks_like_trace(const std::string& path) {
  const auto buffer = GzipBuffer::open(path);
  if (!buffer) return false;
  std::istream input(buffer->get());
  for (const int mark : {0xEF, 0xBB, 0xBF}) {  // of UTF-8
    if (input.peek() == mark) input.get();
  }
  const int first = (input >> std::ws).peek();
  return first == '{' || first == '[';
}

}  // namespace xpu::profiler
