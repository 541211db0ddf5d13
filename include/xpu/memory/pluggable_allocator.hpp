#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/memory/allocator.hpp"

namespace xpu::memory {

/// The functions of somebody else's allocator, as PyTorch's pluggable allocators have them. `queue` is StreamRef::native_queue (where
/// there is none, StreamRef::queue) of the stream for which the memory is, also when it is freed. Called by any thread, several at a time,
/// with no lock held; must not throw.
struct PluggableFunctions {
  void* (*allocate)(std::size_t bytes, int device, void* queue) = nullptr;  ///< Null when there is no memory.
  void (*free)(void* address, std::size_t bytes, int device, void* queue) = nullptr;
  /// Of `Allocator::record_use`: the queue uses the block, too. May be left out; then nobody learns of it.
  void (*record_use)(void* address, void* queue) = nullptr;
};

/// Passes each allocation and free to these functions at once, keeps nothing, and counts what passes. Unlike the others it knows of no
/// work: when memory may be used again, also by another stream, is the functions' affair, and so is alignment. In its statistics every
/// block is a segment.
class XPU_EXPORT PluggableAllocator final : public Allocator {
 public:
  /// Error invalid_argument when `allocate` or `free` is null. `device` is what the functions get.
  static Result<std::unique_ptr<PluggableAllocator>> create(const PluggableFunctions& functions, int device = 0);
  /// The functions of a shared library, by their symbols, which stays loaded for ever. Error not_found when it cannot be loaded or has no
  /// such symbol.
  static Result<std::unique_ptr<PluggableAllocator>> load(const std::string& library, const std::string& allocate_symbol,
                                                          const std::string& free_symbol, int device = 0);
  /// What is live stays with the functions.
  ~PluggableAllocator() override;

  Result<void*> allocate(std::size_t bytes, const StreamRef& stream) override;
  Result<> free(void* address) override;
  bool record_use(void* address, const StreamRef& stream) override;
  /// Nothing: what the functions keep is theirs.
  void empty_cache() override {}

  DeviceStatistics statistics() const override;
  void reset_peak_statistics() override;
  void reset_accumulated_statistics() override;

 private:
  class State;
  explicit PluggableAllocator(std::unique_ptr<State> state) noexcept;
  const std::unique_ptr<State> state_;
};

}  // namespace xpu::memory
