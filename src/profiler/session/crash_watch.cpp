#include "profiler/session/crash_watch.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "xpu/base/clock.hpp"

namespace xpu::profiler {
namespace {

constexpr std::array kCrashSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

enum CrashStage : int { kNoCrash, kCrashRequested, kCrashDone };

// All that a handler touches: no destructor, no lock. `g_before` is written before the handler of its signal is there, and stays, because
// somebody else's handler may call ours long after we left.
constinit std::atomic<pid_t> g_watched_process{0};  // 0 = none
constinit std::atomic<pid_t> g_server_thread{0};
constinit std::atomic<int> g_wake_file{-1};
constinit std::atomic<std::uint64_t> g_patience_ns{0};
constinit std::atomic<int> g_stage{kCrashDone}, g_signal{0};
constinit std::array<struct sigaction, kCrashSignals.size()> g_before = {};
constinit std::array<std::atomic<pid_t>, kCrashSignals.size()> g_passed_on_by = {};
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

pid_t this_thread() noexcept { return static_cast<pid_t>(::syscall(SYS_gettid)); }

void wait_for_server(int signal) noexcept {
  int expected = kNoCrash;
  if (g_stage.compare_exchange_strong(expected, kCrashRequested)) {
    g_signal.store(signal);
    const std::uint64_t one = 1;
    // Should it fail, the server looks by itself soon.
    static_cast<void>(!::write(g_wake_file.load(), &one, sizeof one));
  }
  const std::uint64_t begin_ns = now_ns();
  while (g_stage.load() == kCrashRequested && now_ns() - begin_ns < g_patience_ns.load()) {
    const timespec pause = {0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  // Who waited in vain once, or crashes again while it is handled, does not wait again.
  g_stage.store(kCrashDone);
}

/// A fault of the processor comes again when the instruction is tried again; everything else has to be sent again.
bool comes_again(int signal, const siginfo_t& info) noexcept { return info.si_code > 0 && signal != SIGABRT; }

void pass_on(std::size_t index, siginfo_t* info) noexcept {
  const int signal = kCrashSignals[index];
  const pid_t thread = this_thread();
  // The second time in one thread means that who was there before passes it on to us: nobody is left but the system.
  if (g_passed_on_by[index].exchange(thread) == thread) {
    struct sigaction system_default = {};
    system_default.sa_handler = SIG_DFL;
    ::sigaction(signal, &system_default, nullptr);
  } else {
    ::sigaction(signal, &g_before[index], nullptr);
  }
  if (comes_again(signal, *info)) return;
  // With all that is known of it; it arrives when this handler returns.
  if (::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, signal, info) != 0) ::syscall(SYS_tgkill, ::getpid(), thread, signal);
}

void handle_crash(int signal, siginfo_t* info, void*) noexcept {
  const int error_before = errno;
  if (::getpid() == g_watched_process.load() && this_thread() != g_server_thread.load()) wait_for_server(signal);
  for (std::size_t index = 0; index < kCrashSignals.size(); ++index) {
    if (kCrashSignals[index] == signal) pass_on(index, info);
  }
  errno = error_before;
}

bool is_ours(const struct sigaction& action) noexcept { return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle_crash; }

}  // namespace

Result<std::unique_ptr<CrashWatch>> CrashWatch::install(int wake_file, std::chrono::milliseconds patience) {
  const pid_t process = ::getpid();
  pid_t watched = g_watched_process.load();  // also that of a parent
  if (watched == process || !g_watched_process.compare_exchange_strong(watched, process))
    return Error{ErrorCode::failed_precondition, "another flight recorder of this process waits for crashes already"};
  g_wake_file.store(wake_file);
  g_patience_ns.store(static_cast<std::uint64_t>(std::chrono::nanoseconds(patience).count()));
  g_signal.store(0);
  g_stage.store(kNoCrash);
  for (std::size_t index = 0; index < kCrashSignals.size(); ++index) {
    struct sigaction before = {};
    ::sigaction(kCrashSignals[index], nullptr, &before);
    const bool is_ignored = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_IGN;
    if (is_ignored) continue;
    g_passed_on_by[index].store(0);
    if (is_ours(before)) continue;  // of the process that this one was forked from
    g_before[index] = before;
    struct sigaction ours = {};
    ours.sa_sigaction = handle_crash;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;  // a stack that overflowed is no place to run on
    sigemptyset(&ours.sa_mask);
    ::sigaction(kCrashSignals[index], &ours, nullptr);
  }
  return std::unique_ptr<CrashWatch>(new CrashWatch);
}

CrashWatch::~CrashWatch() {
  done();
  for (std::size_t index = 0; index < kCrashSignals.size(); ++index) {
    struct sigaction now = {};
    ::sigaction(kCrashSignals[index], nullptr, &now);
    if (is_ours(now)) ::sigaction(kCrashSignals[index], &g_before[index], nullptr);
  }
  g_server_thread.store(0);
  g_watched_process.store(0);
}

void CrashWatch::set_server_thread() noexcept { g_server_thread.store(this_thread()); }
int CrashWatch::requested() noexcept { return g_stage.load() == kCrashRequested ? g_signal.load() : 0; }
void CrashWatch::done() noexcept { g_stage.store(kCrashDone); }

}  // namespace xpu::profiler
