#include "null_driver/callbacks.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <queue>
#include <thread>
#include <vector>

#include "null_driver/timeline.hpp"

namespace xpu::null_driver {
namespace {

struct Callback {
  cl_event event;  // with a reference of the driver
  cl_int status;
  void(CL_CALLBACK* function)(cl_event, cl_int, void*);
  void* user_data;
  std::uint64_t due_ns = 0;
  std::uint64_t order = 0;  // of registration: equal times keep it
};

struct LaterFirst {
  bool operator()(const Callback& a, const Callback& b) const noexcept {
    return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.order > b.order;
  }
};

struct Service {
  std::mutex mutex;
  std::condition_variable changed;
  // All guarded by mutex:
  std::priority_queue<Callback, std::vector<Callback>, LaterFirst> due;
  std::vector<Callback> without_end;
  std::uint64_t registered = 0;
  bool thread_started = false;
  bool stopped = false;
};

/// Never destroyed: its thread outlives static destructors.
Service& service() {
  static Service& instance = *new Service;
  return instance;
}

std::uint64_t due_time(cl_event event, cl_int status) {
  switch (status) {
    case CL_SUBMITTED: return event->submit_ns;
    case CL_RUNNING: return event->start_ns;
    default: return event->end_ns.load(std::memory_order_acquire);
  }
}

void call(const Callback& callback) {
  const cl_int failure = callback.event->failure;
  callback.function(callback.event, failure < 0 ? failure : callback.status, callback.user_data);
}

void serve() {
  pthread_setname_np(pthread_self(), "xpu-null-events");
  Service& state = service();
  std::unique_lock<std::mutex> lock(state.mutex);
  for (;;) {
    if (state.stopped || state.due.empty()) {
      state.changed.wait(lock);
      continue;
    }
    const Callback next = state.due.top();
    if (host_now_ns() < next.due_ns) {
      // steady_clock is CLOCK_MONOTONIC, the clock of all host times here.
      state.changed.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next.due_ns)));
      continue;
    }
    state.due.pop();
    lock.unlock();
    call(next);
    let_go(next.event);
    lock.lock();
  }
}

/// The thread never ends, so its code must stay mapped when a loader closes the driver.
void pin_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&serve), &info) != 0 && info.dli_fname != nullptr) {
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

/// The caller holds the lock.
void start_thread_once(Service& state) {
  if (state.thread_started) return;
  state.thread_started = true;
  pin_this_library();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(serve).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void add_callback(cl_event event, cl_int status, void(CL_CALLBACK* function)(cl_event, cl_int, void*), void* user_data) {
  Service& state = service();
  Callback callback{event, status, function, user_data};
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    callback.order = ++state.registered;
    if (event->end_ns.load(std::memory_order_acquire) == _cl_event::kUnknown) {
      // A user event counts as submitted from the start.
      if (event->queue != nullptr || status != CL_SUBMITTED) {
        keep(event);
        state.without_end.push_back(callback);
        return;
      }
    } else if (host_now_ns() < due_time(event, status)) {
      keep(event);
      callback.due_ns = due_time(event, status);
      state.due.push(callback);
      start_thread_once(state);
      state.changed.notify_one();
      return;
    }
  }
  call(callback);
}

void event_ended(cl_event event) {
  Service& state = service();
  const std::lock_guard<std::mutex> lock(state.mutex);
  std::vector<Callback> still_without;
  bool found = false;
  for (Callback& callback : state.without_end) {
    if (callback.event != event) {
      still_without.push_back(callback);
      continue;
    }
    found = true;
    callback.due_ns = event->queue == nullptr ? event->end_ns.load(std::memory_order_acquire) : due_time(event, callback.status);
    state.due.push(callback);
  }
  if (!found) return;
  state.without_end.swap(still_without);
  start_thread_once(state);
  state.changed.notify_one();
}

void stop_callbacks() {
  Service& state = service();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.stopped = true;
}

void lock_callbacks_for_fork() { service().mutex.lock(); }

void unlock_callbacks_after_fork(bool in_child) {
  Service& state = service();
  if (!in_child) {
    state.mutex.unlock();
    return;
  }
  new (&state.mutex) std::mutex;
  new (&state.changed) std::condition_variable;
  state.due = {};
  state.without_end.clear();
  state.thread_started = false;
}

}  // namespace xpu::null_driver
