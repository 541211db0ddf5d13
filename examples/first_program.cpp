// A kernel from source text, on two streams: one brings the data, the other computes, and two events say how long that took.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "xpu/xpu.hpp"

constexpr const char* kSource = R"(
void saxpy(const xpu::WorkItem& item, float a, const float* x, float* y) { y[item.global_id(0)] += a * x[item.global_id(0)]; }
XPU_KERNEL(saxpy, "a", "x", "y");
)";

int main() try {
  constexpr std::size_t kCount = 1 << 20;
  const xpu::Device device = xpu::Device::get(0).value();
  const xpu::Kernel saxpy = xpu::Module::from_source(kSource).value().kernel("saxpy").value();
  const xpu::Buffer x = xpu::Buffer::allocate(kCount * sizeof(float)).value();
  const xpu::Buffer y = xpu::Buffer::allocate(kCount * sizeof(float)).value();
  const xpu::Stream bring = xpu::Stream::from_pool().value(), compute = xpu::Stream::from_pool().value();

  const std::vector<float> ones(kCount, 1.0f);
  bring.copy(x.data(), ones.data(), x.size_bytes()).value();  // returns at once
  compute.fill(y.as<float>(), 2.0f, kCount).value();          // meanwhile
  compute.wait(bring).value();                                // what follows needs both

  xpu::Event begin({.timing = true}), end({.timing = true});
  compute.record(begin).value();
  compute.launch(saxpy, xpu::items(kCount), 3.0f, x.as<float>(), y.as<float>()).value();
  compute.record(end).value();

  std::vector<float> result(kCount);
  compute.copy_blocking(result.data(), y.data(), y.size_bytes()).value();
  const auto right = std::count(result.begin(), result.end(), 3.0f * 1.0f + 2.0f);
  const double ms = begin.elapsed_time(end).value();
  std::printf("%s: saxpy took %.3f ms, %td of %zu right\n", device.properties().name.c_str(), ms, right, kCount);
  return right == kCount ? 0 : 1;
} catch (const xpu::BadResult& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
