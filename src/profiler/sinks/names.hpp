#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "xpu/profiler/activity.hpp"

/// How commands and rows are called in exported files, whatever the format.
namespace xpu::profiler {

/// Above every process and thread id of Linux: for what has none.
inline constexpr std::uint64_t kFirstMadeUpId = std::uint64_t{1} << 22;

/// "Host", "Pinned", … as far as it is known, else what the side of the copy says.
std::string place_name(MemoryType type, bool device_side);
/// "Memcpy HtoD (Host -> Device)"; readers know the first eleven characters. Commands that may not move anything name themselves.
std::string copy_name(const MemcpyActivity& copy);
/// The same number, the same name: for keeping what was made of it.
inline std::uint32_t name_key(const MemcpyActivity& copy) {
  return static_cast<std::uint32_t>(copy.command) << 24 | static_cast<std::uint32_t>(copy.direction) << 16 |
         static_cast<std::uint32_t>(copy.source) << 8 | static_cast<std::uint32_t>(copy.destination);
}
/// "Memset (Device)".
std::string fill_name(const MemsetActivity& fill);
/// Whether a command of this kind does something, as a kernel does; the others only wait for each other.
bool works(Command command);

std::string row_name(const ProcessDefinition& process);
/// `tid` is what the thread is known by where it has no name.
std::string row_name(const ThreadDefinition& thread, std::uint64_t tid);
/// "queue 1", with the program's name for it and with the lane; the process is named where a recording has several.
std::string row_name(const QueueDefinition& queue, std::uint32_t lane, bool several_processes);
/// "queue 1 annotations": the row beside the queue's own that shows what it did for annotations of the program.
std::string annotation_row_name(const QueueDefinition& queue, std::uint32_t lane, bool several_processes);
/// "name (driver)".
std::string row_name(const DeviceDefinition& device);
/// "memory of context 1".
std::string memory_name(std::uint32_t context);
/// "7 commands lost (no_chunk)".
std::string loss_name(const LossActivity& loss);
/// "[1,2,3]".
std::string triple(const std::uint64_t (&values)[3]);

}  // namespace xpu::profiler
