#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace xpu_torch {

/// Pinned host memory for PyTorch: the runtime's caching allocator under PyTorch's interface. Thread-safe.
class HostAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, std::size_t bytes) const override;
  /// False where `pointer` lies in no pinned block.
  bool record_event(void* pointer, void* context, c10::Stream stream) override;
  void empty_cache() override;
  at::HostStats get_stats() override;
  void reset_accumulated_stats() override;
  void reset_peak_stats() override;
};

HostAllocator& host_allocator();
/// Whether the address lies in a pinned block. Initialises nothing.
bool is_pinned(const void* address) noexcept;

}  // namespace xpu_torch
