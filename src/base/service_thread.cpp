#include "base/service_thread.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace xpu::base {

Result<std::thread> start_service_thread(const char* name, std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<std::thread> started = [&]() -> Result<std::thread> {
    try {
      return std::thread([name, run = std::move(body)] {
        pthread_setname_np(pthread_self(), name);
        run();
      });
    } catch (const std::system_error& error) {
      return Error{ErrorCode::unavailable, fmt::format("no thread {} can be started: {}", name, error.what()), error.code().value()};
    }
  }();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace xpu::base
