#include "xpu/profiler/streaming_export.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/service_thread.hpp"
#include "profiler/sinks/streamed_files.hpp"

namespace xpu::profiler {
namespace {

using std::chrono::milliseconds;

/// How often what was written is taken over, so that where it was written there is room again.
constexpr milliseconds kFetchPeriod{50};

}  // namespace

struct StreamingExport::Impl {
  Impl(Config session_config, const StreamingOptions& streaming_options, std::unique_ptr<StreamedFiles> output)
      : options(streaming_options),
        early_bytes((session_config.max_buffer_mib << 20) / 4),
        files(std::move(output)),
        session(std::move(session_config)) {
    session.add_sink(*files);
  }

  bool is_of_this_process() const noexcept { return process == ::getpid(); }
  void run();
  void stop_thread();
  Result<> advance_locked();
  Error fail(const Error& error);
  Result<> expect_open() const;

  const StreamingOptions options;
  const std::uint64_t early_bytes;
  const pid_t process = ::getpid();
  const std::unique_ptr<StreamedFiles> files;
  Session session;

  mutable std::mutex rounds;  ///< One at a time. Publishers are asked and files are written under it; `toggle` does not take it.
  std::optional<Error> failure;
  bool has_ended = false;

  std::mutex waking;
  std::condition_variable wake;
  bool is_stopping = false;
  std::thread thread;
};

// ---- the thread

void StreamingExport::Impl::run() {
  auto next_round = std::chrono::steady_clock::now() + options.interval;
  std::unique_lock lock(waking);
  while (!is_stopping) {
    wake.wait_until(lock, std::min(next_round, std::chrono::steady_clock::now() + kFetchPeriod));
    if (is_stopping) return;
    lock.unlock();
    {
      const std::lock_guard round(rounds);
      const bool is_full = session.fetch() >= early_bytes;
      if (is_full || std::chrono::steady_clock::now() >= next_round) {
        if (!advance_locked()) return;  // remembered for `finish`
        next_round = std::chrono::steady_clock::now() + options.interval;
      }
    }
    lock.lock();
  }
}

void StreamingExport::Impl::stop_thread() {
  if (!thread.joinable()) return;
  {
    const std::lock_guard lock(waking);
    is_stopping = true;
    wake.notify_all();
  }
  thread.join();
}

// ---- rounds

Result<> StreamingExport::Impl::expect_open() const {
  if (!is_of_this_process())
    return Error{ErrorCode::unavailable, "the streaming export is that of the process from which this one was forked; start one here"};
  if (failure) return *failure;
  if (has_ended) return Error{ErrorCode::failed_precondition, "the streaming export has ended"};
  return {};
}

/// Nobody listens any more, and what is in the file stays.
Error StreamingExport::Impl::fail(const Error& error) {
  failure = error;
  failure->message += fmt::format("; what was written before is in {}", files->part());
  session.cancel();
  return *failure;
}

Result<> StreamingExport::Impl::advance_locked() {
  XPU_TRY(expect_open());
  if (Result<> round = session.advance(); !round) return fail(round.error());
  return {};
}

// ---- for everybody

Result<std::unique_ptr<StreamingExport>> StreamingExport::start(Config config, const StreamingOptions& options) {
  if (options.interval < milliseconds(1)) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("an interval of {} ms is too short for a streaming export; at least 1 ms is needed", options.interval.count())};
  }
  XPU_TRY_ASSIGN(std::unique_ptr<StreamedFiles> files, StreamedFiles::create(options.output, options.split_bytes));
  auto impl = std::make_unique<Impl>(std::move(config), options, std::move(files));
  Result<> started = impl->session.start();
  if (started && impl->options.has_thread) {
    Result<std::thread> thread = base::start_service_thread("xpu-stream", [stream = impl.get()] { stream->run(); });
    if (thread) {
      impl->thread = *std::move(thread);
    } else {
      started = thread.error();
    }
  }
  if (!started) {
    impl->session.cancel();
    impl->files->remove();
    return started.error();
  }
  return std::unique_ptr<StreamingExport>(new StreamingExport(std::move(impl)));
}

StreamingExport::StreamingExport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StreamingExport::~StreamingExport() {
  if (!impl_->is_of_this_process()) {
    static_cast<void>(impl_.release());  // the thread, the file and who held the locks are the parent's
    return;
  }
  impl_->stop_thread();
  if (!impl_->has_ended) impl_->session.cancel();
}

void StreamingExport::toggle(bool collect) noexcept {
  if (impl_->is_of_this_process()) impl_->session.toggle(collect);
}

Result<> StreamingExport::advance() {
  if (!impl_->is_of_this_process()) return impl_->expect_open();
  const std::lock_guard round(impl_->rounds);
  return impl_->advance_locked();
}

Result<StreamedTrace> StreamingExport::finish(milliseconds patience) {
  Impl& impl = *impl_;
  if (!impl.is_of_this_process()) return impl.expect_open().error();
  impl.stop_thread();
  const std::lock_guard round(impl.rounds);
  XPU_TRY(impl.advance_locked());
  impl.has_ended = true;
  StreamedTrace result;
  XPU_TRY(impl.session.stop());
  XPU_TRY(impl.session.collect(patience));
  Result<LinkSummary> links = impl.session.run();
  if (!links) return impl.fail(links.error());
  result.links = *links;
  result.trace = impl.files->summary();
  result.files = impl.files->files();
  XPU_TRY_ASSIGN(result.books, impl.session.take_stream_books());
  result.memory = impl.session.stream_counts();
  return result;
}

void StreamingExport::cancel() {
  Impl& impl = *impl_;
  if (!impl.is_of_this_process()) return;
  impl.stop_thread();
  const std::lock_guard round(impl.rounds);
  if (impl.has_ended) return;
  impl.has_ended = true;
  impl.session.cancel();
  impl.files->remove();
}

StreamCounts StreamingExport::counts() const {
  if (!impl_->is_of_this_process()) return {};
  const std::lock_guard round(impl_->rounds);
  return impl_->session.stream_counts();
}

}  // namespace xpu::profiler
