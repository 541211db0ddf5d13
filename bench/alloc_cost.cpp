// What the allocators cost, on a device that does not exist. Also run under callgrind by alloc_cost_test.sh, with two counts whose
// difference leaves everything out that happens once.
//
//   alloc_cost MODE COUNT
//
//   pair, pair_2m      allocates and frees 1 KiB or 2 MiB
//   history            pair, while a history of a million entries is kept
//   tracker            pair, with a tracker
//   host_pair          pair, of pinned memory of the host
//   snapshot           a snapshot of 10,000 blocks
//   read_history       one entry of a history of COUNT
//   write_history      the same, written into a file; in brackets the KiB by which the process grew

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"
#include "xpu/memory/host_caching_allocator.hpp"

namespace {

using xpu::memory::DeviceCachingAllocator;
using xpu::memory::HostCachingAllocator;
using xpu::memory::StreamRef;
using xpu::memory::TraceEntry;

class Bench {
 public:
  explicit Bench(std::uint64_t count) : count_(count) {}

  /// Nanoseconds of one; negative when there is no such mode.
  double run(const std::string& mode) {
    if (mode == "pair") return pairs(1'024);
    if (mode == "pair_2m") return pairs(std::size_t{2} << 20);
    if (mode == "history") {
      allocator_->start_history().value();
      return pairs(1'024);
    }
    if (mode == "tracker") {
      allocator_->attach_tracker([this](const TraceEntry&) { ++seen_; });
      return pairs(1'024);
    }
    if (mode == "host_pair") return host_pairs();
    if (mode == "snapshot") return snapshots();
    if (mode == "read_history") return read_history();
    if (mode == "write_history") return write_history();
    return -1;
  }
  std::uint64_t seen() const { return seen_; }

 private:
  void pair(std::size_t bytes) { allocator_->free(allocator_->allocate(bytes, stream_).value()).value(); }
  template <typename Step>
  double time(Step&& step) const {
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t index = 0; index < count_; ++index) step();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(count_);
  }
  double pairs(std::size_t bytes) {
    pair(bytes);
    return time([&] { pair(bytes); });
  }
  double host_pairs() {
    HostCachingAllocator allocator(host_memory_, progress_);
    const auto host_pair = [&] { allocator.free(allocator.allocate(1'024).value()).value(); };
    host_pair();
    return time(host_pair);
  }
  double snapshots() {
    std::vector<void*> blocks;
    for (int index = 0; index < 10'000; ++index) blocks.push_back(allocator_->allocate(4'096, stream_).value());
    return time([&] { seen_ += allocator_->snapshot().segments.size(); });
  }
  /// Each pair is three: an allocation, and a free that is completed at once.
  void make_history() {
    allocator_->start_history().value();
    for (std::uint64_t index = 0; index < count_ / 3; ++index) pair(1'024);
  }
  double read_history() {
    make_history();
    const auto begin = std::chrono::steady_clock::now();
    const xpu::memory::History history = allocator_->history();
    history.for_each([&](const TraceEntry& entry) { seen_ += entry.bytes; });
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(history.size());
  }
  double write_history() {
    make_history();
    const std::filesystem::path path = std::filesystem::temp_directory_path() / "alloc_cost.pickle";
    const std::uint64_t before_kib = peak_kib();
    const auto begin = std::chrono::steady_clock::now();
    allocator_->write_snapshot(path).value();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    seen_ = peak_kib() - before_kib;
    std::filesystem::remove(path);
    return took.count() / static_cast<double>(count_);
  }
  static std::uint64_t peak_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss);
  }

  const std::uint64_t count_;
  std::uint64_t seen_ = 0;
  xpu::memory::FakeDeviceMemory memory_{std::size_t{8} << 30, true};
  xpu::memory::FakeDeviceMemory host_memory_{std::size_t{8} << 30, false};
  xpu::memory::ScriptedProgress progress_;
  const StreamRef stream_ = progress_.stream(1);
  std::unique_ptr<DeviceCachingAllocator> allocator_ = DeviceCachingAllocator::create(memory_, progress_).value();
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t count = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  Bench bench(count);
  const double ns = count == 0 ? -1 : bench.run(argv[1]);
  if (ns < 0) {
    std::fprintf(stderr, "usage: alloc_cost pair|pair_2m|history|tracker|host_pair|snapshot|read_history|write_history COUNT\n");
    return 2;
  }
  std::printf("%s %.1f ns (%llu)\n", argv[1], ns, static_cast<unsigned long long>(bench.seen()));
  return 0;
}
