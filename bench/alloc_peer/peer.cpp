// The allocator of the installed library behind the interface of the allocator benchmarks: public headers only, default options.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "peer_api.h"
#include "xpu/memory/device_caching_allocator.hpp"

namespace {

using xpu::Error;
using xpu::ErrorCode;
using xpu::Result;

constexpr std::size_t kPage = std::size_t{2} << 20;
// An unlimited device still has a size, from which the allocator derives how many addresses it reserves.
constexpr std::size_t kUnlimitedBytes = std::size_t{240} << 30;
constexpr int kStreams = 64;

class FakeMemory final : public xpu::hal::MemoryProvider {
 public:
  FakeMemory(const xa_upstream& upstream, std::size_t capacity) : upstream_(upstream), total_(std::min(capacity, kUnlimitedBytes)) {}

  Result<void*> allocate(std::size_t bytes, std::size_t alignment) override { return or_exhausted(upstream_.alloc(bytes, alignment)); }
  void free(void*) noexcept override { std::abort(); }  // expandable segments never come here
  Result<void*> reserve(std::size_t bytes) override { return or_exhausted(upstream_.reserve(bytes, kPage)); }
  void unreserve(void* address, std::size_t bytes) noexcept override { upstream_.unreserve(address, bytes); }
  Result<> map(void* address, std::size_t bytes) override {
    if (upstream_.commit(address, bytes) != 0) return exhausted();
    return {};
  }
  void unmap(void* address, std::size_t bytes) noexcept override { upstream_.decommit(address, bytes); }
  std::size_t granularity() const noexcept override { return kPage; }
  Result<xpu::hal::MemoryInfo> info() override { return xpu::hal::MemoryInfo{total_, total_, false}; }

 private:
  static Error exhausted() { return {ErrorCode::out_of_device_memory, "the fake device is full"}; }
  static Result<void*> or_exhausted(void* address) {
    if (address == nullptr) return exhausted();
    return address;
  }

  const xa_upstream upstream_;
  const std::size_t total_;
};

/// A stream has done what was submitted to it when `sync` is called, or when somebody waits.
class FakeProgress final : public xpu::hal::QueueProgress {
 public:
  Result<std::uint64_t> issue(void* queue) override { return ++at(queue).issued; }
  std::uint64_t completed(void* queue) noexcept override { return at(queue).completed; }
  Result<> wait_blocking(void* queue, std::uint64_t ticket) override {
    complete(at(queue), ticket);
    return {};
  }
  Result<> make_wait(void*, void*, std::uint64_t) override { return {}; }

  void finish(int stream) { complete(streams_[static_cast<std::size_t>(stream)], streams_[static_cast<std::size_t>(stream)].issued); }
  xpu::memory::StreamRef ref(int stream) { return {stream, &streams_[static_cast<std::size_t>(stream)], false}; }

 private:
  struct Stream {
    std::atomic<std::uint64_t> issued{0}, completed{0};
  };
  static Stream& at(void* queue) noexcept { return *static_cast<Stream*>(queue); }
  static void complete(Stream& stream, std::uint64_t ticket) {
    std::uint64_t before = stream.completed;
    while (before < ticket && !stream.completed.compare_exchange_weak(before, ticket)) {
    }
  }
  std::array<Stream, kStreams> streams_;
};

/// What was done, counted apart from the allocator, a line for each thread.
struct alignas(128) Count {
  std::uint64_t allocations = 0, frees = 0, allocated_bytes = 0, freed_bytes = 0;  // bytes as requested
};
std::array<Count, 256> g_counts;
constinit thread_local Count* t_count __attribute__((tls_model("initial-exec"))) = nullptr;
constinit std::atomic<std::size_t> g_threads{0};
Count& my_count() {
  if (t_count == nullptr) t_count = &g_counts[g_threads++ % g_counts.size()];
  return *t_count;
}

xpu::memory::DeviceCachingAllocator* g_allocator;
FakeProgress* g_progress;

void require(bool is_right, const char* what, std::int64_t seen, std::int64_t counted) {
  if (is_right) return;
  std::fprintf(stderr, "xpu: %s: the allocator says %lld, counted were %lld\n", what, static_cast<long long>(seen),
               static_cast<long long>(counted));
  std::abort();
}

/// Statistics and snapshot say what was counted. While no other thread is at work.
void check_books() {
  Count sum;
  for (const Count& count : g_counts) {
    sum.allocations += count.allocations;
    sum.frees += count.frees;
    sum.allocated_bytes += count.allocated_bytes;
    sum.freed_bytes += count.freed_bytes;
  }
  const auto live = static_cast<std::int64_t>(sum.allocations - sum.frees);
  const auto bytes = static_cast<std::int64_t>(sum.allocated_bytes - sum.freed_bytes);
  const xpu::memory::DeviceStatistics statistics = g_allocator->statistics();
  require(statistics.allocation.all.current == live, "live blocks", statistics.allocation.all.current, live);
  require(statistics.allocation.all.allocated == static_cast<std::int64_t>(sum.allocations), "allocations",
          statistics.allocation.all.allocated, static_cast<std::int64_t>(sum.allocations));
  require(statistics.requested_bytes.all.current == bytes, "requested bytes", statistics.requested_bytes.all.current, bytes);
  std::int64_t allocated = 0, active = 0, requested = 0, reserved = 0;
  for (const xpu::memory::SnapshotSegment& segment : g_allocator->snapshot().segments) {
    allocated += static_cast<std::int64_t>(segment.allocated_bytes);
    active += static_cast<std::int64_t>(segment.active_bytes);
    requested += static_cast<std::int64_t>(segment.requested_bytes);
    reserved += static_cast<std::int64_t>(segment.total_bytes);
  }
  require(requested == bytes, "requested bytes of the snapshot", requested, bytes);
  require(allocated == statistics.allocated_bytes.all.current, "allocated bytes of the snapshot", allocated,
          statistics.allocated_bytes.all.current);
  require(active == statistics.active_bytes.all.current, "active bytes of the snapshot", active, statistics.active_bytes.all.current);
  require(reserved == statistics.reserved_bytes.all.current, "reserved bytes of the snapshot", reserved,
          statistics.reserved_bytes.all.current);
}

/// No function of the interface says that a case is over. The measuring programs do, by a line on their standard output, and none of their
/// threads is at work then: so the line comes through here.
ssize_t write_after_check(void*, const char* text, std::size_t bytes) {
  check_books();
  std::size_t written = 0;
  while (written < bytes) {
    const ssize_t count = write(STDOUT_FILENO, text + written, bytes - written);
    if (count < 0 && errno != EINTR) break;
    if (count > 0) written += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(written);
}

int initialize(const xa_upstream* upstream, std::size_t capacity) {
  auto* const memory = new FakeMemory(*upstream, capacity);
  g_progress = new FakeProgress();
  auto created = xpu::memory::DeviceCachingAllocator::create(*memory, *g_progress);
  if (!created) {
    std::fprintf(stderr, "xpu: %s\n", created.error().message.c_str());
    return 1;
  }
  g_allocator = std::move(created).value().release();
  std::FILE* const checked = fopencookie(nullptr, "w", {nullptr, write_after_check, nullptr, nullptr});
  if (checked == nullptr) return 1;
  stdout = checked;
  return 0;
}

void* allocate(std::size_t bytes, int stream) {
  Result<void*> allocated = g_allocator->allocate(bytes, g_progress->ref(stream));
  if (!allocated) return nullptr;
  Count& count = my_count();
  ++count.allocations;
  count.allocated_bytes += bytes;
  return *allocated;
}

void release(void* p, std::size_t bytes, int) {
  if (!g_allocator->free(p)) std::abort();
  Count& count = my_count();
  ++count.frees;
  count.freed_bytes += bytes;
}

void record(void* p, int stream) { static_cast<void>(g_allocator->record_use(p, g_progress->ref(stream))); }
void sync(int stream) { g_progress->finish(stream); }
void trim() { g_allocator->empty_cache(); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const xa_peer* xa_get_peer() {
  static const xa_peer peer{"xpu", 1, 1, 0, initialize, allocate, release, record, sync, trim};
  return &peer;
}
