#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace xpu::profiler::test_support {

/// Of a device whose clock has to be mapped, times depend on which readings were known.
enum class DeviceTimes : std::uint8_t { exact, left_out };

/// The events of a Chrome trace as sorted lines that are the same for two traces of the same happenings: times count from the first call,
/// and a correlation, which counts in the order of writing, is the call that has it. Metadata included. A line "no trace: …" where the
/// document cannot be read.
std::vector<std::string> comparable_events(const std::string& document, DeviceTimes times = DeviceTimes::exact);
/// When commands began, from the first call on, in ns, by their call; and the largest error of a clock, also in ns.
std::map<std::string, std::int64_t> device_starts(const std::string& document);
std::int64_t largest_clock_error_ns(const std::string& document);
/// The figures of the same document: losses, events, devices, clocks (but for their readings, which depend on who listens as well).
std::string comparable_figures(const std::string& document, DeviceTimes times = DeviceTimes::exact);
/// The same of a trace in Perfetto's own format; what its reader complains about included.
std::vector<std::string> comparable_perfetto_events(const std::string& trace);

/// What is in one list only.
std::vector<std::string> differences(const std::vector<std::string>& one, const std::vector<std::string>& other);
/// The contents of a file, decompressed when it is a gzip file, as far as it goes.
std::string read_trace_file(const std::string& path);

}  // namespace xpu::profiler::test_support
