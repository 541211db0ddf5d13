#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/expect.hpp"
#include "trace/recording/manifest.hpp"

/// Any text is refused or read, and what was read is written and read again as the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = xpu::trace::manifest_from_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!manifest) return 0;
  const std::string text = xpu::trace::manifest_to_json(*manifest);
  const auto again = xpu::trace::manifest_from_json(text);
  XPU_FUZZ_EXPECT(again.has_value());
  XPU_FUZZ_EXPECT(xpu::trace::manifest_to_json(*again) == text);
  return 0;
}
