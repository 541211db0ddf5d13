#include "profiler/check/rules.hpp"

#include <array>

namespace xpu::profiler {
namespace {

constexpr Severity kError = Severity::error, kWarning = Severity::warning, kNote = Severity::note;

constexpr std::array kRules{
    TraceRule{"invalid-json", kError, "the text is no JSON from some byte on"},
    TraceRule{"missing-key", kError, "an event lacks what its phase needs"},
    TraceRule{"wrong-type", kError, "a value has a type that readers do not take, or a time is too large for nanoseconds"},
    TraceRule{"unknown-phase", kWarning, "the format has no such phase"},
    TraceRule{"negative-time", kError, "ts is below 0"},
    TraceRule{"negative-duration", kError, "dur is below 0"},
    TraceRule{"empty-name", kError, "an event is called \"\""},
    TraceRule{"unknown-name", kWarning, "an event is called \"unknown\": its name was lost"},
    TraceRule{"unbalanced-begin-end", kError, "a begin (B) without its end (E), or the reverse"},
    TraceRule{"partial-overlap", kError, "two slices of one row overlap and neither holds the other"},
    TraceRule{"device-overlap", kError, "two device slices of one row overlap: viewers drop one"},
    TraceRule{"flow-without-start", kError, "an arrow ends that never began"},
    TraceRule{"flow-without-finish", kError, "an arrow begins that never ends"},
    TraceRule{"flow-started-twice", kError, "an arrow begins more than once"},
    TraceRule{"flow-finish-before-start", kError, "an arrow points back in time by more than the clock's stated error"},
    TraceRule{"flow-outside-slice", kError, "an end of an arrow lies in no slice of its row"},
    TraceRule{"stale-correlation", kError, "a device slice names a correlation that no call has"},
    TraceRule{"repeated-correlation", kWarning, "two calls of one category have the same correlation"},
    TraceRule{"device-without-correlation", kWarning, "a device slice names no correlation"},
    TraceRule{"no-calls", kNote, "the file has no calls, so correlations cannot be compared"},
    TraceRule{"device-before-call", kError, "device work starts before its call by more than the clock's stated error"},
    TraceRule{"outside-record-window", kWarning, "an event begins before the recording's stated window or ends after it"},
    TraceRule{"implausible-base-time", kWarning, "baseTimeNanoseconds puts events before 2010 or into the future"},
    TraceRule{"phantom-devices", kWarning, "devices are listed on which nothing happens"},
    TraceRule{"duplicate-metadata", kWarning, "a row is described again in the same words"},
    TraceRule{"conflicting-metadata", kWarning, "a row is described in two ways"},
    TraceRule{"conservation-mismatch", kError, "the file's own figures differ from what is counted in it"},
    TraceRule{"stated-losses", kNote, "the file says that records are missing from it"},
    TraceRule{"no-events", kNote, "the list of events is empty"},
};
static_assert(kRules.size() == static_cast<std::size_t>(Rule::no_events) + 1);

}  // namespace

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
  }
  return "";
}

std::span<const TraceRule> trace_rules() noexcept { return kRules; }

const TraceRule& description(Rule rule) noexcept { return kRules[static_cast<std::size_t>(rule)]; }

}  // namespace xpu::profiler
