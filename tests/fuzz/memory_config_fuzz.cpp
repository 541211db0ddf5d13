#include "xpu/memory/config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/expect.hpp"
#include "xpu/base/text.hpp"

/// Any text is refused with a sentence that a terminal can show, or it is a Config that is allowed, is written, and is read again as the
/// same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace memory = xpu::memory;
  const auto config = memory::parse_config(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!config) {
    XPU_FUZZ_EXPECT(config.error().code == xpu::ErrorCode::invalid_argument);
    XPU_FUZZ_EXPECT(config.error().message == xpu::printable(config.error().message));
    return 0;
  }
  XPU_FUZZ_EXPECT(memory::check_config(*config).has_value());
  XPU_FUZZ_EXPECT(config->expandable_segments != true || memory::allows_expandable_segments(*config));
  const std::string text = memory::to_string(*config);
  const auto again = memory::parse_config(text);
  XPU_FUZZ_EXPECT(again.has_value());
  XPU_FUZZ_EXPECT(*again == *config);
  XPU_FUZZ_EXPECT(memory::to_string(*again) == text);
  return 0;
}
