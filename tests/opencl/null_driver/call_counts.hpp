#pragma once

#include <cstdint>

#include "null_driver/opencl_headers.hpp"

namespace xpu::null_driver {

/// Whether XPU_NULL_CALLS is set. Then every entry point runs behind a counter; otherwise the dispatch table has no counters at all, so
/// that counting costs a measured run nothing.
extern const bool counting_calls;

enum class Entry : std::uint32_t {
#define XPU_CL_ENTRY(name) name,
#include "core_entries.inc"
#define XPU_CL_ENTRY(name) name,
#include "null_driver/extension_entries.inc"
  clCreateCommandQueueWithPropertiesKHR,
  count
};

void count_call(Entry entry) noexcept;
void count_event_created() noexcept;
void count_event_destroyed() noexcept;

/// Calls so far of this thread, or of the whole process.
std::uint64_t call_count(bool this_thread_only) noexcept;

/// Writes the counts as JSON to XPU_NULL_CALLS, in which "%p" stands for the process id; a forked child appends ".<its pid>" to a path
/// without "%p", and its counts begin at the fork.
void write_call_counts();

void reset_counts_in_child();

}  // namespace xpu::null_driver
