#include "interceptors/opencl/lifecycle.hpp"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "base/mutex.hpp"
#include "base/probe.hpp"
#include "interceptors/opencl/command_ring.hpp"
#include "interceptors/opencl/layer_state.hpp"
#include "interceptors/opencl/program_threads.hpp"
#include "interceptors/opencl/publish.hpp"
#include "interceptors/opencl/thread_state.hpp"

namespace xpu::interceptors::opencl {
namespace {

constexpr std::uint64_t kPeriodNs = 100'000'000;
constexpr std::uint64_t kStopPatienceNs = 100'000'000;
constexpr std::uint32_t kBusyLaunches = 64;  // in one period: that ring polls itself

enum class HarvesterState : std::uint32_t { none, running, stopping };
constinit std::atomic<HarvesterState> g_harvester{HarvesterState::none};
constinit std::atomic<std::uint32_t> g_harvesting{0};  // threads of ours, or called by us, that are in the driver
constinit std::atomic<bool> g_exit_handler_registered{false};

void sleep_ns(std::uint64_t duration_ns) noexcept {
  const timespec duration{static_cast<time_t>(duration_ns / 1'000'000'000u), static_cast<long>(duration_ns % 1'000'000'000u)};
  nanosleep(&duration, nullptr);
}

template <typename Visit>
void for_each_ring(Visit&& visit) noexcept {
  for (Queue* queue = g_objects.queues.first(); queue != nullptr; queue = queue->next) {
    for (CommandRing* ring = queue->rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) visit(*ring);
  }
}

// ---- the harvester

void harvest() noexcept {
  for_each_ring([](CommandRing& ring) {
    const std::uint32_t launches = ring.launches() - ring.launches_seen;
    ring.launches_seen += launches;
    // Nothing new and nothing left to end: an idle program's recording does not grow.
    if (launches != 0 || !ring.is_empty()) {
      if (Device* device = ring.queue->device.load(std::memory_order_acquire)) device->clock.read_if_due();
    }
    if (launches < kBusyLaunches) ring.drain();
  });
}

void harvest_everything() noexcept {
  for (Device* device = g_objects.devices.first(); device != nullptr; device = device->next) {
    if (device->clock.is_used()) device->clock.read();
  }
  for_each_ring([](CommandRing& ring) { ring.drain(); });
}

void while_not_stopped(void (*do_harvest)() noexcept) noexcept {
  // Announced before the state is looked at, so that whoever stops us either is seen here or sees this.
  g_harvesting.fetch_add(1, std::memory_order_seq_cst);
  if (g_harvester.load(std::memory_order_seq_cst) != HarvesterState::stopping && listener_or_null() != nullptr) do_harvest();
  g_harvesting.fetch_sub(1, std::memory_order_release);
}

void* run_harvester(void*) {
  while (g_harvester.load(std::memory_order_acquire) == HarvesterState::running) {
    sleep_ns(kPeriodNs);
    // A process ends with its last thread, and that must not be us. exit(0) is what the C library does then.
    if (program_has_no_threads()) std::exit(0);
    while_not_stopped(harvest);
  }
  return nullptr;
}

/// Afterwards nobody is in the driver on our behalf, unless the driver holds him there.
void stop_harvester() noexcept {
  g_harvester.store(HarvesterState::stopping, std::memory_order_seq_cst);
  const std::uint64_t begin_ns = now_ns();
  while (g_harvesting.load(std::memory_order_seq_cst) != 0 && now_ns() - begin_ns < kStopPatienceNs) sleep_ns(100'000);
}

// ---- the end

void read_everything() noexcept {
  for (Device* device = g_objects.devices.first(); device != nullptr; device = device->next) {
    if (device->clock.is_used()) device->clock.read();
  }
  for_each_ring([](CommandRing& ring) { ring.drain_finally(); });
}

void before_drivers_go() {
  stop_harvester();
  if (listener_or_null() != nullptr) read_everything();
}

// After every handler of exit(), the program's static destructors among them: these may have used OpenCL once more.
__attribute__((destructor)) void after_static_destructors() { shut_down(); }

// ---- fork

void lock_everything() noexcept {
  g_objects.contexts.lock_before_fork();
  g_objects.queues.lock_before_fork();
  g_objects.programs.lock_before_fork();
  g_objects.kernels.lock_before_fork();
  g_objects.memory.lock_before_fork();
  g_objects.shared.lock_before_fork();
  g_objects.devices.lock_before_fork();
  for (Device* device = g_objects.devices.first(); device != nullptr; device = device->next) device->clock.lock_before_fork();
}

void unlock_everything() noexcept {
  for (Device* device = g_objects.devices.first(); device != nullptr; device = device->next) device->clock.unlock_after_fork();
  g_objects.devices.unlock_after_fork();
  g_objects.shared.unlock_after_fork();
  g_objects.memory.unlock_after_fork();
  g_objects.kernels.unlock_after_fork();
  g_objects.programs.unlock_after_fork();
  g_objects.queues.unlock_after_fork();
  g_objects.contexts.unlock_after_fork();
}

// What is pending is the parent's: its events belong to the parent's driver, and its records are the parent's.
void in_child() noexcept {
  unlock_everything();
  for (Device* device = g_objects.devices.first(); device != nullptr; device = device->next) device->clock.forget_use_after_fork();
  for (Queue* queue = g_objects.queues.first(); queue != nullptr; queue = queue->next) forget_rings_after_fork(*queue);
  forget_thread_state_after_fork();
  g_harvesting.store(0, std::memory_order_relaxed);
  if (g_harvester.load(std::memory_order_relaxed) == HarvesterState::running)
    g_harvester.store(HarvesterState::none, std::memory_order_relaxed);
}

}  // namespace

void start_harvester() noexcept {
  auto none = HarvesterState::none;
  if (g_harvester.load(std::memory_order_relaxed) != none) return;
  if (!g_harvester.compare_exchange_strong(none, HarvesterState::running, std::memory_order_acq_rel)) return;

  // The program's signals are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, run_harvester, nullptr) == 0) {
    pthread_setname_np(thread, "xpu-harvest");
  } else {
    g_harvester.store(HarvesterState::none, std::memory_order_release);
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void harvest_now() noexcept { while_not_stopped(harvest_everything); }

void queue_exists() noexcept {
  if (g_exit_handler_registered.load(std::memory_order_relaxed) || g_exit_handler_registered.exchange(true)) return;
  std::atexit(before_drivers_go);
  std::at_quick_exit(before_drivers_go);
}

void start_lifecycle() noexcept {
  prepare_thread_states();
  pthread_atfork(lock_everything, unlock_everything, in_child);
}

void shut_down() noexcept {
  if (g_layer.down.load(std::memory_order_acquire)) return;
  stop_harvester();
  if (listener_or_null() != nullptr) read_everything();
  g_layer.down.store(true, std::memory_order_release);
}

}  // namespace xpu::interceptors::opencl
