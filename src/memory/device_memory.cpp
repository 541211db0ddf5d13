#include "memory/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "memory/block_sizes.hpp"
#include "memory/counter.hpp"

namespace xpu::memory {
namespace {

void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

}  // namespace

DeviceMemory::DeviceMemory(hal::MemoryProvider& provider, std::uint64_t total_bytes, std::size_t oversize_bytes) noexcept
    : provider_(provider),
      total_bytes_(total_bytes),
      oversize_bytes_(oversize_bytes),
      page_bytes_(round_up(2 * kMiB, std::max<std::size_t>(provider.granularity(), 1))),
      limit_bytes_(total_bytes) {}

Result<> probe_mapping(hal::MemoryProvider& memory) {
  const std::size_t bytes = memory.granularity();
  if (bytes == 0) return Error{ErrorCode::unsupported, "the device maps no memory"};
  XPU_TRY_ASSIGN(void* const address, memory.reserve(bytes));
  Result<> mapped = memory.map(address, bytes);
  if (mapped) memory.unmap(address, bytes);
  memory.unreserve(address, bytes);
  return mapped;
}

hal::MemoryInfo DeviceMemory::info() const {
  if (const Result<hal::MemoryInfo> told = provider_.info()) return *told;
  return {total_bytes_ - std::min(reserved_bytes(), total_bytes_), total_bytes_, false};
}

Result<> DeviceMemory::take_budget(std::size_t bytes) {
  const std::uint64_t limit = limit_bytes();
  std::uint64_t reserved = reserved_bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || reserved > limit - bytes) {
      return Error{ErrorCode::out_of_device_memory,
                   fmt::format("{} bytes more are beyond the limit of {}, of which {} are taken", bytes, limit, reserved)};
    }
  } while (!reserved_bytes_.compare_exchange_weak(reserved, reserved + bytes, std::memory_order_relaxed));
  return {};
}

void DeviceMemory::count(std::size_t bytes, Pool pool, bool is_segment, bool is_taken) {
  const auto amount = static_cast<std::int64_t>(bytes);
  const base::MutexLock lock(mutex_);
  if (is_segment && bytes >= oversize_bytes_) {
    if (is_taken) {
      add(sums_.oversize_segments, 1);
    } else {
      subtract(sums_.oversize_segments, 1);
    }
  }
  for (const std::size_t row : {static_cast<std::size_t>(pool), static_cast<std::size_t>(kAllPools)}) {
    if (is_taken) {
      add(sums_.reserved_bytes[row], amount);
      if (is_segment) add(sums_.segments[row], 1);
    } else {
      subtract(sums_.reserved_bytes[row], amount);
      if (is_segment) subtract(sums_.segments[row], 1);
    }
  }
  ++(is_taken ? sums_.device_allocs : sums_.device_frees);
}

Result<> DeviceMemory::map(std::uint64_t address, std::size_t bytes, Pool pool) {
  XPU_TRY(take_budget(bytes));
  if (Result<> mapped = provider_.map(pointer_to(address), bytes); !mapped) {
    reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return mapped;
  }
  count(bytes, pool, false, true);
  return {};
}

void DeviceMemory::unmap(std::uint64_t address, std::size_t bytes, Pool pool) noexcept {
  provider_.unmap(pointer_to(address), bytes);
  reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  count(bytes, pool, false, false);
}

Result<std::uint64_t> DeviceMemory::allocate_segment(std::size_t bytes, Pool pool) {
  XPU_TRY(take_budget(bytes));
  Result<void*> allocated = provider_.allocate(bytes, kGranuleBytes);
  if (!allocated) {
    reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return std::move(allocated).error();
  }
  count(bytes, pool, true, true);
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(*allocated));
}

void DeviceMemory::free_segment(std::uint64_t address, std::size_t bytes, Pool pool) noexcept {
  provider_.free(pointer_to(address));
  reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  count(bytes, pool, true, false);
}

DeviceMemory::Sums DeviceMemory::sums() const {
  const base::MutexLock lock(mutex_);
  return sums_;
}

void DeviceMemory::reset_peaks() {
  const base::MutexLock lock(mutex_);
  for (auto* const counters : {&sums_.segments, &sums_.reserved_bytes}) {
    for (StatisticsCounter& counter : *counters) memory::reset_peak(counter);
  }
  memory::reset_peak(sums_.oversize_segments);
}

void DeviceMemory::reset_accumulated() {
  const base::MutexLock lock(mutex_);
  for (auto* const counters : {&sums_.segments, &sums_.reserved_bytes}) {
    for (StatisticsCounter& counter : *counters) memory::reset_accumulated(counter);
  }
  memory::reset_accumulated(sums_.oversize_segments);
}

}  // namespace xpu::memory
