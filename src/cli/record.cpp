#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/diagnose.hpp"
#include "cli/environment.hpp"
#include "cli/launch.hpp"
#include "cli/process_watch.hpp"
#include "cli/record_summary.hpp"
#include "cli/recording_name.hpp"
#include "cli/signal_relay.hpp"
#include "cli/text.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/recording/recorder.hpp"

namespace xpu::cli {
namespace {

constexpr std::uint64_t kShortestPauseNs = 1'000'000;
constexpr std::uint64_t kLongestPauseNs = 20'000'000;

int fail(const Error& error) {
  say("{}", error.message);
  return kRecordFailed;
}

std::uint64_t cpu_time_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

Result<std::string> recording_path(const RecordRequest& request, const std::string& folder) {
  if (request.output) return output_path(*request.output, folder);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return unused_default_path(request.program.front(), local, folder);
}

/// Nothing ran, so nothing is left behind; a finished recording of this name, which -f would have replaced, stays.
void discard(std::unique_ptr<trace::Recorder> recorder) {
  const std::string live_path = recorder->live_path();
  recorder.reset();
  std::error_code error;
  std::filesystem::remove_all(live_path, error);
}

int say_failed_start(const std::string& program, int error) {
  if (error == ENOENT && program.find('/') == std::string::npos) {
    say("{}: command not found", program);
  } else if (error == ENOENT && access(program.c_str(), F_OK) == 0) {
    say("{}: its interpreter does not exist", program);
  } else {
    say("{}: {}", program, std::strerror(error));
  }
  return error == ENOENT ? kNotFound : kNotExecutable;
}

/// The recorder and the program between start and end.
class Run {
 public:
  Run(trace::Recorder& recorder, SignalRelay& relay, ProcessWatch& watch, PauseSchedule& schedule)
      : recorder_(recorder), relay_(relay), watch_(watch), schedule_(schedule) {}

  void until_the_program_ends() {
    while (!relay_.ended()) {
      std::uint64_t now = now_ns();
      apply_pauses(now);
      if (now >= next_poll_ns_) {
        pause_ns_ = recorder_.poll() ? kShortestPauseNs : std::min(2 * pause_ns_, kLongestPauseNs);
        now = now_ns();
        next_poll_ns_ = now + pause_ns_;
        say_storage_failure();
      }
      std::uint64_t deadline = std::min(next_poll_ns_, schedule_.next_ns());
      if (!attached()) {
        if (now >= watch_.next_ns()) watch_.look();
        deadline = std::min(deadline, watch_.next_ns());
      }
      relay_.wait_until(deadline);
    }
    recorder_.poll();  // so that its status knows of the end
  }

 private:
  /// Once a process is recorded there is nothing left to find out.
  bool attached() {
    if (!attached_) attached_ = recorder_.status().processes_attached > 0;
    return attached_;
  }

  void apply_pauses(std::uint64_t now) {
    bool changed = schedule_.advance(now);
    if (relay_.take_toggles() % 2 == 1) {
      schedule_.toggle(now);
      changed = true;
    }
    if (changed) recorder_.set_paused(schedule_.paused());
  }

  void say_storage_failure() {
    if (storage_failure_said_) return;
    const trace::RecorderStatus status = recorder_.status();
    if (!status.storage_failed) return;
    storage_failure_said_ = true;
    say("{}; the program goes on", status.storage_error);
  }

  trace::Recorder& recorder_;
  SignalRelay& relay_;
  ProcessWatch& watch_;
  PauseSchedule& schedule_;
  std::uint64_t next_poll_ns_ = 0;
  std::uint64_t pause_ns_ = kShortestPauseNs;
  bool attached_ = false;
  bool storage_failure_said_ = false;
};

}  // namespace

int record(const RecordRequest& request) {
  // First of all: what is inherited from here on must be what this process got.
  const InheritedSignals inherited = InheritedSignals::take_over();

  const auto folder = working_directory();
  if (!folder) return fail(folder.error());
  const auto path = recording_path(request, *folder);
  if (!path) return fail(path.error());
  const auto layer = find_opencl_layer();
  if (!layer) return fail(layer.error());
  const FoundProgram program = find_program(request.program.front(), find_variable(environ, "PATH"));
  if (program.error != 0) return say_failed_start(program.path, program.error);
  auto relay = SignalRelay::create();
  if (!relay) return fail(relay.error());

  trace::RecorderOptions options;
  options.path = *path;
  options.overwrite = request.overwrite;
  options.argv = request.program;
  options.mode = request.mode;
  options.kernels = request.kernels;
  options.start_paused = PauseSchedule::starts_paused(request.schedule);
  if (request.max_live_bytes) options.max_live_bytes = *request.max_live_bytes;
  auto recorder = trace::Recorder::create(std::move(options));
  if (!recorder) {
    if (recorder.error().code == ErrorCode::failed_precondition && !request.overwrite) {
      say("{}; give another name with -o, or replace it with -f", recorder.error().message);
      return kRecordFailed;
    }
    return fail(recorder.error());
  }

  const std::vector<std::string> environment = program_environment(environ, (*recorder)->live_path(), *layer);
  const std::uint64_t start_ns = now_ns();
  const auto launched = launch(program.path, request.program, environment, inherited);
  if (!launched || launched->exec_errno != 0) {
    discard(*std::move(recorder));
    return launched ? say_failed_start(program.path, launched->exec_errno) : fail(launched.error());
  }

  (*relay)->set_program(launched->pid);
  if (request.schedule.start_paused) (*relay)->take_user_signal();
  ProcessWatch watch(launched->pid, (*recorder)->live_path(), *layer, start_ns);
  PauseSchedule schedule(request.schedule, start_ns);
  Run(**recorder, **relay, watch, schedule).until_the_program_ends();

  const int status = (*relay)->wait_status();
  trace::ProgramEnd end;
  end.known = true;
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const std::uint64_t end_ns = now_ns();
  end.wall_ns = end_ns - start_ns;
  end.recorder_cpu_ns = cpu_time_ns();
  const std::uint32_t still_running = (*recorder)->status().processes_alive;
  const auto finished = (*recorder)->finish(end);
  const trace::RecorderStatus after = (*recorder)->status();

  if (!finished) say("{}; what was recorded until then can be read as it is", finished.error().message);
  say_summary(finished ? *finished : (*recorder)->live_path(), *folder, after);
  if (still_running > 0) say("{} of the program still ran at its end and recorded no further", counted(still_running, "process"));
  if (after.processes_attached == 0) {
    const Expected expected{layers_value(find_variable(environ, kLayersVariable), *layer), *layer};
    const std::uint64_t unseen_ns = end_ns - std::min(end_ns, watch.last_look_ns());
    const Diagnosis why = diagnose(watch.images(), expected, unseen_ns,
                                   [&](const ImageSight& image) { return try_layer_in_child(image, *layer, environment); });
    say("nothing was recorded: {}", why.sentence);
  }
  return end.signal != 0 ? die_by_signal(end.signal) : end.exit_code;
}

}  // namespace xpu::cli
