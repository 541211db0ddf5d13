#include "base/process.hpp"

#include <sys/auxv.h>

#include <atomic>
#include <cstdlib>

namespace xpu::base {
namespace {

constinit std::atomic<bool> g_exiting{false};
constinit std::atomic<bool> g_watching{false};

void note_exit() { g_exiting.store(true, std::memory_order_release); }

}  // namespace

bool process_is_exiting() noexcept { return g_exiting.load(std::memory_order_acquire); }

void watch_process_exit() noexcept {
  if (!g_watching.exchange(true)) std::atexit(note_exit);
}

bool has_raised_privileges() noexcept { return getauxval(AT_SECURE) != 0; }

}  // namespace xpu::base
