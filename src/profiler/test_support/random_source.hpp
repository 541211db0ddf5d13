#pragma once

#include <cstdint>

#include "profiler/test_support/scripted_source.hpp"

namespace xpu::profiler::test_support {

/// Queues of all kinds, fed by several threads of several processes, with failures in between; the same for the same `seed`.
ScriptedSource random_source(std::uint32_t seed);

}  // namespace xpu::profiler::test_support
