// How fast kernels run on this driver, against the same loops under OpenMP on the same machine.
//
//     drivers_host_speed_bench [LEAST_RATIO]
//
// saxpy is bound by memory, sgemm by arithmetic. Each is run alternately by both, launch and synchronisation included, and the fastest run
// of each counts: what else the machine does makes runs slower, never faster. Exit code 1 when a ratio is below LEAST_RATIO, or a result is
// wrong. What is "adaptive" by default counts: these launches promise nothing, so workers run them.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "drivers/host/driver.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/kernel_function.hpp"

namespace xpu::drivers::host {
namespace {

constexpr std::uint64_t kSaxpyItems = std::uint64_t{4} << 20;
constexpr std::uint64_t kMatrix = 512;
constexpr std::uint64_t kTile = 32;
constexpr int kLeastRounds = 40;
constexpr std::uint64_t kLongestNs = 40'000'000'000;
// OpenMP's threads go on spinning for some milliseconds behind a loop, and would take the processors from whatever is measured next.
constexpr std::chrono::milliseconds kRest{20};

inline void saxpy_item(std::uint64_t index, float a, const float* __restrict x, float* __restrict y) { y[index] += a * x[index]; }

/// One tile of c += a * b.
inline void sgemm_tile(std::uint64_t row, std::uint64_t column, const float* __restrict a, const float* __restrict b, float* __restrict c) {
  float sums[kTile][kTile] = {};
  for (std::uint64_t k = 0; k < kMatrix; ++k) {
    for (std::uint64_t i = 0; i < kTile; ++i) {
      const float factor = a[(row + i) * kMatrix + k];
      for (std::uint64_t j = 0; j < kTile; ++j) sums[i][j] += factor * b[k * kMatrix + column + j];
    }
  }
  for (std::uint64_t i = 0; i < kTile; ++i) {
    for (std::uint64_t j = 0; j < kTile; ++j) c[(row + i) * kMatrix + column + j] += sums[i][j];
  }
}

void saxpy(const WorkItem& item, float a, const float* x, float* y) { saxpy_item(item.global_id(0), a, x, y); }
void sgemm(const WorkGroup& group, const float* a, const float* b, float* c) {
  sgemm_tile(group.first(1) * kTile, group.first(0) * kTile, a, b, c);
}

void saxpy_openmp(float a, const float* x, float* y) {
#pragma omp parallel for schedule(static)
  for (std::uint64_t index = 0; index < kSaxpyItems; ++index) saxpy_item(index, a, x, y);
}
void sgemm_openmp(const float* a, const float* b, float* c) {
#pragma omp parallel for collapse(2) schedule(static)
  for (std::uint64_t row = 0; row < kMatrix; row += kTile) {
    for (std::uint64_t column = 0; column < kMatrix; column += kTile) sgemm_tile(row, column, a, b, c);
  }
}

struct SaxpyArguments {
  float a;
  const float* x;
  float* y;
};
struct SgemmArguments {
  const float* a;
  const float* b;
  float* c;
};

[[noreturn]] void give_up(const char* what, const Error& error) {
  std::fprintf(stderr, "drivers_host_speed_bench: %s: %s\n", what, to_string(error).c_str());
  std::exit(2);
}

class Bench {
 public:
  Bench() : driver_(create_driver()), device_(driver_->open_device(0).value()), queue_(device_->create_queue({}).value()) {}

  template <typename Arguments>
  void launch(const hal::Kernel& kernel, const hal::Geometry& geometry, const Arguments& arguments) {
    if (Result<> result = queue_->launch({&kernel, &geometry, std::as_bytes(std::span(&arguments, 1)), 0}, {}); !result) {
      give_up("launch", result.error());
    }
    if (Result<> result = queue_->synchronize_blocking(); !result) give_up("synchronize", result.error());
  }

  template <auto function>
  std::shared_ptr<const hal::Kernel> kernel(const char* name) {
    const kernel_function::Described<function> described(name, KernelFacts{});
    hal::ModuleSource source;
    source.format = hal::ModuleFormat::functions;
    source.functions = {&described.descriptor, 1};
    return device_->create_module(source).value()->kernel(name).value();
  }

  /// Prints one line; whether the ratio is high enough. Both have then run equally often.
  template <typename Ours, typename Theirs>
  bool compare(const char* name, double work, const char* unit, double least_ratio, Ours&& ours, Theirs&& theirs) {
    ours();  // threads start, pages appear
    theirs();
    double our_best_ns = 1e18, their_best_ns = 1e18, ratio = 0;
    const std::uint64_t give_up_ns = now_ns() + kLongestNs;
    for (int round = 0; round < kLeastRounds || (ratio < least_ratio && now_ns() < give_up_ns); ++round) {
      std::this_thread::sleep_for(kRest);
      const std::uint64_t begin = now_ns();
      ours();
      const std::uint64_t middle = now_ns();
      theirs();
      const std::uint64_t end = now_ns();
      our_best_ns = std::min(our_best_ns, static_cast<double>(middle - begin));
      their_best_ns = std::min(their_best_ns, static_cast<double>(end - middle));
      ratio = their_best_ns / our_best_ns;
    }
    const bool is_enough = ratio >= least_ratio;
    std::printf("%-6s host %7.2f %s, OpenMP %7.2f %s, ratio %.2f%s\n", name, work / our_best_ns, unit, work / their_best_ns, unit, ratio,
                is_enough ? "" : ", which is too low");
    return is_enough;
  }

 private:
  std::unique_ptr<hal::Driver> driver_;
  std::unique_ptr<hal::Device> device_;
  std::unique_ptr<hal::Queue> queue_;
};

int run(double least_ratio) {
  Bench bench;
  std::printf("%d threads under OpenMP\n", omp_get_max_threads());
  bool is_good = true;
  {
    std::vector<float> x(kSaxpyItems, 1.0f), y(kSaxpyItems, 0.0f), y_openmp(kSaxpyItems, 0.0f);
    const auto kernel = bench.kernel<saxpy>("saxpy");
    hal::Geometry geometry;
    geometry.global[0] = kSaxpyItems;
    const SaxpyArguments arguments{2.0f, x.data(), y.data()};
    is_good &= bench.compare(
        "saxpy", 12.0 * kSaxpyItems, "GB/s", least_ratio, [&] { bench.launch(*kernel, geometry, arguments); },
        [&] { saxpy_openmp(2.0f, x.data(), y_openmp.data()); });
    is_good &= y == y_openmp && y[kSaxpyItems - 1] >= 2.0f * kLeastRounds;
  }
  {
    std::vector<float> a(kMatrix * kMatrix), b(kMatrix * kMatrix), c(kMatrix * kMatrix), c_openmp(kMatrix * kMatrix);
    for (std::size_t index = 0; index < a.size(); ++index) {
      a[index] = static_cast<float>(index % 7);
      b[index] = static_cast<float>(index % 5);
    }
    const auto kernel = bench.kernel<sgemm>("sgemm");
    hal::Geometry geometry;
    geometry.dimensions = 2;
    geometry.global[0] = geometry.global[1] = kMatrix / kTile;
    geometry.local[0] = geometry.local[1] = geometry.local[2] = 1;
    const SgemmArguments arguments{a.data(), b.data(), c.data()};
    is_good &= bench.compare(
        "sgemm", 2.0 * kMatrix * kMatrix * kMatrix, "GFLOP/s", least_ratio, [&] { bench.launch(*kernel, geometry, arguments); },
        [&] { sgemm_openmp(a.data(), b.data(), c_openmp.data()); });
    is_good &= c == c_openmp;
  }
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace xpu::drivers::host

int main(int argc, char** argv) { return xpu::drivers::host::run(argc > 1 ? std::atof(argv[1]) : 0.0); }
