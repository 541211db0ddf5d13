#include "trace/own_recorder.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/recording/recorder.hpp"

namespace xpu::trace {
namespace {

constexpr std::string_view kLiveSuffix = ".live";
constexpr int kNiceness = 10;  // not SCHED_IDLE: on a busy machine that would never run, and records would be lost

std::vector<std::string> arguments_of_process() {
  std::vector<std::string> arguments;
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return arguments;
  std::string text;
  char part[4096];
  for (ssize_t bytes = 0; (bytes = read(file, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(bytes));
  close(file);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    arguments.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return arguments;
}

/// Shared by the thread and the two functions that start and end it. Never freed: exit() may come from anywhere.
class OwnRecorder {
 public:
  explicit OwnRecorder(RecorderOptions options) : options_(std::move(options)), pid_(getpid()) {}

  Result<> start() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, &OwnRecorder::run, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) return Error{ErrorCode::unavailable, "cannot start the thread xpu-recorder", error};
    thread_ = thread;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return started_.has_value(); });
    if (*started_) return {};
    lock.unlock();
    pthread_join(thread, nullptr);
    return std::move(*started_).error();
  }

  void finish(int exit_code) {
    if (getpid() != pid_) return;  // a forked child has no such thread
    {
      const std::lock_guard lock(mutex_);
      exit_code_ = exit_code;
    }
    changed_.notify_all();
    pthread_join(thread_, nullptr);
  }

 private:
  static void* run(void* self) {
    pthread_setname_np(pthread_self(), "xpu-recorder");
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
    static_cast<OwnRecorder*>(self)->record();
    return nullptr;
  }

  void record() {
    const std::uint64_t start_ns = now_ns();
    Result<std::unique_ptr<Recorder>> made = Recorder::create(options_);
    {
      const std::lock_guard lock(mutex_);
      started_ = made ? Result<>() : Result<>(made.error());
    }
    changed_.notify_all();
    if (!made) return;
    Recorder& recorder = **made;
    ProgramEnd end;
    while (!wait_for_end(recorder.poll() ? 1 : 20, end)) {
    }
    end.wall_ns = now_ns() - start_ns;
    const Result<std::string> path = recorder.finish(end);
    if (!path) XPU_LOG_WARN("trace", "the recording stays unfinished: {}", path.error().message);
  }

  bool wait_for_end(int milliseconds, ProgramEnd& end) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return exit_code_.has_value(); })) return false;
    end.known = true;
    end.exit_code = *exit_code_;
    return true;
  }

  const RecorderOptions options_;
  const pid_t pid_;
  pthread_t thread_{};
  std::mutex mutex_;  // std, because a condition waits on it
  std::condition_variable changed_;
  std::optional<Result<>> started_;
  std::optional<int> exit_code_;
};

OwnRecorder* g_recorder = nullptr;  // stays known after its end, so that a leak checker finds it

}  // namespace

Result<> start_own_recorder(const Attachment& attachment) {
  if (!attachment.live_path.ends_with(kLiveSuffix)) {
    return Error{ErrorCode::invalid_argument, "XPU_RECORD=" + attachment.live_path + " must end in .xpu.live"};
  }
  RecorderOptions options;
  options.path = attachment.live_path.substr(0, attachment.live_path.size() - kLiveSuffix.size());
  options.argv = arguments_of_process();
  options.mode = attachment.mode;
  options.kernels = attachment.kernels;
  options.max_live_bytes = attachment.max_live_bytes;
  auto recorder = std::make_unique<OwnRecorder>(std::move(options));
  XPU_TRY(recorder->start());
  g_recorder = recorder.release();
  return {};
}

void finish_own_recorder(int exit_code) noexcept {
  static std::atomic<bool> is_finished{false};
  if (g_recorder != nullptr && !is_finished.exchange(true)) g_recorder->finish(exit_code);
}

}  // namespace xpu::trace
