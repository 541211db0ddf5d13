#include "interceptors/opencl/thread_state.hpp"

#include <pthread.h>

#include <new>

#include "interceptors/opencl/command_ring.hpp"

namespace xpu::interceptors::opencl {
namespace {

// A key and not a destructor of a thread_local: it may be set again by what runs after it, and it keeps no library in memory.
constinit pthread_key_t g_key{};
constinit bool g_has_key = false;

void thread_ends(void* value) {
  auto* state = static_cast<ThreadState*>(value);
  internal::t_state = nullptr;
  for (Queue* queue = g_objects.queues.first(); queue != nullptr; queue = queue->next) {
    for (CommandRing* ring = queue->rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
      if (ring->owner.load(std::memory_order_relaxed) == state) ring->owner.store(nullptr, std::memory_order_release);
    }
  }
  delete state;
}

}  // namespace

namespace internal {

constinit thread_local ThreadState* t_state __attribute__((tls_model("initial-exec"))) = nullptr;

ThreadState* make_thread_state() noexcept {
  auto* state = new (std::nothrow) ThreadState;
  if (state == nullptr) return nullptr;
  if (!g_has_key || pthread_setspecific(g_key, state) != 0) {
    delete state;
    return nullptr;
  }
  t_state = state;
  return state;
}

}  // namespace internal

void prepare_thread_states() noexcept {
  if (!g_has_key) g_has_key = pthread_key_create(&g_key, thread_ends) == 0;
}

void forget_thread_state_after_fork() noexcept {
  if (internal::t_state != nullptr) *internal::t_state = ThreadState{};
}

}  // namespace xpu::interceptors::opencl
