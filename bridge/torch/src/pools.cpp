#include "pools.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "check.hpp"
#include "devices.hpp"

namespace xpu_torch {
namespace {

struct Pool {
  std::unique_ptr<xpu::memory::DevicePool> memory;
  std::size_t uses = 0;
};
struct PoolKey {
  int device;
  c10::MempoolId_t id;
  auto operator<=>(const PoolKey&) const = default;
};

struct Pools {
  std::mutex mutex;
  std::map<PoolKey, Pool> by_key;

  Pool& at(const PoolKey& key, const xpu::memory::PoolOptions& options = {}) {
    Pool& pool = by_key[key];
    if (pool.memory == nullptr) pool.memory = caching_allocator(key.device).create_pool(options);
    return pool;
  }
};
// Never destroyed: memory of pools may be freed during exit.
Pools& pools() {
  static Pools& only = *new Pools();
  return only;
}

struct ThreadPool {
  PoolKey key;
  const xpu::memory::DevicePool* memory;
};
thread_local std::vector<ThreadPool> t_pools;
thread_local bool t_has_pools = false;  // without a destructor, for the one question that every allocation asks

}  // namespace

c10::MempoolId_t new_pool_id(bool is_of_user) {
  static std::atomic<c10::CaptureId_t> last{0};
  const c10::CaptureId_t number = ++last;
  return is_of_user ? c10::MempoolId_t{0, number} : c10::MempoolId_t{number, 0};
}

const xpu::memory::DevicePool* thread_pool_of(int device) noexcept {
  if (!t_has_pools) return nullptr;
  for (auto pool = t_pools.rbegin(); pool != t_pools.rend(); ++pool) {
    if (pool->key.device == device) return pool->memory;
  }
  return nullptr;
}

void begin_allocate_to_pool(int device, c10::MempoolId_t id) {
  const PoolKey key{resolve_device(device), id};
  for (const ThreadPool& pool : t_pools) TORCH_CHECK(pool.key != key, "beginAllocateToPool: already recording to mempool_id");
  const std::lock_guard lock(pools().mutex);
  Pool& pool = pools().at(key);
  ++pool.uses;
  t_pools.push_back({key, pool.memory.get()});
  t_has_pools = true;
}

void end_allocate_to_pool(int device, c10::MempoolId_t id) {
  const PoolKey key{resolve_device(device), id};
  for (auto pool = t_pools.rbegin(); pool != t_pools.rend(); ++pool) {
    if (pool->key != key) continue;
    t_pools.erase(std::next(pool).base());
    t_has_pools = !t_pools.empty();
    return;
  }
  TORCH_CHECK(false, "endAllocateToPool: this thread does not allocate to the pool (", id.first, ", ", id.second, ")");
}

void retain_pool(int device, c10::MempoolId_t id, const xpu::memory::PoolOptions& options) {
  const std::lock_guard lock(pools().mutex);
  ++pools().at({resolve_device(device), id}, options).uses;
}

void release_pool(int device, c10::MempoolId_t id) {
  std::unique_ptr<xpu::memory::DevicePool> unused;  // goes without the lock: it waits for streams
  const std::lock_guard lock(pools().mutex);
  const auto pool = pools().by_key.find({resolve_device(device), id});
  TORCH_CHECK(pool != pools().by_key.end(), "releasePool: there is no pool (", id.first, ", ", id.second, ")");
  if (--pool->second.uses != 0) return;
  unused = std::move(pool->second.memory);
  pools().by_key.erase(pool);
}

std::size_t use_count_of_pool(c10::MempoolId_t id) {
  const std::lock_guard lock(pools().mutex);
  std::size_t uses = 0;
  for (const auto& [key, pool] : pools().by_key) uses += key.id == id ? pool.uses : 0;
  return uses;
}

void empty_pool(c10::MempoolId_t id) {
  const std::lock_guard lock(pools().mutex);
  for (const auto& [key, pool] : pools().by_key) {
    if (key.id == id) caching_allocator(key.device).empty_cache(*pool.memory);
  }
}

c10::MempoolId_t id_of_pool(int device, const xpu::memory::PoolId& id) {
  if (id == xpu::memory::PoolId()) return {0, 0};
  const std::lock_guard lock(pools().mutex);
  for (const auto& [key, pool] : pools().by_key) {
    if (key.device == device && pool.memory->id() == id) return key.id;
  }
  return {id.graph, id.user};  // it is gone, and some of its blocks live on
}

}  // namespace xpu_torch
