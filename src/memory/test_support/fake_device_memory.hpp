#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "xpu/hal/device.hpp"

namespace xpu::memory {

/// Memory of a device that does not exist: addresses, counted, within a capacity. Whatever breaks the rules of hal::MemoryProvider makes
/// `broken_rules` grow. Thread-safe.
class FakeDeviceMemory final : public hal::MemoryProvider {
 public:
  static constexpr std::size_t kPage = std::size_t{2} << 20;

  FakeDeviceMemory(std::size_t capacity, bool can_map) : capacity_(capacity), can_map_(can_map) {}

  /// The next so many calls that take memory are refused, with this code.
  void refuse(int calls, ErrorCode code = ErrorCode::out_of_device_memory) {
    refusals_ = calls;
    refusal_ = code;
  }
  /// Called for each range that is taken away.
  void on_take_away(std::function<void(std::uint64_t begin, std::size_t bytes)> function) { on_take_away_ = std::move(function); }
  /// Called once, in the next call that maps memory.
  void on_next_map(std::function<void()> function) { on_next_map_ = std::move(function); }
  std::size_t taken_bytes() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  int broken_rules() const { return broken_rules_; }
  int calls() const { return calls_; }

  Result<void*> allocate(std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (bytes == 0) ++broken_rules_;
    XPU_TRY(take(bytes));
    next_ = (next_ + alignment - 1) / alignment * alignment;
    blocks_[next_] = bytes;
    return pointer(advance(bytes));
  }
  void free(void* address) noexcept override {
    std::size_t bytes = 0;
    {
      const std::lock_guard lock(mutex_);
      ++calls_;
      const auto found = blocks_.find(value(address));
      if (found == blocks_.end()) {
        ++broken_rules_;
        return;
      }
      bytes = found->second;
      blocks_.erase(found);
      taken_ -= bytes;
    }
    if (on_take_away_) on_take_away_(value(address), bytes);
  }

  Result<void*> reserve(std::size_t bytes) override {
    if (!can_map_) return Error{ErrorCode::unsupported, "this fake device maps no memory"};
    const std::lock_guard lock(mutex_);
    return pointer(advance(bytes));
  }
  void unreserve(void*, std::size_t) noexcept override {}
  Result<> map(void* address, std::size_t bytes) override {
    if (on_next_map_) std::exchange(on_next_map_, nullptr)();
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (bytes == 0 || bytes % kPage != 0 || value(address) % kPage != 0) ++broken_rules_;
    XPU_TRY(take(bytes));
    for (std::size_t offset = 0; offset < bytes; offset += kPage) {
      if (!pages_.insert(value(address) + offset).second) ++broken_rules_;
    }
    return {};
  }
  void unmap(void* address, std::size_t bytes) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      ++calls_;
      if (bytes == 0 || bytes % kPage != 0) ++broken_rules_;
      for (std::size_t offset = 0; offset < bytes; offset += kPage) {
        if (pages_.erase(value(address) + offset) == 0) ++broken_rules_;
      }
      taken_ -= bytes;
    }
    if (on_take_away_) on_take_away_(value(address), bytes);
  }
  std::size_t granularity() const noexcept override { return can_map_ ? kPage : 0; }
  Result<hal::MemoryInfo> info() override { return hal::MemoryInfo{capacity_ - taken_bytes(), capacity_, false}; }

 private:
  static std::uint64_t value(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
  static void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }
  std::uint64_t advance(std::size_t bytes) {
    const std::uint64_t address = next_;
    next_ += (bytes + kPage - 1) / kPage * kPage;
    return address;
  }
  Result<> take(std::size_t bytes) {
    if (refusals_ > 0) {
      --refusals_;
      return Error{refusal_, "the fake device refuses"};
    }
    if (bytes > capacity_ || taken_ > capacity_ - bytes) return Error{ErrorCode::out_of_device_memory, "the fake device is full"};
    taken_ += bytes;
    return {};
  }

  const std::size_t capacity_;
  const bool can_map_;
  std::function<void(std::uint64_t, std::size_t)> on_take_away_;
  std::function<void()> on_next_map_;
  ErrorCode refusal_ = ErrorCode::out_of_device_memory;
  int refusals_ = 0, broken_rules_ = 0, calls_ = 0;
  mutable std::mutex mutex_;
  std::uint64_t next_ = std::uint64_t{1} << 40;
  std::size_t taken_ = 0;
  std::map<std::uint64_t, std::size_t> blocks_;
  std::set<std::uint64_t> pages_;
};

}  // namespace xpu::memory
