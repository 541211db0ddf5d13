#include "device_allocator.hpp"

#include <atomic>

#include "check.hpp"
#include "devices.hpp"
#include "pools.hpp"
#include "xpu/memory/pluggable_allocator.hpp"
#include "xpu/runtime/runtime.hpp"

namespace xpu_torch {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

// Whatever a program put in the place of the caching allocators; null: nothing.
std::atomic<xpu::memory::PluggableAllocator*> g_replacement{nullptr};

Stat to_torch(const xpu::memory::StatisticsCounter& counter) {
  return {.current = counter.current, .peak = counter.peak, .allocated = counter.allocated, .freed = counter.freed};
}
StatArray to_torch(const xpu::memory::StatisticsByPool& sums) {
  StatArray array;
  array[static_cast<std::size_t>(StatType::AGGREGATE)] = to_torch(sums.all);
  array[static_cast<std::size_t>(StatType::SMALL_POOL)] = to_torch(sums.small_pool);
  array[static_cast<std::size_t>(StatType::LARGE_POOL)] = to_torch(sums.large_pool);
  return array;
}

void tell_profiler(void* address, std::int64_t bytes, int device) {
  const xpu::memory::DeviceStatistics statistics = caching_allocator(device).statistics();
  c10::reportMemoryUsageToProfiler(address, bytes, static_cast<std::size_t>(statistics.allocated_bytes.all.current),
                                   static_cast<std::size_t>(statistics.reserved_bytes.all.current), device_of(device));
}

void tell_of_allocation(void* address, std::size_t bytes, int device) {
  if (const auto* const trace = gpu_trace()) (*trace)->trace_gpu_memory_allocation(kDeviceType, address_of(address));
  if (c10::memoryProfilingEnabled()) tell_profiler(address, static_cast<std::int64_t>(bytes), device);
}

}  // namespace

void* allocate_on(const xpu::memory::StreamRef& stream, int device, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* address = nullptr;
  if (auto* const replacement = g_replacement.load(std::memory_order_acquire)) {
    address = check(replacement->allocate(bytes, stream));
  } else {
    auto& allocator = caching_allocator(device);
    const xpu::memory::DevicePool* const pool = thread_pool_of(device);
    auto allocated = pool != nullptr ? allocator.allocate(bytes, stream, *pool) : allocator.allocate(bytes, stream);
    if (!allocated && c10::memoryProfilingEnabled()) {
      const auto statistics = allocator.statistics();
      c10::reportOutOfMemoryToProfiler(static_cast<std::int64_t>(bytes), static_cast<std::size_t>(statistics.allocated_bytes.all.current),
                                       static_cast<std::size_t>(statistics.reserved_bytes.all.current), device_of(device));
    }
    address = check(std::move(allocated));
  }
  tell_of_allocation(address, bytes, device);
  return address;
}

void free_block(void* address) noexcept {
  if (address == nullptr) return;
  if (const auto* const trace = gpu_trace()) (*trace)->trace_gpu_memory_deallocation(kDeviceType, address_of(address));
  if (auto* const replacement = g_replacement.load(std::memory_order_acquire)) {
    static_cast<void>(replacement->free(address));
    return;
  }
  const int device = device_of_block(address);
  if (device < 0) return;  // the process exits, or was forked: nothing is known any more
  auto& allocator = caching_allocator(device);
  if (!c10::memoryProfilingEnabled()) {
    static_cast<void>(allocator.free(address));
    return;
  }
  const std::uint64_t bytes = allocator.requested_bytes_of(address).value_or(0);
  static_cast<void>(allocator.free(address));
  tell_profiler(address, -static_cast<std::int64_t>(bytes), device);
}

void replace_allocator(void* (*allocate)(std::size_t, int, void*), void (*free)(void*, std::size_t, int, void*)) {
  const int count = device_count();
  TORCH_CHECK(count > 0, "No XPU devices are available.");
  std::shared_ptr<xpu::memory::PluggableAllocator> made =
      check(xpu::memory::PluggableAllocator::create({.allocate = allocate, .free = free, .record_use = nullptr}));
  for (int device = 0; device < count; ++device) {
    TORCH_CHECK(!caching_allocator(device).statistics().allocation.all.allocated, "Can't swap an already initialized allocator: device ",
                device, " has allocated memory already");
    check(check(xpu::Device::get(device)).replace_allocator(made));
  }
  g_replacement.store(made.get(), std::memory_order_release);  // the runtime keeps it for ever
}

c10::DataPtr DeviceAllocator::allocate(std::size_t bytes) {
  const int device = xpu::Device::current();
  if (bytes == 0) return {nullptr, nullptr, &free_block, device_of(device)};
  void* const address = allocate_on(current_stream(device).memory_ref(), device, bytes);
  return {address, address, &free_block, device_of(device)};
}

c10::DeleterFnPtr DeviceAllocator::raw_deleter() const { return &free_block; }

void DeviceAllocator::copy_data(void* destination, const void* source, std::size_t bytes) const {
  check(current_stream().copy(destination, source, bytes));
}

bool DeviceAllocator::initialized() { return xpu::is_initialized(); }

void DeviceAllocator::emptyCache(c10::MempoolId_t pool) {
  if (!xpu::is_initialized()) return;
  if (pool.first != 0 || pool.second != 0) {
    empty_pool(pool);
    return;
  }
  for (int device = 0; device < device_count(); ++device) caching_allocator(device).empty_cache();
}

void DeviceAllocator::recordStream(const c10::DataPtr& data, c10::Stream stream) {
  // Memory that somebody else allocated, and a tensor's without any, is not ours to keep.
  if (data.get() == nullptr || data.get_deleter() != &free_block || stream.device_type() != kDeviceType) return;
  const xpu::memory::StreamRef user = to_xpu(stream).memory_ref();
  void* const address = data.get_context();
  if (auto* const replacement = g_replacement.load(std::memory_order_acquire)) {
    static_cast<void>(replacement->record_use(address, user));
  } else if (const int device = device_of_block(address); device >= 0) {
    static_cast<void>(caching_allocator(device).record_use(address, user));
  }
}

c10::CachingDeviceAllocator::DeviceStats DeviceAllocator::getDeviceStats(c10::DeviceIndex device) {
  const auto* const replacement = g_replacement.load(std::memory_order_acquire);
  const xpu::memory::DeviceStatistics ours = replacement != nullptr ? replacement->statistics() : caching_allocator(device).statistics();
  c10::CachingDeviceAllocator::DeviceStats theirs;
  theirs.allocation = to_torch(ours.allocation);
  theirs.segment = to_torch(ours.segment);
  theirs.active = to_torch(ours.active);
  theirs.inactive_split = to_torch(ours.inactive_split);
  theirs.allocated_bytes = to_torch(ours.allocated_bytes);
  theirs.reserved_bytes = to_torch(ours.reserved_bytes);
  theirs.active_bytes = to_torch(ours.active_bytes);
  theirs.inactive_split_bytes = to_torch(ours.inactive_split_bytes);
  theirs.requested_bytes = to_torch(ours.requested_bytes);
  theirs.num_alloc_retries = ours.num_alloc_retries;
  theirs.num_ooms = ours.num_ooms;
  theirs.oversize_allocations = to_torch(ours.oversize_allocations);
  theirs.oversize_segments = to_torch(ours.oversize_segments);
  theirs.num_sync_all_streams = ours.num_sync_all_streams;
  theirs.num_device_alloc = ours.num_device_alloc;
  theirs.num_device_free = ours.num_device_free;
  theirs.max_split_size = ours.max_split_size;
  return theirs;
}

void DeviceAllocator::resetAccumulatedStats(c10::DeviceIndex device) { caching_allocator(device).reset_accumulated_statistics(); }
void DeviceAllocator::resetPeakStats(c10::DeviceIndex device) { caching_allocator(device).reset_peak_statistics(); }

std::pair<std::size_t, std::size_t> DeviceAllocator::getMemoryInfo(c10::DeviceIndex device) {
  const xpu::MemoryInfo info = check(check(xpu::Device::get(resolve_device(device))).memory_info());
  return {info.free_bytes, info.total_bytes};
}

DeviceAllocator& device_allocator() {
  static DeviceAllocator& only = *new DeviceAllocator();
  return only;
}

namespace {
const c10::AllocatorRegisterer<kDeviceType> g_registered_allocator(&device_allocator());
}

}  // namespace xpu_torch
