#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/expect.hpp"
#include "xpu/drivers/sim.hpp"

/// Any text is refused with its place, or it is a program that is allowed, is written, and is read again as the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace sim = xpu::drivers::sim;
  const auto program = sim::parse_program(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!program) {
    XPU_FUZZ_EXPECT(program.error().code == xpu::ErrorCode::invalid_argument);
    XPU_FUZZ_EXPECT(program.error().message.starts_with("fuzz:"));
    return 0;
  }
  XPU_FUZZ_EXPECT(sim::check_program(*program).has_value());
  const std::string text = sim::to_text(*program);
  const auto again = sim::parse_program(text, "again");
  XPU_FUZZ_EXPECT(again.has_value());
  XPU_FUZZ_EXPECT(*again == *program);
  XPU_FUZZ_EXPECT(sim::to_text(*again) == text);
  return 0;
}
