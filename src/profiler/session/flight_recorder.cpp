#include "xpu/profiler/flight_recorder.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "base/service_thread.hpp"
#include "profiler/session/capture_options.hpp"
#include "profiler/session/crash_watch.hpp"
#include "profiler/session/flight_ring.hpp"
#include "profiler/session/flight_state.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/profiler/outputs.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/trace/live_capture.hpp"

namespace xpu::profiler {
namespace {

using base::Mutex;
using base::MutexLock;
using std::chrono::milliseconds;

constexpr milliseconds kLookPeriod{50};
constexpr std::uint64_t kAskPeriodNs = 1'000'000'000;
constexpr std::uint64_t kLeastFlightBytes = std::uint64_t{2} << 20, kLeastWaitingBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMostHangs = 16;
constexpr int kNice = 5;

std::uint64_t nanoseconds_of(milliseconds time) { return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count()); }

Error forked_error() {
  return {ErrorCode::unavailable, "the flight recorder is that of the process from which this one was forked; start one here"};
}

Result<> check_flight_options(const FlightRecorderOptions& options) {
  constexpr milliseconds kLongest = std::chrono::hours(24 * 365);
  const auto check_time = [&](const char* name, milliseconds time) -> Result<> {
    if (time > milliseconds(0) && time <= kLongest) return {};
    return Error{ErrorCode::invalid_argument, fmt::format("{} is {} ms; at least 1 ms is needed, and at most a year", name, time.count())};
  };
  XPU_TRY(check_time("the time to keep", options.kept));
  if (options.hang_after) XPU_TRY(check_time("the time after which a queue hangs", *options.hang_after));
  if (options.dump_on_crash) XPU_TRY(check_time("the patience of a thread that crashes", options.crash_patience));
  if (options.max_bytes >= kLeastFlightBytes) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} bytes are too few for a flight recorder; at least {} are needed", options.max_bytes, kLeastFlightBytes)};
}

/// Absolute, because the program may change its working directory.
Result<std::string> find_dump_folder(const std::string& folder) {
  struct stat status = {};
  const std::unique_ptr<char, decltype(&std::free)> absolute(::realpath(folder.c_str(), nullptr), std::free);
  if (absolute == nullptr || ::stat(absolute.get(), &status) != 0) {
    const int error = errno;
    return Error{ErrorCode::not_found,
                 fmt::format("cannot use the folder \"{}\" for a flight recorder: {}", folder, std::generic_category().message(error)),
                 error};
  }
  if (!S_ISDIR(status.st_mode)) return Error{ErrorCode::invalid_argument, fmt::format("\"{}\" is no folder", folder)};
  return std::string(absolute.get());
}

bool is_chrome(const std::string& path) { return path.ends_with(".json") || path.ends_with(".json.gz"); }

/// What the ring held at one moment.
class FlightSource final : public RecordSource {
 public:
  FlightSource(const trace::Manifest& manifest, trace::ProcessInfo process, std::vector<ActivityBuffer> buffers)
      : manifest_(manifest), processes_{process}, buffers_(std::move(buffers)) {}
  const trace::Manifest& manifest() const override { return manifest_; }
  const std::vector<trace::ProcessInfo>& processes() const override { return processes_; }
  Result<> for_each_batch(std::span<const trace::RecordKind>, const Visitor& visit) const override {
    for (const ActivityBuffer& buffer : buffers_) visit(0, buffer.records());
    return {};
  }

 private:
  const trace::Manifest& manifest_;
  const std::vector<trace::ProcessInfo> processes_;
  const std::vector<ActivityBuffer> buffers_;
};

}  // namespace

struct FlightRecorder::Impl {
  Impl(const FlightRecorderOptions& wanted, std::string found_folder, std::unique_ptr<trace::LiveCapture> begun)
      : options(wanted),
        folder(std::move(found_folder)),
        waiting_bytes(waiting_bytes_of(wanted)),
        capture(std::move(begun)),
        ring(nanoseconds_of(wanted.kept), wanted.max_bytes - waiting_bytes) {}
  ~Impl() {
    if (wake_file >= 0) ::close(wake_file);
  }
  static std::uint64_t waiting_bytes_of(const FlightRecorderOptions& wanted) { return std::max(wanted.max_bytes / 4, kLeastWaitingBytes); }

  bool is_of_this_process() const noexcept { return ::getpid() == process; }
  std::uint64_t now() const noexcept { return now_ns(domain); }
  std::string file_of(const char* what) const { return fmt::format("{}/xpu_flight_{}_{}.json.gz", folder, process, what); }

  Result<> start_thread();
  void run();
  void look();
  void take() XPU_EXCLUDES(mutex);
  void take_locked(std::uint64_t time_ns) XPU_REQUIRES(mutex) { ring.add(capture->take(), time_ns); }
  void ask_publishers();
  void handle_hangs();
  void handle_crash();
  Result<ExportSummary> write(const std::string& path);

  const FlightRecorderOptions options;
  const std::string folder;
  const std::uint64_t waiting_bytes;
  const pid_t process = ::getpid();
  /// Taken from under `mutex` only, so that what was written first is read first.
  const std::unique_ptr<trace::LiveCapture> capture;
  const ClockDomain domain = capture->process().domain;
  int wake_file = -1;
  std::unique_ptr<CrashWatch> crash_watch;
  std::atomic<bool> is_stopping{false};

  /// Outermost but for `writing`: the tracer's locks and that of texts are taken under it. Publishers never take it.
  mutable Mutex mutex;
  FlightRing ring XPU_GUARDED_BY(mutex);
  std::vector<FlightHang> hangs XPU_GUARDED_BY(mutex);
  std::uint64_t hang_count XPU_GUARDED_BY(mutex) = 0;

  Mutex writing;   ///< One `dump` at a time, so that two to one path do not mix. Hangs and crashes have paths of their own.
  Mutex stopping;  ///< Two that stop: both return when it has stopped.
  std::thread thread XPU_GUARDED_BY(stopping);

  // Of the thread.
  std::uint64_t asked_ns = 0, asked_after = 0;
  std::map<std::uint32_t, std::uint64_t> hung;  ///< By queue: when the command that hangs was submitted.
};

// ---- the thread

Result<> FlightRecorder::Impl::start_thread() {
  wake_file = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_file < 0) {
    const int error = errno;
    return Error{ErrorCode::unavailable, "no eventfd for a flight recorder: " + std::generic_category().message(error), error};
  }
  if (options.dump_on_crash) {
    XPU_TRY_ASSIGN(crash_watch, CrashWatch::install(wake_file, options.crash_patience));
  }
  const MutexLock lock(stopping);
  XPU_TRY_ASSIGN(thread, base::start_service_thread("xpu-flight", [this] { run(); }));
  return {};
}

void FlightRecorder::Impl::run() {
  // Where it is refused, the thread runs as the others do.
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice));
  if (options.dump_on_crash) CrashWatch::set_server_thread();
  while (!is_stopping.load()) {
    pollfd wake = {wake_file, POLLIN, 0};
    if (::poll(&wake, 1, static_cast<int>(kLookPeriod.count())) > 0) {
      std::uint64_t times = 0;
      static_cast<void>(!::read(wake_file, &times, sizeof times));
    }
    look();
  }
}

void FlightRecorder::Impl::look() {
  if (options.dump_on_crash && CrashWatch::requested() != 0) return handle_crash();
  ask_publishers();
  take();
  if (options.hang_after) handle_hangs();
}

void FlightRecorder::Impl::take() {
  const MutexLock lock(mutex);
  take_locked(now());
}

/// Clocks are read, and what has ended is told, only where something moves: a driver that hangs may hold whoever asks, and then there would
/// be nobody to write what it was doing.
void FlightRecorder::Impl::ask_publishers() {
  const std::uint64_t time_ns = now();
  if (time_ns < asked_ns + kAskPeriodNs) return;
  std::uint64_t moved = 0;
  {
    const MutexLock lock(mutex);
    moved = ring.counts().submitted + ring.counts().ended;
  }
  if (moved == asked_after) return;
  asked_ns = time_ns;
  asked_after = moved;
  trace::LiveCapture::harvest();
}

void FlightRecorder::Impl::handle_hangs() {
  const std::uint64_t limit_ns = nanoseconds_of(*options.hang_after);
  std::vector<FlightHang> found;
  std::uint64_t count = 0;
  {
    const MutexLock lock(mutex);
    for (FlightQueue& queue : describe_state(ring, now()).queues) {
      const bool moves = !queue.out_of_order && queue.since_last_end_ns.value_or(UINT64_MAX) < limit_ns;
      if (queue.pending == 0 || queue.pending_ns < limit_ns || moves) {
        if (queue.pending == 0) hung.erase(queue.id);
        continue;
      }
      if (const auto known = hung.find(queue.id); known != hung.end() && known->second == queue.oldest_ns) continue;
      hung[queue.id] = queue.oldest_ns;
      found.push_back({std::move(queue), {}, {}});
    }
    count = hang_count;
    hang_count += found.size();
  }
  for (FlightHang& hang : found) {
    if (++count <= kMostHangs) {
      const std::string path = file_of(count == 1 ? "hang" : fmt::format("hang_{}", count).c_str());
      if (const Result<ExportSummary> written = write(path)) {
        hang.path = path;
      } else {
        hang.error = written.error().message;
      }
    }
    {
      const MutexLock lock(mutex);
      if (hangs.size() == kMostHangs) hangs.erase(hangs.begin());
      hangs.push_back(hang);
    }
    if (options.on_hang) options.on_hang(hang);
  }
}

/// Publishers are not asked: the thread that crashed may hold their locks.
void FlightRecorder::Impl::handle_crash() {
  take();
  const Result<ExportSummary> written = write(file_of("crash"));
  static_cast<void>(written.has_value());  // nobody is left to be told
  CrashWatch::done();
}

Result<ExportSummary> FlightRecorder::Impl::write(const std::string& path) {
  std::vector<ActivityBuffer> buffers;
  {
    const MutexLock lock(mutex);
    buffers = ring.contents();
    buffers.push_back(marks_of(describe_state(ring, now()), static_cast<std::uint32_t>(process)));
  }
  buffers.push_back(capture->texts());
  const FlightSource source(capture->manifest(), capture->process(), std::move(buffers));
  Session session(source);
  ExportOptions to_path;
  to_path.path = path;
  return export_as_named(session, to_path);
}

// ---- for everybody

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::start(const FlightRecorderOptions& options) {
  XPU_TRY(check_flight_options(options));
  XPU_TRY_ASSIGN(std::string folder, find_dump_folder(options.folder));
  XPU_TRY_ASSIGN(auto capture,
                 trace::LiveCapture::begin(capture_options(options.kinds, options.with_memory, Impl::waiting_bytes_of(options))));
  auto impl = std::make_unique<Impl>(options, std::move(folder), std::move(capture));
  XPU_TRY(impl->start_thread());
  return std::unique_ptr<FlightRecorder>(new FlightRecorder(std::move(impl)));
}

FlightRecorder::FlightRecorder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FlightRecorder::~FlightRecorder() {
  if (impl_->is_of_this_process()) {
    stop();
  } else {
    static_cast<void>(impl_.release());  // the thread and who held the locks are the parent's
  }
}

void FlightRecorder::stop() {
  if (!impl_->is_of_this_process()) return;
  const MutexLock lock(impl_->stopping);
  if (!impl_->thread.joinable()) return;
  impl_->crash_watch.reset();
  impl_->is_stopping.store(true);
  const std::uint64_t one = 1;
  static_cast<void>(!::write(impl_->wake_file, &one, sizeof one));
  impl_->thread.join();
  trace::LiveCapture::harvest();
  impl_->capture->finish();
  impl_->take();
}

Result<ExportSummary> FlightRecorder::dump(const std::string& path) {
  if (!impl_->is_of_this_process()) return forked_error();
  if (output_scheme(path).empty() && !is_perfetto_name(path) && !is_chrome(path)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("\"{}\" must end in .json, .json.gz, .pftrace or .pftrace.gz to be written by a flight recorder", path)};
  }
  trace::LiveCapture::harvest();
  const MutexLock lock(impl_->writing);
  impl_->take();
  return impl_->write(path);
}

FlightState FlightRecorder::state() {
  if (!impl_->is_of_this_process()) return {};
  trace::LiveCapture::harvest();
  const MutexLock lock(impl_->mutex);
  impl_->take_locked(impl_->now());
  return describe_state(impl_->ring, impl_->now());
}

FlightRecorder::Counts FlightRecorder::counts() const {
  if (!impl_->is_of_this_process()) return {};
  const MutexLock lock(impl_->mutex);
  const FlightRing::Counts& of_ring = impl_->ring.counts();
  Counts counts;
  counts.submitted = of_ring.submitted;
  counts.dropped = of_ring.dropped;
  counts.dropped_bytes = of_ring.dropped_bytes;
  counts.dropped_for_room_bytes = of_ring.dropped_for_room_bytes;
  counts.lost = of_ring.lost;
  counts.kept_bytes = of_ring.kept_bytes;
  counts.description_bytes = of_ring.description_bytes;
  if (impl_->ring.oldest_ns() != 0) counts.kept_ns = impl_->now() - impl_->ring.oldest_ns();
  counts.hangs = impl_->hang_count;
  return counts;
}

std::vector<FlightHang> FlightRecorder::hangs() const {
  if (!impl_->is_of_this_process()) return {};
  const MutexLock lock(impl_->mutex);
  return impl_->hangs;
}

}  // namespace xpu::profiler
