#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.hpp"
#include "xpu/hal/device.hpp"

/// Memory of this process served as memory of a device: what the drivers share whose devices are the host's processors.
namespace xpu::hal {

/// An amount that several providers draw from; thread-safe, exact: what was taken never exceeds the limit.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}
  /// False, and nothing changes, when that much is not left.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
  void give_back(std::uint64_t bytes) noexcept { taken_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t limit_bytes() const noexcept { return limit_bytes_; }
  std::uint64_t taken_bytes() const noexcept { return taken_bytes_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t limit_bytes_;
  std::atomic<std::uint64_t> taken_bytes_{0};
};

/// Private anonymous mappings: `allocate` from the C library for small blocks and from mmap for large ones, `reserve` by PROT_NONE, `map`
/// and `unmap` on real pages. Every byte is counted against the budget, rounded as it really is taken: to 64 bytes, large blocks and
/// mapped ranges to pages.
class HostMemoryProvider final : public MemoryProvider {
 public:
  /// `kind` decides the code and the words of the error when the budget is exhausted.
  HostMemoryProvider(MemoryKind kind, std::shared_ptr<MemoryBudget> budget);
  /// Frees what is still allocated. Reservations stay: who made them knows how long they are.
  ~HostMemoryProvider() override;

  Result<void*> allocate(std::size_t bytes, std::size_t alignment) override;
  void free(void* address) noexcept override;
  Result<void*> reserve(std::size_t bytes) override;
  void unreserve(void* address, std::size_t bytes) noexcept override;
  Result<> map(void* address, std::size_t bytes) override;
  void unmap(void* address, std::size_t bytes) noexcept override;
  std::size_t granularity() const noexcept override;
  Result<MemoryInfo> info() override;

  /// Whether [address, address + bytes) lies in one living allocation or in mapped memory of this provider.
  bool owns(const void* address, std::size_t bytes) const noexcept XPU_EXCLUDES(mutex_);

 private:
  enum class Source : std::uint8_t { heap, pages, reservation };
  struct Range {
    std::size_t bytes = 0;
    Source source = Source::heap;
  };

  void add_mapped(std::uintptr_t begin, std::size_t bytes) XPU_EXCLUDES(mutex_);
  std::size_t remove_mapped(std::uintptr_t begin, std::size_t bytes) XPU_EXCLUDES(mutex_);
  ErrorCode exhausted_code() const noexcept;
  Error exhausted(std::size_t bytes) const;
  Error refused_by_system(std::size_t bytes, int native_code) const;

  const MemoryKind kind_;
  const std::shared_ptr<MemoryBudget> budget_;
  mutable base::Mutex mutex_;
  std::map<std::uintptr_t, Range> ranges_ XPU_GUARDED_BY(mutex_);  // by begin; mapped neighbours are one range
};

}  // namespace xpu::hal
