#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sink_load.hpp"
#include "xpu/profiler/sink.hpp"

/// What the events of a trace cost at the least: the same bytes that the sinks write, put into memory one number after the other.
///
/// The floors know what `SinkLoad` does. They decide nothing, look nothing up but a prepared text, and take every number from where the
/// sink has it from; what stays the same is copied, what changes goes through std::to_chars or a loop over groups of seven bits. They write
/// no head and no tail, and no descriptions of rows.
namespace xpu::bench {

/// Takes what was written, piece by piece.
using FloorWrite = std::function<void(std::string_view piece)>;

std::unique_ptr<profiler::Sink> make_json_floor(const SinkLoad& load, FloorWrite write);
std::unique_ptr<profiler::Sink> make_perfetto_floor(const SinkLoad& load, FloorWrite write);

}  // namespace xpu::bench
