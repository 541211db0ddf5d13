#pragma once

#include <cstdint>

#include "profiler/session/flight_ring.hpp"
#include "xpu/profiler/flight_recorder.hpp"

namespace xpu::profiler {

/// What each queue that the ring knows is doing at this moment.
FlightState describe_state(const FlightRing& ring, std::uint64_t now_ns);

/// The same as records: marks on a row of their own. Their ids are far from those that the tracer gives.
ActivityBuffer marks_of(const FlightState& state, std::uint32_t process);

}  // namespace xpu::profiler
