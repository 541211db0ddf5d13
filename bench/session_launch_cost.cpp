// session_launch_cost without|after|device|everything LAUNCHES: so many launches on the host driver, in a program that never had a session,
// after one that has ended, or in one. For an instruction count: the difference of two counts leaves everything out that happens once.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "xpu/profiler/session.hpp"
#include "xpu/runtime/runtime.hpp"
#include "xpu/runtime/stream.hpp"

namespace {

void add(const xpu::WorkGroup& group, std::uint64_t* sum, std::uint64_t amount, std::int32_t factor) {
  *sum += amount * static_cast<std::uint64_t>(factor) * group.items(0);
}
XPU_KERNEL(add, "sum", "amount", "factor");

bool launch(std::uint64_t count) {
  const xpu::Stream stream = xpu::Stream::current().value();
  const xpu::Kernel kernel = xpu::Kernel::registered("add").value();
  std::uint64_t sum = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    if (!stream.launch(kernel, xpu::items(1), &sum, index, 2)) return false;
  }
  stream.synchronize().value();
  return sum == count * (count - 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string mode = argv[1];
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  using xpu::profiler::ActivityKind;
  xpu::profiler::Config config;
  config.max_buffer_mib = 1'024;
  if (mode != "everything") config.kinds = {ActivityKind::kernel, ActivityKind::gpu_memcpy, ActivityKind::gpu_memset};
  std::optional<xpu::profiler::Session> session;
  if (mode != "without") session.emplace(config).start().value();
  if (mode == "after") {
    if (!launch(100)) return 1;
    session->stop().value();
    session.reset();
  }
  return launch(count) ? 0 : 1;
}
