#include "xpu/profiler/triggers.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/service_thread.hpp"

namespace xpu::profiler {
namespace {

constexpr std::size_t kLongestRequest = 65'536;
/// How long a client of the socket may take, for everything: others wait meanwhile.
constexpr int kClientPatienceMs = 1'000;

struct SignalName {
  std::string_view name;
  int number;
};
constexpr std::array kSignals = {SignalName{"USR1", SIGUSR1}, SignalName{"USR2", SIGUSR2}, SignalName{"HUP", SIGHUP},
                                 SignalName{"WINCH", SIGWINCH}, SignalName{"URG", SIGURG}};

Error trigger_error(ErrorCode code, std::string_view what) {
  const int number = errno;
  return Error{code, fmt::format("{}: {}", what, std::strerror(number)), number};
}

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const noexcept { return number_; }

 private:
  int number_;
};

// ---- the signal: its handler may do little, and another process of the same text must do nothing

constinit std::atomic<int> g_wake_descriptor{-1};
constinit std::atomic<pid_t> g_watching_process{0};
constinit std::atomic<std::uint32_t> g_signals{0};

void note_signal(int) {
  if (getpid() != g_watching_process.load(std::memory_order_relaxed)) return;
  const int saved = errno;
  g_signals.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(g_wake_descriptor.load(std::memory_order_relaxed), &one, sizeof one);
  errno = saved;
}

/// What tells whether a file is still the same.
struct FileState {
  std::int64_t seconds = 0, nanoseconds = 0;
  std::uint64_t inode = 0, bytes = 0;
  bool exists = false;
  bool operator==(const FileState&) const = default;
};

FileState look_at(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return {status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino, static_cast<std::uint64_t>(status.st_size), true};
}

Result<std::string> read_request_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) return trigger_error(ErrorCode::unavailable, "cannot read " + path);
  std::string text(kLongestRequest + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (text.size() <= kLongestRequest) return text;
  return Error{ErrorCode::invalid_argument, fmt::format("{} is longer than {} bytes", path, kLongestRequest)};
}

std::string describe_outcome(const TriggerOutcome& outcome) {
  std::string text = outcome.problem.empty() ? "planned\n" : "refused: " + outcome.problem + '\n';
  for (const std::string& warning : outcome.warnings) text += "warning: " + warning + '\n';
  return text;
}

/// Beside the file, so that whoever wrote that sees what came of it. Nobody hears of it when this fails.
void write_status(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".status.tmp";
  std::FILE* file = std::fopen(unfinished.c_str(), "we");
  if (file == nullptr) return;
  const bool is_whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && is_whole) {
    std::rename(unfinished.c_str(), (path + ".status").c_str());
  } else {
    std::remove(unfinished.c_str());
  }
}

Result<Descriptor> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the path of a socket has at most {} bytes, {} has {}", sizeof address.sun_path - 1, path, path.size())};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (listening.get() < 0) return trigger_error(ErrorCode::unavailable, "cannot make a socket");
  // For the user alone from its first moment on: it is nobody's before `listen`.
  if (bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return trigger_error(errno == EADDRINUSE ? ErrorCode::failed_precondition : ErrorCode::unavailable, "cannot make the socket " + path);
  }
  if (chmod(path.c_str(), 0600) != 0 || listen(listening.get(), 4) != 0) {
    Error error = trigger_error(ErrorCode::unavailable, "cannot listen at " + path);
    unlink(path.c_str());
    return error;
  }
  return listening;
}

}  // namespace

Result<TriggerOptions> parse_triggers(std::string_view text) {
  TriggerOptions options;
  const auto refuse = [](std::string_view entry, std::string_view why) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("\"{}\" {}; allowed are file:PATH, signal:NAME and socket:PATH, each once, separated by commas", entry, why)};
  };
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const std::size_t colon = entry.find(':');
    if (colon == std::string_view::npos) return refuse(entry, "is no trigger");
    const std::string_view key = entry.substr(0, colon), value = entry.substr(colon + 1);
    if (value.empty()) return refuse(entry, "has no value");
    if (key == "file" && options.file.empty()) {
      options.file = value;
    } else if (key == "socket" && options.socket.empty()) {
      options.socket = value;
    } else if (key == "signal" && options.signal == 0) {
      const std::string_view name = value.starts_with("SIG") ? value.substr(3) : value;
      const auto* known = std::find_if(kSignals.begin(), kSignals.end(), [&](const SignalName& signal) { return signal.name == name; });
      if (known != kSignals.end()) {
        options.signal = known->number;
      } else if (const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.signal);
                 error != std::errc() || end != value.data() + value.size() || options.signal < 1 || options.signal > SIGRTMAX) {
        return refuse(entry, "is no signal that is known by name or number");
      }
    } else {
      return refuse(entry, key == "file" || key == "socket" || key == "signal" ? "is given twice" : "is no trigger");
    }
  }
  return options;
}

struct Triggers::Impl {
  Impl(Profiler& target, TriggerOptions trigger_options, std::function<void(const TriggerOutcome&)> listener)
      : profiler(target), options(std::move(trigger_options)), told(std::move(listener)) {}

  Result<> take_signal();
  void run();
  void look_at_file();
  void answer_client();
  TriggerOutcome request(std::string_view source, const Result<std::string>& text);

  Profiler& profiler;
  const TriggerOptions options;
  const std::function<void(const TriggerOutcome&)> told;
  Descriptor wake, listening;
  std::atomic<bool> quits{false};
  bool has_signal = false;
  struct sigaction previous_action{};
  FileState known_file, changing_file;
  std::uint32_t seen_signals = g_signals.load(std::memory_order_relaxed);
  std::thread thread;
  const pid_t process = getpid();
};

TriggerOutcome Triggers::Impl::request(std::string_view source, const Result<std::string>& text) {
  TriggerOutcome outcome;
  outcome.source = source;
  const auto plan = [&]() -> Result<> {
    if (!text) return text.error();
    XPU_TRY_ASSIGN(ParsedConfig parsed, parse_config(*text));
    outcome.warnings = std::move(parsed.warnings);
    return profiler.schedule(parsed.config);
  };
  if (const Result<> planned = plan(); !planned) outcome.problem = planned.error().message;
  if (told) told(outcome);
  return outcome;
}

void Triggers::Impl::look_at_file() {
  const FileState now = look_at(options.file);
  if (now == known_file) return;
  // Whoever writes it may not be done yet.
  if (now != changing_file) {
    changing_file = now;
    return;
  }
  known_file = now;
  if (now.exists) write_status(options.file, describe_outcome(request("file", read_request_file(options.file))));
}

void Triggers::Impl::answer_client() {
  const Descriptor client(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (client.get() < 0) return;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kClientPatienceMs);
  std::string text;
  std::optional<std::string> problem;
  while (!problem) {
    char piece[4096];
    const ssize_t bytes = recv(client.get(), piece, sizeof piece, 0);
    if (bytes == 0) break;
    if (bytes > 0) {
      text.append(piece, static_cast<std::size_t>(bytes));
      if (text.size() > kLongestRequest) problem = fmt::format("the request is longer than {} bytes", kLongestRequest);
      continue;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd readable{client.get(), POLLIN, 0};
    if ((errno != EAGAIN && errno != EINTR) || left <= 0 || poll(&readable, 1, static_cast<int>(left)) < 0) {
      problem = "the request did not end in time";
    }
  }
  const TriggerOutcome outcome =
      problem ? request("socket", Error{ErrorCode::invalid_argument, *problem}) : request("socket", Result<std::string>(std::move(text)));
  const std::string answer = describe_outcome(outcome);
  [[maybe_unused]] const ssize_t sent = send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
}

void Triggers::Impl::run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
  while (!quits.load(std::memory_order_acquire)) {
    std::array waits = {pollfd{wake.get(), POLLIN, 0}, pollfd{listening.get(), POLLIN, 0}};
    const bool has_socket = listening.get() >= 0;
    poll(waits.data(), has_socket ? 2 : 1, options.file.empty() ? -1 : static_cast<int>(options.period.count()));
    if (quits.load(std::memory_order_acquire)) return;
    std::uint64_t woken = 0;
    if ((waits[0].revents & POLLIN) != 0) [[maybe_unused]]
      const auto bytes = read(wake.get(), &woken, sizeof woken);
    if (const std::uint32_t signals = g_signals.load(std::memory_order_relaxed); has_signal && signals != seen_signals) {
      seen_signals = signals;
      request("signal", options.file.empty() ? Result<std::string>("") : read_request_file(options.file));
      known_file = changing_file = look_at(options.file);
    } else if (!options.file.empty()) {
      look_at_file();
    }
    if (has_socket && (waits[1].revents & POLLIN) != 0) answer_client();
  }
}

Result<> Triggers::Impl::take_signal() {
  struct sigaction present{};
  if (sigaction(options.signal, nullptr, &present) != 0) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} is no signal that a program can handle", options.signal)};
  }
  const bool is_free = (present.sa_flags & SA_SIGINFO) == 0 && (present.sa_handler == SIG_DFL || present.sa_handler == SIG_IGN);
  if (!is_free) return Error{ErrorCode::failed_precondition, fmt::format("signal {} has a handler already", options.signal)};
  g_wake_descriptor.store(wake.get(), std::memory_order_relaxed);
  g_watching_process.store(process, std::memory_order_relaxed);
  struct sigaction action{};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(options.signal, &action, &previous_action) != 0) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} is no signal that a program can handle", options.signal)};
  }
  has_signal = true;
  return {};
}

Triggers::Triggers(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Triggers>> Triggers::start(Profiler& profiler, TriggerOptions options,
                                                  std::function<void(const TriggerOutcome&)> told) {
  if (options.file.empty() && options.socket.empty() && options.signal == 0)
    return Error{ErrorCode::invalid_argument, "there is no trigger: name a file, a signal or a socket"};
  if (options.period.count() < 1 || options.period.count() > 3'600'000)
    return Error{ErrorCode::invalid_argument, fmt::format("a period of {} ms is not between 1 ms and an hour", options.period.count())};
  std::unique_ptr<Triggers> triggers(new Triggers(std::make_unique<Impl>(profiler, std::move(options), std::move(told))));
  Impl& impl = *triggers->impl_;
  impl.wake = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (impl.wake.get() < 0) return trigger_error(ErrorCode::unavailable, "cannot make an event descriptor");
  if (!impl.options.file.empty()) impl.known_file = impl.changing_file = look_at(impl.options.file);
  if (!impl.options.socket.empty()) {
    XPU_TRY_ASSIGN(impl.listening, listen_at(impl.options.socket));
  }
  if (impl.options.signal != 0) XPU_TRY(impl.take_signal());
  XPU_TRY_ASSIGN(impl.thread, base::start_service_thread("xpu-triggers", [&impl] { impl.run(); }));
  return triggers;
}

Triggers::~Triggers() {
  if (impl_->process != getpid()) {
    // A forked child: thread, signal and socket are the parent's. The thread is not here to be waited for.
    if (impl_->thread.joinable()) impl_->thread.detach();
    return;
  }
  if (impl_->has_signal) {
    sigaction(impl_->options.signal, &impl_->previous_action, nullptr);
    g_watching_process.store(0, std::memory_order_relaxed);
  }
  impl_->quits.store(true, std::memory_order_release);
  if (impl_->thread.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(impl_->wake.get(), &one, sizeof one);
    impl_->thread.join();
  }
  if (impl_->listening.get() >= 0) unlink(impl_->options.socket.c_str());
}

}  // namespace xpu::profiler
