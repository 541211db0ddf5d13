// How much more memory than is in use a program needs with the device allocator, on a device that does not exist.
//
// For each workload and seed: the smallest device that finishes it, beside the most that is live at a time, in blocks as they are rounded.
// Then random sizes on four streams of a device of which nine tenths are live. Fails when a workload needs a larger device than it may,
// and when a request is refused in the second part.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "memory_traces.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace {

using xpu::memory::block_bytes;
using xpu::memory::DeviceCachingAllocator;
using xpu::memory::FakeDeviceMemory;
using xpu::memory::kMiB;
using xpu::memory::MemoryTrace;
using xpu::memory::ScriptedProgress;
using xpu::memory::TraceOperation;
using xpu::memory::Workload;

constexpr std::size_t kPage = FakeDeviceMemory::kPage;
constexpr std::uint64_t kSeeds = 3;

class Program {
 public:
  explicit Program(std::size_t device_bytes) : memory_(device_bytes, true) {}

  /// Null when it is refused.
  void* allocate(std::size_t bytes, std::size_t stream) {
    const xpu::Result<void*> allocated = allocator_->allocate(bytes, progress_.stream(static_cast<std::int64_t>(stream)));
    return allocated ? *allocated : nullptr;
  }
  void free(void* block) { allocator_->free(block).value(); }
  void use(void* block, std::size_t stream) {
    if (!allocator_->record_use(block, progress_.stream(static_cast<std::int64_t>(stream)))) std::abort();
  }
  void finish(std::size_t stream) { progress_.reach_all(progress_.stream(static_cast<std::int64_t>(stream))); }
  bool is_sound() const { return memory_.broken_rules() == 0; }

 private:
  FakeDeviceMemory memory_;
  ScriptedProgress progress_;
  std::unique_ptr<DeviceCachingAllocator> allocator_ = DeviceCachingAllocator::create(memory_, progress_).value();
};

std::size_t peak_bytes(const MemoryTrace& trace) {
  std::vector<std::size_t> sizes;
  std::size_t live = 0, peak = 0;
  for (const TraceOperation& operation : trace) {
    if (operation.kind == TraceOperation::Kind::allocate) {
      sizes.push_back(block_bytes(operation.bytes));
      live += sizes.back();
      peak = std::max(peak, live);
    } else if (operation.kind == TraceOperation::Kind::free) {
      live -= sizes[operation.block];
    }
  }
  return peak;
}

bool finishes(const MemoryTrace& trace, std::size_t device_bytes) {
  Program program(device_bytes);
  std::vector<void*> blocks;
  for (const TraceOperation& operation : trace) {
    switch (operation.kind) {
      case TraceOperation::Kind::allocate: {
        blocks.push_back(program.allocate(operation.bytes, operation.stream));
        if (blocks.back() == nullptr) return false;
        break;
      }
      case TraceOperation::Kind::use: program.use(blocks[operation.block], operation.stream); break;
      case TraceOperation::Kind::free: program.free(blocks[operation.block]); break;
      case TraceOperation::Kind::finish: program.finish(operation.stream); break;
    }
  }
  return program.is_sound();
}

/// Of a device that finishes it, to a page; not searched above a tenth more than `peak`.
std::size_t smallest_device(const MemoryTrace& trace, std::size_t peak) {
  std::size_t too_few = peak / kPage - (peak % kPage == 0 ? 1 : 0), enough = (peak + peak / 10) / kPage;
  while (enough - too_few > 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    (finishes(trace, middle * kPage) ? enough : too_few) = middle;
  }
  return enough * kPage;
}

bool packs(const Workload& workload, std::uint64_t seed) {
  const MemoryTrace trace = workload.make(seed);
  const std::size_t peak = peak_bytes(trace);
  const double of_live = static_cast<double>(smallest_device(trace, peak)) / static_cast<double>(peak);
  std::printf("%-16s %llu: %zu operations, at most %zu MiB live, the device needs %.4f of it (limit %.3f)\n", workload.name,
              static_cast<unsigned long long>(seed), trace.size(), peak / kMiB, of_live, workload.most_of_live);
  return of_live <= workload.most_of_live;
}

/// Tiny ones, weights, activations, and a few that are large.
std::size_t random_bytes(std::mt19937_64& random) {
  const std::size_t width = 256 * (3 + random() % 14);
  switch (random() % 8) {
    case 0:
    case 1: return 4 + random() % 1'024;
    case 2:
    case 3: return 2 * width * (1 + random() % 64);
    case 4:
    case 5:
    case 6: return 2 * width * (128 + random() % 2'048);
    default: return 4 * width * (512 + random() % 4'096);
  }
}

std::size_t refusals_of_a_full_device(std::uint64_t seed) {
  constexpr std::size_t kDeviceBytes = 8'192 * kMiB, kStreams = 4, kOperations = 100'000;
  struct Live {
    void* block;
    std::size_t bytes;
  };
  Program program(kDeviceBytes);
  std::mt19937_64 random(seed);
  std::vector<Live> live;
  std::size_t bytes = 0, refusals = 0;
  for (std::size_t operation = 0; operation < kOperations; ++operation) {
    const std::size_t wanted = random_bytes(random);
    while (bytes + wanted > kDeviceBytes / 10 * 9) {
      std::swap(live[random() % live.size()], live.back());
      if (random() % 8 == 0) program.use(live.back().block, random() % kStreams);
      program.free(live.back().block);
      bytes -= live.back().bytes;
      live.pop_back();
    }
    if (void* const block = program.allocate(wanted, random() % kStreams); block != nullptr) {
      live.push_back({block, wanted});
      bytes += wanted;
    } else {
      ++refusals;
    }
    if (random() % 64 == 0) program.finish(random() % kStreams);
  }
  std::printf("nine tenths of %zu MiB live %llu: %zu of %zu requests refused\n", kDeviceBytes / kMiB, static_cast<unsigned long long>(seed),
              refusals, kOperations);
  return refusals + (program.is_sound() ? 0 : 1);
}

}  // namespace

int main() {
  bool is_right = true;
  for (const Workload& workload : xpu::memory::workloads()) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) is_right &= packs(workload, seed);
  }
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) is_right &= refusals_of_a_full_device(seed) == 0;
  return is_right ? 0 : 1;
}
