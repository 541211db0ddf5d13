// What starting the runtime takes: run by start_cost_test.sh, which counts its system calls. Alone it prints times.
//
//   runtime_start_cost nothing|initialize|stream
#include <chrono>
#include <cstdio>
#include <string>

#include "xpu/runtime/runtime.hpp"
#include "xpu/runtime/stream.hpp"

namespace {

double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::string mode = argument_count > 1 ? arguments[1] : "stream";
  double initialized_us = 0, stream_us = 0;
  if (mode != "nothing") {
    const auto begin = std::chrono::steady_clock::now();
    if (!xpu::initialize()) return 1;
    initialized_us = microseconds_since(begin);
  }
  if (mode == "stream") {
    const auto begin = std::chrono::steady_clock::now();
    const auto stream = xpu::Stream::current();
    if (!stream || !stream->query()) return 1;
    stream_us = microseconds_since(begin);
  }
  std::printf("initialisation %.0f us, first stream use %.0f us\n", initialized_us, stream_us);
  return 0;
}
