#pragma once

#include <span>

#include "profiler/sinks/json_writer.hpp"
#include "xpu/profiler/sink.hpp"

/// Members of a Chrome trace's head that say whose it is.
namespace xpu::profiler {

/// "deviceProperties": Kineto's keys, then ours; what nobody told is not there.
void write_device_properties(JsonWriter& out, const Definitions& definitions);

/// "drivers": each once, by the name and version of its devices.
void write_drivers(JsonWriter& out, const Definitions& definitions);

/// "distributedInfo", as it was given; where nothing was, with the rank that the recording knows.
void write_distributed_info(JsonWriter& out, const SessionInfo& info);

/// "childProfilers", unless none said anything.
void write_participants(JsonWriter& out, std::span<const ParticipantReport> participants);

}  // namespace xpu::profiler
