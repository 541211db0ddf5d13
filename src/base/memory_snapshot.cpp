#include "base/memory_snapshot.hpp"

#include <atomic>

namespace xpu::base {
namespace {
constinit std::atomic<const MemorySnapshotProvider*> g_memory_snapshots{nullptr};
}

void register_memory_snapshots(const MemorySnapshotProvider* provider) noexcept {
  const MemorySnapshotProvider* nobody = nullptr;
  g_memory_snapshots.compare_exchange_strong(nobody, provider, std::memory_order_acq_rel);
}

const MemorySnapshotProvider* memory_snapshots() noexcept { return g_memory_snapshots.load(std::memory_order_acquire); }

}  // namespace xpu::base
