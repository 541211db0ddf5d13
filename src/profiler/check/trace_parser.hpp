#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <span>
#include <string>

#include "profiler/check/trace_event.hpp"

namespace xpu::profiler {

/// What the parser hands over, as it comes. The arguments are valid during the call only.
struct TraceHandlers {
  std::function<void(const TraceEvent& event)> event;
  /// A value outside the list of events, at most three levels deep: {"clocks", "0", "device"}.
  std::function<void(std::span<const std::string> path, const TraceValue& value)> value;
};

struct ParsedTrace {
  bool has_events = false;             ///< There was a list of events: without one the text is no trace.
  std::uint64_t events = 0;            ///< Handed over.
  std::optional<std::string> problem;  ///< Where and why the text is no JSON, one sentence.
};

/// Reads JSON from where `input` stands to its end and keeps nothing but the event it is at. Never fails: what is no JSON is the result's.
ParsedTrace parse_trace(std::istream& input, const TraceHandlers& handlers);

}  // namespace xpu::profiler
