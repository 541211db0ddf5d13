#pragma once

#include "profiler/check/findings.hpp"
#include "profiler/check/trace_event.hpp"

namespace xpu::profiler {

/// The place of a finding about `event`.
TracePlace place_of(const TraceEvent& event, std::string detail);

/// What can be said of an event alone: keys, types, signs, names. Returns whether the other rules can use it: everything that its phase
/// needs is there and of the right type.
bool check_event(const TraceEvent& event, Findings& findings);

}  // namespace xpu::profiler
