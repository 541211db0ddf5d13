#pragma once

#include <mutex>

/// Attributes of clang's thread-safety analysis, which is an error in the preset `clang`; nothing to other compilers.
#if defined(__clang__)
#define XPU_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define XPU_THREAD_ATTRIBUTE(attribute)
#endif
#define XPU_GUARDED_BY(mutex) XPU_THREAD_ATTRIBUTE(guarded_by(mutex))
#define XPU_REQUIRES(...) XPU_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define XPU_EXCLUDES(...) XPU_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define XPU_ACQUIRE(...) XPU_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define XPU_RELEASE(...) XPU_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define XPU_TRY_ACQUIRE(...) XPU_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define XPU_NO_THREAD_SAFETY_ANALYSIS XPU_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace xpu::base {

/// The one lock of this project. Constant-initialised and trivially destroyed, so that it may be a static that outlives everything.
///
/// Lock order, outermost first; a thread takes only locks further down than those that it holds:
///   0 trace: beginning and ending a capture
///   1 interceptors: objects, then a queue
///   2 memory, runtime: registry, device, allocator, stream
///   3 hal, a driver: their own
///   4 probe: publishers, texts
///   5 trace: captures, claiming a segment, kernel filter, definitions, writers
///   6 log
/// So no text is interned under a lock of trace, and the probe calls nobody under one of its own: nobody holds one of 4 and one of 5. A
/// fork takes all of both, in either order, and lets go in parent and child.
/// No user callback, no blocking driver call and no log line under a lock.
class XPU_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() XPU_ACQUIRE() { mutex_.lock(); }
  void unlock() XPU_RELEASE() { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() XPU_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

class XPU_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) XPU_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() XPU_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace xpu::base
