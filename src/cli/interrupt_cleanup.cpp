#include "cli/interrupt_cleanup.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace xpu::cli {
namespace {

constexpr int kEnding[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
std::atomic<const char*> g_path{nullptr};

extern "C" void xpu_cli_remove_and_end(int signal) {
  if (const char* path = g_path.load()) unlink(path);
  // The handler was installed for one signal only: it has its default action again, and is blocked until we return.
  raise(signal);
}

}  // namespace

InterruptCleanup::InterruptCleanup(std::string path) : path_(std::move(path)) {
  g_path.store(path_.c_str());
  struct sigaction action{};
  action.sa_handler = xpu_cli_remove_and_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : kEnding) {
    struct sigaction before{};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
}

InterruptCleanup::~InterruptCleanup() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (const int signal : kEnding) {
    struct sigaction before{};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == xpu_cli_remove_and_end) sigaction(signal, &action, nullptr);
  }
  g_path.store(nullptr);
}

}  // namespace xpu::cli
