#include "xpu/profiler/config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/expect.hpp"
#include "xpu/base/text.hpp"

/// Any text is refused with a sentence that a terminal can show, or it is a Config that is allowed, with warnings that a terminal can show;
/// and wherever it says the trace goes, from outside that is in the folder.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace profiler = xpu::profiler;
  const auto parsed = profiler::parse_config(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) {
    XPU_FUZZ_EXPECT(parsed.error().code == xpu::ErrorCode::invalid_argument);
    XPU_FUZZ_EXPECT(parsed.error().message == xpu::printable(parsed.error().message));
    return 0;
  }
  XPU_FUZZ_EXPECT(profiler::check_config(parsed->config).has_value());
  for (const std::string& warning : parsed->warnings) XPU_FUZZ_EXPECT(warning == xpu::printable(warning));
  const auto path = profiler::confined_trace_path(parsed->config, "/traces", 7);
  XPU_FUZZ_EXPECT(!path || (path->starts_with("/traces/") && path->find("/../") == std::string::npos));
  XPU_FUZZ_EXPECT(!profiler::trace_path(parsed->config, "/traces", 7).empty());
  const auto snapshot = profiler::memory_snapshot_path(parsed->config, "/traces", true, 7);
  XPU_FUZZ_EXPECT(!snapshot || (snapshot->starts_with("/traces/") && snapshot->find("/../") == std::string::npos));
  (void)profiler::memory_snapshot_path(parsed->config, "/traces", false, 7);
  const std::int64_t start_ms = parsed->config.start_time_unix_ms.value_or(0);
  XPU_FUZZ_EXPECT(profiler::check_start_time(parsed->config, start_ms).has_value());
  return 0;
}
