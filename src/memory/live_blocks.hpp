#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "memory/block_ledger.hpp"
#include "xpu/memory/checks.hpp"

namespace xpu::memory {

/// `frames_of`: the frames of NotedBlock::allocated_at.
LiveBlockReport summarise_live_blocks(const std::vector<NotedBlock>& blocks, std::uint64_t time_ns, std::size_t max_rows,
                                      const std::function<std::vector<StackRecorder::Frame>(StackId stack)>& frames_of);

}  // namespace xpu::memory
