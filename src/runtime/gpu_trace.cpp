#include "xpu/runtime/gpu_trace.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "runtime/callbacks.hpp"

namespace xpu::runtime {

constinit std::atomic<std::uint32_t> g_callback_count{0};

namespace {

struct Registered {
  std::uint64_t id;
  gpu_trace::Point point;
  gpu_trace::Callback callback;
};
using Callbacks = std::vector<std::shared_ptr<const Registered>>;

constinit base::Mutex g_callbacks_mutex;
constinit std::uint64_t g_last_callback_id XPU_GUARDED_BY(g_callbacks_mutex) = 0;

/// A list that is replaced and never changed, so that it can be walked without the lock while a callback registers or removes.
std::shared_ptr<const Callbacks>& callbacks() XPU_REQUIRES(g_callbacks_mutex) {
  static auto* const all = new std::shared_ptr<const Callbacks>(std::make_shared<Callbacks>());
  return *all;
}

void replace_callbacks(Callbacks changed) XPU_REQUIRES(g_callbacks_mutex) {
  g_callback_count.store(static_cast<std::uint32_t>(changed.size()), std::memory_order_release);
  callbacks() = std::make_shared<const Callbacks>(std::move(changed));
}

}  // namespace

void call_callbacks(gpu_trace::Point point, std::uintptr_t first, std::uintptr_t second) noexcept {
  std::shared_ptr<const Callbacks> all;
  {
    const base::MutexLock lock(g_callbacks_mutex);
    all = callbacks();
  }
  for (const auto& registered : *all) {
    if (registered->point != point) continue;
    try {
      registered->callback(first, second);
    } catch (const std::exception& thrown) {
      XPU_LOG_WARN_ONCE("runtime", "a gpu_trace callback threw: {}; it is called again all the same", thrown.what());
    } catch (...) {
      XPU_LOG_WARN_ONCE("runtime", "a gpu_trace callback threw; it is called again all the same");
    }
  }
}

}  // namespace xpu::runtime

namespace xpu::gpu_trace {

std::uint64_t add_callback(Point point, Callback callback) {
  const base::MutexLock lock(runtime::g_callbacks_mutex);
  const std::uint64_t id = ++runtime::g_last_callback_id;
  runtime::Callbacks changed = *runtime::callbacks();
  changed.push_back(std::make_shared<const runtime::Registered>(runtime::Registered{id, point, std::move(callback)}));
  runtime::replace_callbacks(std::move(changed));
  return id;
}

bool remove_callback(std::uint64_t id) {
  const base::MutexLock lock(runtime::g_callbacks_mutex);
  runtime::Callbacks changed = *runtime::callbacks();
  const bool was_there = std::erase_if(changed, [&](const auto& registered) { return registered->id == id; }) != 0;
  if (was_there) runtime::replace_callbacks(std::move(changed));
  return was_there;
}

void clear_callbacks() {
  const base::MutexLock lock(runtime::g_callbacks_mutex);
  runtime::replace_callbacks({});
}

}  // namespace xpu::gpu_trace
