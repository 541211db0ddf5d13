#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "hal/host_memory.hpp"

namespace xpu::memory {

/// Host memory with a limit that tells a test of each call. Thread-safe once the functions are set.
class WatchedProvider final : public hal::MemoryProvider {
 public:
  explicit WatchedProvider(std::uint64_t limit_bytes = std::uint64_t{1} << 40)
      : budget_(std::make_shared<hal::MemoryBudget>(limit_bytes)), memory_(hal::MemoryKind::host, budget_) {}

  /// What is out.
  std::uint64_t taken_bytes() const { return budget_->taken_bytes(); }
  void on_allocate(std::function<void(std::size_t bytes)> function) { on_allocate_ = std::move(function); }
  /// Before the memory goes.
  void on_free(std::function<void(void* address, std::size_t bytes)> function) { on_free_ = std::move(function); }

  Result<void*> allocate(std::size_t bytes, std::size_t alignment) override {
    if (on_allocate_) on_allocate_(bytes);
    XPU_TRY_ASSIGN(void* const address, memory_.allocate(bytes, alignment));
    const std::lock_guard lock(mutex_);
    sizes_[address] = bytes;
    return address;
  }
  void free(void* address) noexcept override {
    std::size_t bytes = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto size = sizes_.extract(address);
      if (!size.empty()) bytes = size.mapped();
    }
    if (on_free_) on_free_(address, bytes);
    memory_.free(address);
  }
  Result<void*> reserve(std::size_t) override { return Error{ErrorCode::unsupported, "not for this test"}; }
  void unreserve(void*, std::size_t) noexcept override {}
  Result<> map(void*, std::size_t) override { return Error{ErrorCode::unsupported, "not for this test"}; }
  void unmap(void*, std::size_t) noexcept override {}
  std::size_t granularity() const noexcept override { return memory_.granularity(); }
  Result<hal::MemoryInfo> info() override { return memory_.info(); }

 private:
  std::shared_ptr<hal::MemoryBudget> budget_;
  hal::HostMemoryProvider memory_;
  std::function<void(std::size_t)> on_allocate_;
  std::function<void(void*, std::size_t)> on_free_;
  std::mutex mutex_;
  std::map<void*, std::size_t> sizes_;
};

}  // namespace xpu::memory
