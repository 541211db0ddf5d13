#include "xpu/trace/view/view_subscriber.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/external_correlation.hpp"
#include "base/probe.hpp"
#include "base/process.hpp"
#include "base/service_thread.hpp"
#include "trace/definitions.hpp"
#include "trace/entry.hpp"
#include "trace/view/view_subscriber_impl.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/view/errors.hpp"

namespace xpu::trace::view {
namespace {

static_assert(static_cast<int>(ExternalKind::custom_3) == static_cast<int>(probe::CorrelationFamily::custom_3));

/// The subscriber whose callbacks this thread is in.
thread_local const void* t_in_callbacks_of = nullptr;

class InCallbacks {
 public:
  explicit InCallbacks(const void* subscriber) : before_(std::exchange(t_in_callbacks_of, subscriber)) {}
  ~InCallbacks() { t_in_callbacks_of = before_; }
  InCallbacks(const InCallbacks&) = delete;
  InCallbacks& operator=(const InCallbacks&) = delete;

 private:
  const void* before_;
};

}  // namespace

ViewSubscriber::Impl::Impl(ViewSubscriberOptions given)
    : options(given),
      process(getpid()),
      builder({.selection = {},
               .max_open_operations = given.max_open_operations,
               .texts = TextSource::process,
               .correlation_for = [this](std::uint64_t operation) { return notes->correlation_for(operation); }},
              [this](std::uint32_t writer, std::span<const std::byte> view) { put(writer, view); }) {
  builder.add(encode_process(static_cast<std::uint64_t>(process), 0));
}

bool ViewSubscriber::Impl::is_elsewhere() const noexcept { return getpid() != process; }

// ---- the end of the process

namespace {

/// Those that are not destroyed when the process ends. Leaked: exit handlers of others may come later.
struct LiveSubscribers {
  std::mutex mutex;
  std::vector<ViewSubscriber::Impl*> all;
};
LiveSubscribers& live_subscribers() {
  static auto* subscribers = new LiveSubscribers;
  return *subscribers;
}

}  // namespace

// ---- rounds

void ViewSubscriber::Impl::put(std::uint32_t writer, std::span<const std::byte> view) {
  const std::uint64_t begin_ns = begin_of(view);
  const auto change = std::find_if(clocks.rbegin(), clocks.rend(), [&](const ClockChange& one) { return one.from_ns <= begin_ns; });
  if (begin_ns != 0 && change != clocks.rend()) {
    std::memcpy(converted.data(), view.data(), view.size());
    convert_times({converted.data(), view.size()}, *change->clock);
    view = {converted.data(), view.size()};
  }
  if (!buffers->put(writer, view)) ++dropped_views;
}

/// Returns how many bytes there were.
std::uint64_t ViewSubscriber::Impl::take_records() {
  std::vector<RecordBuffer> records;
  std::vector<SelectionChange> changes;
  {
    const std::lock_guard lock(mutex);
    changes.swap(selection_changes);
    if (capture) records = capture->take();
  }
  for (const SelectionChange& change : changes) builder.select(change.selection, change.from_ns);
  std::uint64_t bytes = 0;
  for (const RecordBuffer& buffer : records) {
    builder.add(buffer.records());
    bytes += buffer.records().size();
  }
  return bytes;
}

/// Nobody listens any more when nothing is selected and what was begun has ended.
void ViewSubscriber::Impl::rest_when_nothing_is_wanted() {
  // A call that had begun is written when it returns.
  constexpr unsigned kQuietRounds = 3;
  if (builder.unfinished_operations() != 0 || quiet_rounds < kQuietRounds) return;
  const std::lock_guard lock(mutex);
  if (!capture || !is_capture_paused || !selection_changes.empty()) return;
  builder.finish();  // what is left are ends of what began before
  capture.reset();
}

void ViewSubscriber::Impl::count_buffers() {
  statistics.buffers_requested = requested_before + (buffers ? buffers->requested() : 0);
  statistics.buffers_completed = completed_before + (buffers ? buffers->completed() : 0);
}

void ViewSubscriber::Impl::do_round(RoundType type) {
  const std::lock_guard round(round_mutex);
  const InCallbacks in_callbacks(this);
  if (buffers) buffers->begin_round();
  if (type != RoundType::ordinary && !base::process_is_exiting()) LiveCapture::harvest();
  const std::uint64_t begin_ns = now_ns(probe::clock_domain());
  const std::uint64_t bytes = take_records();
  quiet_rounds = bytes != 0 ? 0 : quiet_rounds + 1;
  if (!clocks.empty() && clocks.back().clock->read() != ResultCode::success) ++bad_timestamps;
  builder.deliver(ViewBuilder::Completeness::described);
  if (type == RoundType::flush) {
    builder.deliver(ViewBuilder::Completeness::as_known);
    if (buffers) buffers->complete_filled();
  } else if (type == RoundType::last) {
    builder.finish();
    if (buffers) buffers->complete_all();
  }
  internal::publish_flush(begin_ns, bytes);
  rest_when_nothing_is_wanted();

  const std::lock_guard lock(mutex);
  statistics.views = builder.statistics();
  statistics.dropped_views = dropped_views;
  statistics.bad_timestamps = bad_timestamps;
  count_buffers();
}

void ViewSubscriber::Impl::run() {
  std::unique_lock lock(mutex);
  while (!quits) {
    const std::uint64_t flush = flushes_wanted;
    const bool is_flush = flush != flushes_done;
    lock.unlock();
    do_round(is_flush ? RoundType::flush : RoundType::ordinary);
    lock.lock();
    flushes_done = flush;
    if (is_flush) round_done.notify_all();
    wake.wait_for(lock, options.interval, [&] { return quits || flushes_wanted != flushes_done; });
  }
  lock.unlock();
  do_round(RoundType::last);
}

ResultCode ViewSubscriber::Impl::start_delivering() {
  if (thread.joinable()) return ResultCode::success;
  Result<std::thread> started = base::start_service_thread("xpu-views", [this] { run(); });
  if (!started) {
    problem = started.error().message;
    return ResultCode::tracing_not_initialized;
  }
  thread = std::move(*started);
  return ResultCode::success;
}

void ViewSubscriber::Impl::finish() {
  if (is_elsewhere()) {
    if (thread.joinable()) thread.detach();  // it is the parent's
    return;
  }
  bool has_thread = false;
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(is_finished, true)) return;
    // What begins from here on is not of interest, and what is open is told of as it is.
    if (capture && !std::exchange(is_capture_paused, true)) capture->pause();
    quits = true;
    has_thread = thread.joinable();
  }
  if (!has_thread) {
    do_round(RoundType::last);
  } else if (std::this_thread::get_id() == thread.get_id()) {
    thread.detach();  // a callback ends the process: what it has not got, it does not want
  } else {
    wake.notify_all();
    thread.join();
  }
  const std::lock_guard lock(mutex);
  capture.reset();
  round_done.notify_all();
}

// ---- the interface

ViewSubscriber::ViewSubscriber(ViewSubscriberOptions options) : impl_(std::make_unique<Impl>(options)) {
  LiveSubscribers& subscribers = live_subscribers();
  static const bool is_registered = std::atexit([] {
                                      std::vector<Impl*> all;
                                      {
                                        const std::lock_guard lock(live_subscribers().mutex);
                                        all = live_subscribers().all;
                                      }
                                      for (Impl* subscriber : all) subscriber->finish();
                                    }) == 0;
  static_cast<void>(is_registered);  // without it buffers stay where the program left them
  const std::lock_guard lock(subscribers.mutex);
  subscribers.all.push_back(impl_.get());
}

ViewSubscriber::~ViewSubscriber() {
  impl_->finish();
  if (impl_->is_elsewhere()) {
    static_cast<void>(impl_.release());  // a thread that is not here may have held its locks
    return;
  }
  const std::lock_guard lock(live_subscribers().mutex);
  std::erase(live_subscribers().all, impl_.get());
}

ResultCode ViewSubscriber::set_callbacks(BufferRequested requested, BufferCompleted completed) {
  if (impl_->is_elsewhere()) return ResultCode::tracing_not_initialized;
  if (!requested || !completed || t_in_callbacks_of == impl_.get()) return ResultCode::bad_argument;
  auto buffers = std::make_unique<ViewBuffers>(std::move(requested), std::move(completed));
  const std::lock_guard round(impl_->round_mutex);
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->is_finished) return ResultCode::tracing_not_initialized;
  }
  const InCallbacks in_callbacks(impl_.get());
  const ResultCode code = buffers->request_first();
  std::swap(code == ResultCode::success ? impl_->buffers : buffers, buffers);
  // `buffers` are the ones that are not used any more: those of before, or those that were no good.
  if (buffers) {
    buffers->complete_all();
    impl_->requested_before += buffers->requested();
    impl_->completed_before += buffers->completed();
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->has_callbacks = impl_->buffers != nullptr;
  impl_->count_buffers();
  return code;
}

CaptureOptions ViewSubscriber::Impl::capture_options() const {
  const bool wants_calls = selection.wants_any_api() || callers_that_need_calls != 0;
  CaptureOptions wanted;
  wanted.host_exit_times = wants_calls;
  wanted.calls = wants_calls;
  wanted.waits = wants_calls || selection.is_enabled(ViewKind::synchronization);
  wanted.memory = false;
  wanted.annotations = selection.is_enabled(ViewKind::communication);
  wanted.max_bytes = options.max_bytes;
  return wanted;
}

bool ViewSubscriber::Impl::is_device_work_enabled() const {
  const std::lock_guard lock(mutex);
  for (const ViewKind kind : {ViewKind::kernel, ViewKind::memory_copy, ViewKind::memory_fill, ViewKind::peer_copy}) {
    if (selection.is_enabled(kind)) return true;
  }
  return false;
}

void ViewSubscriber::Impl::need_calls(int difference) {
  const std::lock_guard lock(mutex);
  callers_that_need_calls += difference;
  if (capture) capture->change(capture_options());
}

/// Begins, changes or pauses the capture. `mutex` is held.
ResultCode ViewSubscriber::Impl::record_what_is_selected(std::uint64_t now) {
  if (!selection.is_any_enabled()) {
    if (capture && !std::exchange(is_capture_paused, true)) capture->pause();
    selection_changes.push_back({now, selection});
    return ResultCode::success;
  }
  const CaptureOptions wanted = capture_options();
  if (!capture) {
    Result<std::unique_ptr<LiveCapture>> begun = LiveCapture::begin(wanted);
    if (!begun) {
      problem = begun.error().message;
      return to_result_code(begun.error().code);
    }
    capture = std::move(*begun);
    is_capture_paused = false;
    selection_changes.push_back({now, selection});
    return start_delivering();
  }
  capture->change(wanted);
  if (std::exchange(is_capture_paused, false)) capture->resume();
  selection_changes.push_back({now, selection});
  return ResultCode::success;
}

ResultCode ViewSubscriber::Impl::change_selection(const std::function<ResultCode(Selection&)>& change) {
  if (is_elsewhere()) return ResultCode::tracing_not_initialized;
  const std::lock_guard lock(mutex);
  if (is_finished) return ResultCode::tracing_not_initialized;
  Selection changed = selection;
  const ResultCode code = change(changed);
  if (code != ResultCode::success) return code;
  problem.clear();
  const Selection before = std::exchange(selection, std::move(changed));
  const ResultCode recording = record_what_is_selected(now_ns(probe::clock_domain()));
  if (recording != ResultCode::success) selection = before;
  return recording;
}

ResultCode ViewSubscriber::enable(ViewKind kind) {
  return impl_->change_selection([&](Selection& selection) {
    const ResultCode code = selection.enable(kind);
    return code == ResultCode::success && !impl_->has_callbacks ? ResultCode::no_callbacks_set : code;
  });
}
ResultCode ViewSubscriber::disable(ViewKind kind) {
  return impl_->change_selection([&](Selection& selection) { return selection.disable(kind); });
}
ResultCode ViewSubscriber::enable_api(ViewKind kind, bool enable, ApiGroup group, std::uint32_t id) {
  return impl_->change_selection([&](Selection& selection) { return selection.enable_api(kind, enable, group, id); });
}
ResultCode ViewSubscriber::enable_api_class(ViewKind kind, bool enable, ApiClass api_class, ApiGroup group) {
  return impl_->change_selection([&](Selection& selection) { return selection.enable_api_class(kind, enable, api_class, group); });
}

ResultCode ViewSubscriber::flush() {
  if (impl_->is_elsewhere()) return ResultCode::tracing_not_initialized;
  if (t_in_callbacks_of == impl_.get()) return ResultCode::bad_argument;
  std::unique_lock lock(impl_->mutex);
  if (impl_->is_finished) return ResultCode::tracing_not_initialized;
  if (!impl_->thread.joinable()) return ResultCode::success;  // nothing was ever enabled
  const std::uint64_t mine = ++impl_->flushes_wanted;
  impl_->wake.notify_all();
  impl_->round_done.wait(lock, [&] { return impl_->flushes_done >= mine || impl_->is_finished; });
  return ResultCode::success;
}

ResultCode ViewSubscriber::set_timestamp_callback(Clock clock) {
  if (impl_->is_elsewhere()) return ResultCode::tracing_not_initialized;
  if (!clock) return ResultCode::bad_argument;
  auto view_clock = std::make_shared<ViewClock>(clock);
  const ResultCode code = view_clock->read();
  if (code != ResultCode::success) return code;
  // Within a callback the round is this thread's already.
  std::unique_lock round(impl_->round_mutex, std::defer_lock);
  if (t_in_callbacks_of != impl_.get()) round.lock();
  // Most of what began under a clock of before has been told of; of the rest the oldest that is kept is taken.
  constexpr std::size_t kMaxClocks = 16;
  if (impl_->clocks.size() == kMaxClocks) impl_->clocks.erase(impl_->clocks.begin());
  impl_->clocks.push_back({now_ns(probe::clock_domain()), std::move(view_clock)});
  const std::lock_guard lock(impl_->mutex);
  impl_->clock = std::move(clock);
  return ResultCode::success;
}

std::uint64_t ViewSubscriber::timestamp() const {
  Clock clock;
  {
    const std::lock_guard lock(impl_->mutex);
    clock = impl_->clock;
  }
  return clock ? clock() : now_ns(probe::clock_domain());
}

ResultCode ViewSubscriber::push_external_id(ExternalKind kind, std::uint64_t id) noexcept {
  return probe::push_correlation(static_cast<probe::CorrelationFamily>(kind), id) ? ResultCode::success : ResultCode::bad_argument;
}

ResultCode ViewSubscriber::pop_external_id(ExternalKind kind, std::uint64_t* id) noexcept {
  const auto number = static_cast<std::uint32_t>(kind);
  if (number == 0 || number > kExternalKinds) return ResultCode::bad_argument;
  const std::optional<std::uint64_t> popped = probe::pop_correlation(static_cast<probe::CorrelationFamily>(kind));
  if (!popped) return ResultCode::external_id_queue_empty;
  if (id != nullptr) *id = *popped;
  return ResultCode::success;
}

ViewSubscriberStatistics ViewSubscriber::statistics() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->statistics;
}

std::string ViewSubscriber::problem() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->problem;
}

}  // namespace xpu::trace::view
