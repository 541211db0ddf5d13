#include "xpu/profiler/activity_api.hpp"

#include <algorithm>
#include <utility>

#include "base/external_correlation.hpp"
#include "base/probe.hpp"
#include "profiler/session/capture_options.hpp"
#include "profiler/session/participants.hpp"
#include "profiler/session/unfinished_operations.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {
namespace {

static_assert(static_cast<int>(CorrelationFamily::custom_3) == static_cast<int>(probe::CorrelationFamily::custom_3));

constexpr ActivityKinds kCallKinds = {ActivityKind::xpu_runtime, ActivityKind::xpu_driver, ActivityKind::cuda_runtime,
                                      ActivityKind::cuda_driver};

bool contains_any(ActivityKinds kinds, ActivityKinds wanted) { return !(kinds & wanted).is_empty(); }

}  // namespace

trace::CaptureOptions capture_options(ActivityKinds kinds, bool with_memory, std::uint64_t max_bytes, const ActivityFilter& filter) {
  trace::CaptureOptions options;
  options.calls = contains_any(kinds, kCallKinds);
  options.host_exit_times = options.calls;
  options.waits = contains_any(kinds, {ActivityKind::xpu_sync, ActivityKind::cuda_sync}) || options.calls;
  options.annotations =
      contains_any(kinds, {ActivityKind::user_annotation, ActivityKind::gpu_user_annotation, ActivityKind::collective_comm});
  options.memory = with_memory;
  options.max_bytes = max_bytes;
  options.kernels = filter.kernels;
  options.queues = filter.queues;
  return options;
}

ActivityApi::ActivityApi() : unfinished_(std::make_unique<UnfinishedOperations>()) {}
ActivityApi::~ActivityApi() = default;

Result<> ActivityApi::enable(ActivityKinds kinds, bool with_memory, std::uint64_t max_bytes, const ActivityFilter& filter) {
  if (is_enabled()) return Error{ErrorCode::failed_precondition, "activities are collected already"};
  XPU_TRY_ASSIGN(capture_, trace::LiveCapture::begin(capture_options(kinds, with_memory, max_bytes, filter)));
  manifest_ = capture_->manifest();
  processes_ = {capture_->process()};
  buffers_.clear();
  texts_.reset();
  unfinished_->clear();
  // Clocks are read while there is room: without a reading none of what fills the memory would have a place in time.
  trace::LiveCapture::harvest();
  return {};
}

void ActivityApi::pause() noexcept {
  if (is_enabled()) capture_->pause();
}
void ActivityApi::resume() noexcept {
  if (is_enabled()) capture_->resume();
}

void ActivityApi::drop_recorded() {
  if (!is_enabled()) return;
  fetch();
  // What describes stays: it is not said again. But queues are, with how far they have counted, before anything counts.
  std::vector<std::byte> kept;
  for (const ActivityBuffer& buffer : buffers_) {
    trace::for_each_record(buffer.records(), [&](const trace::RecordHeader& header) {
      if (!trace::describes(header) || header.kind == static_cast<std::uint16_t>(trace::RecordKind::queue)) return;
      const auto* bytes = reinterpret_cast<const std::byte*>(&header);
      kept.insert(kept.end(), bytes, bytes + header.size);
    });
  }
  buffers_.clear();
  buffers_.emplace_back(std::move(kept));
  unfinished_->clear();
}

void ActivityApi::discard() {
  if (!is_enabled()) return;
  // What is under way belongs to what comes, and queues are counted from here.
  capture_->pause();
  drop_recorded();
  capture_->resume();
}

void ActivityApi::stop() {
  if (!is_enabled()) return;
  capture_->pause();
  trace::SessionRecord record{};
  record.header = {static_cast<std::uint16_t>(trace::RecordKind::session), sizeof record, 0};
  record.time_ns = now_ns(probe::clock_domain());
  record.what = static_cast<std::uint32_t>(trace::SessionEvent::stop);
  const auto* bytes = reinterpret_cast<const std::byte*>(&record);
  buffers_.emplace_back(std::vector<std::byte>(bytes, bytes + sizeof record));
}

void ActivityApi::fetch() {
  if (!is_enabled()) return;
  unfinished_->begin_batch();
  for (ActivityBuffer& buffer : capture_->take()) {
    count(buffer);
    buffers_.push_back(std::move(buffer));
  }
}

void ActivityApi::count(const ActivityBuffer& buffer) {
  trace::for_each_record(buffer.records(), [&](const trace::RecordHeader& header) {
    switch (static_cast<trace::RecordKind>(header.kind)) {
      case trace::RecordKind::operation_submitted: {
        const auto& record = reinterpret_cast<const trace::OperationSubmittedRecord&>(header);
        if (record.queue_sequence != 0) unfinished_->add(record.operation);  // else the driver refused it
        return;
      }
      case trace::RecordKind::operation_completed:
        unfinished_->remove(reinterpret_cast<const trace::OperationCompletedRecord&>(header).operation);
        return;
      case trace::RecordKind::loss:
        if ((header.flags & trace::kFlagCompletionLost) != 0) {
          unfinished_->remove_unknown(reinterpret_cast<const trace::LossRecord&>(header).count);
        }
        return;
      default: return;
    }
  });
}

void ActivityApi::flush() {
  if (!is_enabled()) return;
  trace::LiveCapture::harvest();
  fetch();
}

std::uint64_t ActivityApi::unfinished() const noexcept { return unfinished_->count(); }

void ActivityApi::disable() {
  if (!is_enabled()) return;
  trace::LiveCapture::harvest();
  capture_->finish();
  fetch();
  texts_ = capture_->texts();
  processes_ = {capture_->process()};
  capture_.reset();
}

std::vector<ActivityBuffer> ActivityApi::take_fetched() noexcept { return std::exchange(buffers_, {}); }

ActivityBuffer ActivityApi::texts() const {
  if (texts_) return *texts_;
  return is_enabled() ? capture_->texts() : ActivityBuffer(std::vector<std::byte>());
}

void ActivityApi::forget() noexcept {
  buffers_.clear();
  unfinished_->clear();
}

std::uint64_t ActivityApi::recorded_bytes() const noexcept {
  std::uint64_t bytes = is_enabled() ? capture_->waiting_bytes() : 0;
  for (const ActivityBuffer& buffer : buffers_) bytes += buffer.records().size();
  return bytes;
}

bool ActivityApi::push_correlation_id(CorrelationFamily family, std::uint64_t id) noexcept {
  const bool is_pushed = probe::push_correlation(static_cast<probe::CorrelationFamily>(family), id);
  if (is_pushed) tell_children_of_push({id, static_cast<std::uint32_t>(family)});
  return is_pushed;
}
std::optional<std::uint64_t> ActivityApi::pop_correlation_id(CorrelationFamily family) noexcept {
  const std::optional<std::uint64_t> popped = probe::pop_correlation(static_cast<probe::CorrelationFamily>(family));
  if (popped) tell_children_of_pop(family);
  return popped;
}

Result<> ActivityApi::for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const {
  static_cast<void>(kinds);  // a buffer may hold any
  visit(0, texts().records());
  for (const ActivityBuffer& buffer : buffers_) visit(0, buffer.records());
  return {};
}

}  // namespace xpu::profiler
