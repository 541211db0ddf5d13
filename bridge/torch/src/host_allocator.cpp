#include "host_allocator.hpp"

#include "check.hpp"
#include "devices.hpp"
#include "xpu/runtime/runtime.hpp"

namespace xpu_torch {
namespace {

c10::CachingAllocator::Stat to_torch(const xpu::memory::StatisticsCounter& counter) {
  return {.current = counter.current, .peak = counter.peak, .allocated = counter.allocated, .freed = counter.freed};
}
c10::CachingAllocator::DurationStat to_torch(const xpu::memory::HostStatistics::Duration& duration) {
  c10::CachingAllocator::DurationStat stat;
  stat.total = duration.total_us;
  stat.max = duration.max_us;
  stat.min = duration.min_us;
  stat.count = duration.count;
  return stat;
}

void free_pinned(void* address) noexcept {
  if (address != nullptr) static_cast<void>(pinned_allocator().free(address));
}

}  // namespace

c10::DataPtr HostAllocator::allocate(std::size_t bytes) {
  void* const address = check(pinned_allocator().allocate(bytes));
  return {address, address, &free_pinned, c10::Device(c10::DeviceType::CPU)};
}
c10::DeleterFnPtr HostAllocator::raw_deleter() const { return &free_pinned; }
void HostAllocator::copy_data(void* destination, const void* source, std::size_t bytes) const {
  default_copy_data(destination, source, bytes);
}
bool HostAllocator::record_event(void* pointer, void*, c10::Stream stream) {
  return pinned_allocator().record_use(pointer, to_xpu(stream).memory_ref());
}
void HostAllocator::empty_cache() {
  if (xpu::is_initialized()) pinned_allocator().empty_cache();
}
at::HostStats HostAllocator::get_stats() {
  const xpu::memory::HostStatistics ours = pinned_allocator().statistics();
  at::HostStats theirs;
  theirs.active_requests = to_torch(ours.allocation);
  theirs.active_bytes = to_torch(ours.allocated_bytes);
  theirs.allocations = to_torch(ours.segment);
  theirs.allocated_bytes = to_torch(ours.reserved_bytes);
  theirs.host_alloc_time = to_torch(ours.host_alloc_time);
  theirs.host_free_time = to_torch(ours.host_free_time);
  theirs.num_host_alloc = ours.num_host_alloc;
  theirs.num_host_free = ours.num_host_free;
  return theirs;
}
void HostAllocator::reset_accumulated_stats() { pinned_allocator().reset_accumulated_statistics(); }
void HostAllocator::reset_peak_stats() { pinned_allocator().reset_peak_statistics(); }

HostAllocator& host_allocator() {
  static HostAllocator& only = *new HostAllocator();
  return only;
}

bool is_pinned(const void* address) noexcept {
  if (!xpu::is_initialized()) return false;
  return pinned_allocator().contains(address);
}

namespace {
const at::HostAllocatorRegistry<kDeviceType> g_registered_host_allocator(&host_allocator());
}

}  // namespace xpu_torch
