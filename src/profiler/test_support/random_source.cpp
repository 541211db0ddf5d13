#include "profiler/test_support/random_source.hpp"

#include <random>

namespace xpu::profiler::test_support {

ScriptedSource random_source(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  ScriptedSource source;
  for (std::uint64_t process = 0; process <= below(3); ++process) {
    source.add_simple_process(100 + process);
    source.add_queue(1, true);
    source.add_thread(2, 5'000);
    const std::uint32_t commands = below(60), horizon = 100 + below(20'000);
    for (std::uint32_t i = 0; i < commands; ++i) {
      const std::uint64_t start = 10'000 + below(horizon);
      ScriptedCommand command{.queue = 1 + below(2),
                              .start = start,
                              .end = start + below(400),
                              .enter_ns = 5'000 + i * 10,
                              .exit_ns = 5'005 + i * 10,
                              .writer = 1 + below(2)};
      if (below(10) == 0) command.start = command.end = 0;
      if (below(20) == 0) command.result = -5, command.start = command.end = 0;
      source.add_command(command);
    }
  }
  source.shuffle(seed);
  return source;
}

}  // namespace xpu::profiler::test_support
