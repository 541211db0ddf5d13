// What the device allocator costs, on a device that does not exist. Also run under callgrind by alloc_cost_test.sh, with two counts whose
// difference leaves everything out that happens once.
//
//   alloc_cost MODE COUNT
//
//   pair, pair_2m      allocates and frees 1 KiB or 2 MiB
//   history            pair, while a history of a million entries is kept
//   tracker            pair, with a tracker
//   snapshot           a snapshot of 10,000 blocks
//   read_history       one entry of a history of COUNT

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace {

using xpu::memory::DeviceCachingAllocator;
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
    if (mode == "snapshot") return snapshots();
    if (mode == "read_history") return read_history();
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
  double snapshots() {
    std::vector<void*> blocks;
    for (int index = 0; index < 10'000; ++index) blocks.push_back(allocator_->allocate(4'096, stream_).value());
    return time([&] { seen_ += allocator_->snapshot().segments.size(); });
  }
  double read_history() {
    allocator_->start_history().value();
    for (std::uint64_t index = 0; index < count_ / 3; ++index) pair(1'024);
    const auto begin = std::chrono::steady_clock::now();
    const xpu::memory::History history = allocator_->history();
    history.for_each([&](const TraceEntry& entry) { seen_ += entry.bytes; });
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(history.size());
  }

  const std::uint64_t count_;
  std::uint64_t seen_ = 0;
  xpu::memory::FakeDeviceMemory memory_{std::size_t{8} << 30, true};
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
    std::fprintf(stderr, "usage: alloc_cost pair|pair_2m|history|tracker|snapshot|read_history COUNT\n");
    return 2;
  }
  std::printf("%s %.1f ns (%llu)\n", argv[1], ns, static_cast<unsigned long long>(bench.seen()));
  return 0;
}
