#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "base/mutex.hpp"
#include "base/probe.hpp"
#include "interceptors/opencl/handle_table.hpp"

namespace xpu::interceptors::opencl {

/// What all objects that a program holds handles of have in common.
template <typename Object, typename Handle>
struct Tracked {
  std::atomic<Handle> handle{nullptr};  ///< Null when gone. Stored last: who reads the handle that it looks for may read the rest.
  probe::Id id = 0;
  std::uint32_t references = 0;  ///< The program's; guarded by the registry's lock.
  Object* next_free = nullptr;   ///< Guarded by the registry's lock.
  Object* next = nullptr;        ///< Every object of its kind; written once.

  bool is_for(Handle wanted) const noexcept { return handle.load(std::memory_order_acquire) == wanted; }
};

/// One kind of object: the live handles, and every object that was ever made.
///
/// An object is never freed, only used again: threads keep pointers in caches of their own and believe one exactly as long as it carries
/// the handle that they look for. References are counted by what passes us (create, retain, release), without a driver call.
template <typename Object, typename Handle>
class Registry {
 public:
  constexpr Registry() noexcept = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Null when unknown.
  Object* find(Handle handle) noexcept XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return table_.find(handle);
  }

  /// An object to fill in, the caller's alone until `add` or `give_back`; null without memory. A free one is used again if
  /// `may_reuse(object)` says so; its fields are then as they were left.
  template <typename MayReuse>
  Object* take(MayReuse&& may_reuse) noexcept XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    for (Object** link = &free_; *link != nullptr; link = &(*link)->next_free) {
      if (!may_reuse(**link)) continue;
      Object* object = *link;
      *link = object->next_free;
      return object;
    }
    auto* object = new (std::nothrow) Object;
    if (object == nullptr) return nullptr;
    object->next = all_.load(std::memory_order_relaxed);
    all_.store(object, std::memory_order_release);
    return object;
  }
  Object* take() noexcept {
    return take([](const Object&) { return true; });
  }
  void give_back(Object* object) noexcept XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    set_free(object);
  }

  /// `handle` now means `object`, with `references` of the program's. Returns what it meant before (the driver used the handle again after
  /// an end that did not pass us), which is now gone: the caller publishes that and gives it back.
  Object* add(Handle handle, Object* object, std::uint32_t references) noexcept XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    Object* previous = nullptr;
    object->references = references;
    if (!table_.insert(handle, object, &previous)) return object;  // no memory: stays unknown
    if (previous != nullptr) previous->handle.store(nullptr, std::memory_order_release);
    object->handle.store(handle, std::memory_order_release);
    return previous;
  }

  /// The same for a handle that was asked about: if another thread was faster, its object is returned and `object` is free again.
  Object* add_if_unknown(Handle handle, Object* object, std::uint32_t references) noexcept XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    Object* previous = table_.find(handle);
    if (previous == nullptr) {
      object->references = references;
      if (table_.insert(handle, object, &previous)) {
        object->handle.store(handle, std::memory_order_release);
        return object;
      }
    }
    set_free(object);
    return previous;
  }

  void retain(Handle handle) noexcept XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    if (Object* object = table_.find(handle); object != nullptr) ++object->references;
  }

  /// The object if this was its last reference: it is gone, and the caller publishes that and gives it back.
  Object* release(Handle handle) noexcept XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    Object* object = table_.find(handle);
    if (object == nullptr || (object->references > 1 && --object->references != 0)) return nullptr;
    table_.erase(handle);
    object->handle.store(nullptr, std::memory_order_release);
    return object;
  }

  /// Under the lock: `visit` must call neither a driver nor the registry.
  template <typename Visit>
  void for_each_alive(Visit&& visit) noexcept XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    table_.for_each(visit);
  }

  /// The newest of all objects, gone ones too; go on with `next`. No lock.
  Object* first() const noexcept { return all_.load(std::memory_order_acquire); }

  // A child of fork must not inherit a lock that another thread held.
  void lock_before_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void unlock_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

 private:
  void set_free(Object* object) noexcept XPU_REQUIRES(mutex_) {
    object->next_free = free_;
    free_ = object;
  }

  base::Mutex mutex_;
  HandleTable<Object> table_ XPU_GUARDED_BY(mutex_);
  Object* free_ XPU_GUARDED_BY(mutex_) = nullptr;
  std::atomic<Object*> all_{nullptr};
};

}  // namespace xpu::interceptors::opencl
