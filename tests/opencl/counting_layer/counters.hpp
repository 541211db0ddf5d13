#pragma once

#include <cstddef>
#include <cstdint>

#include "null_driver/opencl_headers.hpp"

namespace xpu::counting_layer {

enum class Entry : std::uint32_t {
#define XPU_COUNTED_ENTRY(name) name,
#include "counting_layer/submitting_entries.inc"
  count
};

/// Opens the counts of this process: XPU_TEST_COUNTS with ".PID.counts" behind it (".PID.2.counts" and so on if that exists: an exec keeps
/// the process id). Without the variable, or without the file, counts are kept in memory and lost.
void open_counts();

/// Remembers a queue under the next number and answers its slot in the file. A handle that is used again belongs to the newer queue.
std::size_t add_queue(cl_command_queue queue) noexcept;

/// One finished call. Any thread.
void count(Entry entry, cl_command_queue queue, bool success) noexcept;

/// Writes the present counts as JSON beside the file, with ".json" instead of ".counts". What is submitted later is in the file alone.
void write_json();

}  // namespace xpu::counting_layer
