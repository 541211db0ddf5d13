#pragma once

#include <cstdint>

#include "xpu/profiler/trace_checker.hpp"

namespace xpu::profiler {

/// In the order of `trace_rules`.
enum class Rule : std::uint8_t {
  invalid_json,
  missing_key,
  wrong_type,
  unknown_phase,
  negative_time,
  negative_duration,
  empty_name,
  unknown_name,
  unbalanced_begin_end,
  partial_overlap,
  device_overlap,
  flow_without_start,
  flow_without_finish,
  flow_started_twice,
  flow_finish_before_start,
  flow_outside_slice,
  stale_correlation,
  repeated_correlation,
  device_without_correlation,
  no_calls,
  device_before_call,
  outside_record_window,
  implausible_base_time,
  phantom_devices,
  duplicate_metadata,
  conflicting_metadata,
  conservation_mismatch,
  stated_losses,
  no_events,
};

const TraceRule& description(Rule rule) noexcept;

}  // namespace xpu::profiler
