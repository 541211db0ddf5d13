#include "drivers/host/queue_registry.hpp"

#include <map>
#include <utility>

#include "base/mutex.hpp"

namespace xpu::drivers::host {
namespace {

struct QueueRegistry {
  base::Mutex mutex;
  std::map<const void*, std::weak_ptr<QueueState>> queues XPU_GUARDED_BY(mutex);
};

/// Never destroyed: the last queue may go at any time of an exit.
QueueRegistry& queue_registry() {
  static QueueRegistry* const registry = new QueueRegistry;
  return *registry;
}

void unregister_and_delete(QueueState* queue) noexcept {
  {
    QueueRegistry& registry = queue_registry();
    const base::MutexLock lock(registry.mutex);
    registry.queues.erase(queue);
  }
  delete queue;
}

}  // namespace

std::shared_ptr<QueueState> make_queue_state(std::shared_ptr<DriverState> driver, std::uint32_t device, const hal::QueueOptions& options) {
  const std::atomic<bool>& is_exiting = driver->is_exiting;
  std::shared_ptr<QueueState> queue(new QueueState(std::move(driver), device, options), unregister_and_delete);
  QueueRegistry& registry = queue_registry();
  const base::MutexLock lock(registry.mutex);
  // Under the lock under which an exit collects the queues: either it finds this one, or this one finds it.
  if (is_exiting.load(std::memory_order_relaxed)) return nullptr;
  registry.queues.emplace(queue.get(), queue);
  return queue;
}

std::shared_ptr<QueueState> find_queue_state(const void* native) {
  QueueRegistry& registry = queue_registry();
  const base::MutexLock lock(registry.mutex);
  const auto found = registry.queues.find(native);
  return found == registry.queues.end() ? nullptr : found->second.lock();
}

std::vector<std::shared_ptr<QueueState>> queue_states_of(const DriverState& driver) {
  std::vector<std::shared_ptr<QueueState>> queues;
  {
    QueueRegistry& registry = queue_registry();
    const base::MutexLock lock(registry.mutex);
    for (const auto& [address, held] : registry.queues) {
      if (std::shared_ptr<QueueState> queue = held.lock(); queue != nullptr) queues.push_back(std::move(queue));
    }
  }
  // Not under the lock: letting go of another driver's queue may destroy it, and with it take the lock.
  std::erase_if(queues, [&driver](const std::shared_ptr<QueueState>& queue) { return &queue->driver() != &driver; });
  return queues;
}

}  // namespace xpu::drivers::host
