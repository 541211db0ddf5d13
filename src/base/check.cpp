#include "base/check.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/log.hpp"

namespace xpu::base {
namespace {

constinit std::atomic<CheckHandler> g_handler{nullptr};
constinit std::atomic<bool> g_handled{false};

}  // namespace

void set_check_handler(CheckHandler handler) noexcept {
  g_handler.store(handler, std::memory_order_release);
  g_handled.store(false, std::memory_order_release);
}

bool internal::check_failed(const char* condition, const char* file, int line) noexcept {
  const CheckHandler handler = g_handler.load(std::memory_order_acquire);
  if (handler == nullptr) {
    XPU_LOG_ERROR("base", "check failed: {} at {}:{}", condition, file, line);
    std::abort();
  }
  if (!g_handled.exchange(true)) {
    char message[512];
    *fmt::format_to_n(message, sizeof message - 1, "check failed: {} at {}:{}", condition, file, line).out = '\0';
    handler(message);
  }
  return false;
}

}  // namespace xpu::base
