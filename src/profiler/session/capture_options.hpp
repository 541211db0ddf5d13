#pragma once

#include <cstdint>

#include "xpu/profiler/activity_filter.hpp"
#include "xpu/profiler/activity_kind.hpp"
#include "xpu/trace/live_capture.hpp"

namespace xpu::profiler {

/// What a capture has to be told so that these kinds of activities can be made of its records.
trace::CaptureOptions capture_options(ActivityKinds kinds, bool with_memory, std::uint64_t max_bytes, const ActivityFilter& filter = {});

}  // namespace xpu::profiler
