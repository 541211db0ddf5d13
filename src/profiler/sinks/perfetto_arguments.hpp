#pragma once

#include "profiler/sinks/proto_writer.hpp"
#include "xpu/profiler/cpu_trace.hpp"

namespace xpu::profiler {

/// An argument of a track event, with its own name and type.
void write_argument(ProtoWriter& out, const CpuArgument& argument);

}  // namespace xpu::profiler
