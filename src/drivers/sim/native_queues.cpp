#include "drivers/sim/native_queues.hpp"

#include <map>

#include "base/mutex.hpp"

namespace xpu::drivers::sim {
namespace {

struct NativeQueues {
  base::Mutex mutex;
  std::map<const void*, std::weak_ptr<QueueState>> by_handle XPU_GUARDED_BY(mutex);
};

// Never destroyed: queues may outlive static objects of the program.
NativeQueues& native_queues() {
  static NativeQueues& queues = *new NativeQueues;
  return queues;
}

}  // namespace

void add_native_queue(const std::shared_ptr<QueueState>& queue) {
  NativeQueues& queues = native_queues();
  const base::MutexLock lock(queues.mutex);
  std::erase_if(queues.by_handle, [](const auto& entry) { return entry.second.expired(); });
  queues.by_handle[queue.get()] = queue;
}

std::shared_ptr<QueueState> find_native_queue(void* handle) {
  NativeQueues& queues = native_queues();
  const base::MutexLock lock(queues.mutex);
  const auto found = queues.by_handle.find(handle);
  return found == queues.by_handle.end() ? nullptr : found->second.lock();
}

}  // namespace xpu::drivers::sim
