#include <cstddef>
#include <cstdint>
#include <limits>

#include "tests/fuzz/clock_input.hpp"
#include "tests/fuzz/expect.hpp"

/// Any readings make a map that answers any question, or none that is usable. What it promises of its own figures holds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xpu;
  const fuzz::ClockInput input = fuzz::clock_input(fuzz::bytes_of(data, size));
  const trace::ClockMap map(input.points, input.unit);
  XPU_FUZZ_EXPECT(map.readings() <= input.points.size());
  XPU_FUZZ_EXPECT(!map.usable() || map.readings() != 0);
  XPU_FUZZ_EXPECT(map.steps() <= 64);

  const auto ask = [&](std::uint64_t ticks, std::uint64_t near_ns) {
    const trace::MappedTime time = map.to_host(ticks, near_ns);
    if (!map.usable()) XPU_FUZZ_EXPECT(time.host_ns == 0 && time.error_ns == std::numeric_limits<std::uint64_t>::max());
    const trace::MappedTime again = map.to_host(ticks, near_ns);
    XPU_FUZZ_EXPECT(again.host_ns == time.host_ns && again.error_ns == time.error_ns);
  };
  std::uint64_t previous = 0;
  for (const trace::ClockPoint& point : input.points) {
    const std::uint64_t between = previous + (point.device_ticks - previous) / 2;
    ask(point.device_ticks, point.host_before_ns);
    ask(between, 0);
    ask(point.device_ticks + 1'000'000, point.host_after_ns);
    previous = point.device_ticks;
  }
  for (const std::uint64_t ticks : {std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()}) {
    ask(ticks, 0);
    ask(ticks, std::numeric_limits<std::uint64_t>::max());
  }
  XPU_FUZZ_EXPECT(map.ticks_to_ns(1'000) <= map.ticks_to_ns(2'000));
  return 0;
}
