#include "hal/host_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/check.hpp"
#include "xpu/base/text.hpp"

namespace xpu::hal {
namespace {

using base::MutexLock;

// A cache line, and the widest vector.
constexpr std::size_t kLeastAlignment = 64;
// From here a block has pages of its own, which go back to the system at once when it is freed.
constexpr std::size_t kLeastPagesBytes = std::size_t{1} << 20;
// Beyond this no rounding can overflow, and no system has that much.
constexpr std::size_t kMostBytes = std::size_t{1} << 60;

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t round_up(std::size_t bytes, std::size_t multiple) noexcept { return (bytes + multiple - 1) / multiple * multiple; }

std::uintptr_t number(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }
std::byte* pointer(std::uintptr_t address) noexcept { return reinterpret_cast<std::byte*>(address); }

/// Null when the system refuses, with errno.
void* map_anonymous(std::size_t bytes, int protection) noexcept {
  void* address = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

void* allocate_pages(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t excess = alignment <= page_bytes() ? 0 : alignment;
  void* whole = map_anonymous(bytes + excess, PROT_READ | PROT_WRITE);
  if (whole == nullptr || excess == 0) return whole;
  const std::uintptr_t begin = number(whole), aligned = round_up(begin, alignment);
  if (aligned != begin) munmap(whole, aligned - begin);
  munmap(pointer(aligned + bytes), begin + excess - aligned);
  return pointer(aligned);
}

/// Null when the system refuses, with errno.
void* allocate_heap(std::size_t bytes, std::size_t alignment) noexcept {
  void* address = nullptr;
  errno = posix_memalign(&address, alignment, bytes);
  return errno == 0 ? address : nullptr;
}

}  // namespace

bool MemoryBudget::take(std::uint64_t bytes) noexcept {
  std::uint64_t taken = taken_bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_bytes_ - taken) return false;
  } while (!taken_bytes_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

HostMemoryProvider::HostMemoryProvider(MemoryKind kind, std::shared_ptr<MemoryBudget> budget) : kind_(kind), budget_(std::move(budget)) {}

HostMemoryProvider::~HostMemoryProvider() {
  const MutexLock lock(mutex_);
  for (const auto& [begin, range] : ranges_) {
    if (range.source == Source::heap) std::free(pointer(begin));
    if (range.source == Source::pages) munmap(pointer(begin), range.bytes);
    budget_->give_back(range.bytes);
  }
}

Result<void*> HostMemoryProvider::allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > kMostBytes || alignment > kMostBytes) return exhausted(bytes);
  const Source source = bytes < kLeastPagesBytes ? Source::heap : Source::pages;
  const Range range{round_up(bytes, source == Source::heap ? kLeastAlignment : page_bytes()), source};
  if (!budget_->take(range.bytes)) return exhausted(bytes);
  alignment = std::max(alignment, kLeastAlignment);
  void* address = source == Source::heap ? allocate_heap(range.bytes, alignment) : allocate_pages(range.bytes, alignment);
  if (address == nullptr) {
    const int native_code = errno;
    budget_->give_back(range.bytes);
    return refused_by_system(bytes, native_code);
  }
  const MutexLock lock(mutex_);
  ranges_.emplace(number(address), range);
  return address;
}

void HostMemoryProvider::free(void* address) noexcept {
  Range range;
  {
    const MutexLock lock(mutex_);
    const auto found = ranges_.find(number(address));
    if (!XPU_CHECK(found != ranges_.end() && found->second.source != Source::reservation)) return;
    range = found->second;
    ranges_.erase(found);
  }
  if (range.source == Source::heap) {
    std::free(address);
  } else {
    munmap(address, range.bytes);
  }
  budget_->give_back(range.bytes);
}

Result<void*> HostMemoryProvider::reserve(std::size_t bytes) {
  void* address = map_anonymous(bytes, PROT_NONE);
  if (address == nullptr) return refused_by_system(bytes, errno);
  return address;
}

void HostMemoryProvider::unreserve(void* address, std::size_t bytes) noexcept {
  const std::size_t mapped_bytes = remove_mapped(number(address), bytes);
  munmap(address, bytes);
  budget_->give_back(mapped_bytes);
}

Result<> HostMemoryProvider::map(void* address, std::size_t bytes) {
  if (!budget_->take(bytes)) return exhausted(bytes);
  if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) {
    const int native_code = errno;
    budget_->give_back(bytes);
    return refused_by_system(bytes, native_code);
  }
  add_mapped(number(address), bytes);
  return {};
}

void HostMemoryProvider::unmap(void* address, std::size_t bytes) noexcept {
  const std::size_t mapped_bytes = remove_mapped(number(address), bytes);
  // A fresh mapping over the old pages: they go back to the system, the address space stays ours.
  mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  budget_->give_back(mapped_bytes);
}

std::size_t HostMemoryProvider::granularity() const noexcept { return page_bytes(); }

Result<MemoryInfo> HostMemoryProvider::info() {
  return MemoryInfo{budget_->limit_bytes() - budget_->taken_bytes(), budget_->limit_bytes(), false};
}

bool HostMemoryProvider::owns(const void* address, std::size_t bytes) const noexcept {
  const std::uintptr_t begin = number(address);
  const MutexLock lock(mutex_);
  auto after = ranges_.upper_bound(begin);
  if (after == ranges_.begin()) return false;
  const auto& [range_begin, range] = *std::prev(after);
  const std::uintptr_t offset = begin - range_begin;
  return offset < range.bytes && bytes <= range.bytes - offset;
}

void HostMemoryProvider::add_mapped(std::uintptr_t begin, std::size_t bytes) {
  const MutexLock lock(mutex_);
  const auto after = ranges_.lower_bound(begin);
  if (after != ranges_.end() && after->second.source == Source::reservation && after->first == begin + bytes) {
    bytes += after->second.bytes;
    ranges_.erase(after);
  }
  const auto next = ranges_.lower_bound(begin);
  if (next != ranges_.begin()) {
    auto& [before_begin, before] = *std::prev(next);
    if (before.source == Source::reservation && before_begin + before.bytes == begin) {
      before.bytes += bytes;
      return;
    }
  }
  ranges_.emplace_hint(next, begin, Range{bytes, Source::reservation});
}

/// Forgets what is mapped in [begin, begin + bytes) and returns how much that was.
std::size_t HostMemoryProvider::remove_mapped(std::uintptr_t begin, std::size_t bytes) {
  const std::uintptr_t end = begin + bytes;
  std::size_t removed = 0;
  const MutexLock lock(mutex_);
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin()) --range;
  while (range != ranges_.end() && range->first < end) {
    const std::uintptr_t range_begin = range->first, range_end = range_begin + range->second.bytes;
    if (range->second.source != Source::reservation || range_end <= begin) {
      ++range;
      continue;
    }
    removed += std::min(range_end, end) - std::max(range_begin, begin);
    range = ranges_.erase(range);
    if (range_begin < begin) ranges_.emplace(range_begin, Range{begin - range_begin, Source::reservation});
    if (range_end > end) ranges_.emplace(end, Range{range_end - end, Source::reservation});
  }
  return removed;
}

ErrorCode HostMemoryProvider::exhausted_code() const noexcept {
  return kind_ == MemoryKind::host ? ErrorCode::out_of_host_memory : ErrorCode::out_of_device_memory;
}

Error HostMemoryProvider::exhausted(std::size_t bytes) const {
  return Error{exhausted_code(),
               fmt::format("cannot take {} bytes ({}) of {} memory: {} of the limit of {} bytes ({}) are taken", bytes, bytes_text(bytes),
                           to_string(kind_), budget_->taken_bytes(), budget_->limit_bytes(), bytes_text(budget_->limit_bytes()))};
}

Error HostMemoryProvider::refused_by_system(std::size_t bytes, int native_code) const {
  return Error{
      exhausted_code(),
      fmt::format("cannot take {} bytes ({}) of {} memory: the system refuses them ({}), though {} of the limit of {} bytes are free",
                  bytes, bytes_text(bytes), to_string(kind_), std::strerror(native_code), budget_->limit_bytes() - budget_->taken_bytes(),
                  budget_->limit_bytes()),
      native_code};
}

}  // namespace xpu::hal
