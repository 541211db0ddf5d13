#include "xpu/profiler/activity_api.hpp"

#include <algorithm>
#include <utility>

#include "base/external_correlation.hpp"
#include "base/probe.hpp"
#include "profiler/session/capture_options.hpp"
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
  options.annotations = contains_any(kinds, {ActivityKind::user_annotation, ActivityKind::gpu_user_annotation});
  options.memory = with_memory;
  options.max_bytes = max_bytes;
  options.kernels = filter.kernels;
  options.queues = filter.queues;
  return options;
}

ActivityApi::~ActivityApi() = default;

Result<> ActivityApi::enable(ActivityKinds kinds, bool with_memory, std::uint64_t max_bytes, const ActivityFilter& filter) {
  if (is_enabled()) return Error{ErrorCode::failed_precondition, "activities are collected already"};
  XPU_TRY_ASSIGN(capture_, trace::LiveCapture::begin(capture_options(kinds, with_memory, max_bytes, filter)));
  manifest_ = capture_->manifest();
  processes_ = {capture_->process()};
  buffers_.clear();
  texts_.reset();
  writers_.clear();
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
  for (auto& [id, writer] : writers_) {
    writer.last_discarded = writer.last_seen;
    writer.submitted = 0;
    writer.ended = 0;
  }
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
        if (record.queue_sequence == 0) return;  // the driver refused it
        Writer& writer = writers_[trace::operation_writer(record.operation)];
        writer.last_seen = std::max(writer.last_seen, trace::operation_counter(record.operation));
        ++writer.submitted;
        return;
      }
      case trace::RecordKind::operation_completed: {
        const auto& record = reinterpret_cast<const trace::OperationCompletedRecord&>(header);
        Writer& writer = writers_[trace::operation_writer(record.operation)];
        if (trace::operation_counter(record.operation) > writer.last_discarded) ++writer.ended;
        return;
      }
      case trace::RecordKind::loss: {
        const auto& record = reinterpret_cast<const trace::LossRecord&>(header);
        if ((header.flags & trace::kFlagCompletionLost) != 0)
          writers_[trace::operation_writer(record.first_operation)].ended += record.count;
        return;
      }
      default: return;
    }
  });
}

void ActivityApi::flush() {
  if (!is_enabled()) return;
  trace::LiveCapture::harvest();
  fetch();
}

std::uint64_t ActivityApi::unfinished() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [id, writer] : writers_) sum += writer.submitted > writer.ended ? writer.submitted - writer.ended : 0;
  return sum;
}

void ActivityApi::disable() {
  if (!is_enabled()) return;
  trace::LiveCapture::harvest();
  capture_->finish();
  fetch();
  texts_ = capture_->texts();
  processes_ = {capture_->process()};
  capture_.reset();
}

void ActivityApi::forget() noexcept {
  buffers_.clear();
  writers_.clear();
}

std::uint64_t ActivityApi::recorded_bytes() const noexcept {
  std::uint64_t bytes = is_enabled() ? capture_->waiting_bytes() : 0;
  for (const ActivityBuffer& buffer : buffers_) bytes += buffer.records().size();
  return bytes;
}

bool ActivityApi::push_correlation_id(CorrelationFamily family, std::uint64_t id) noexcept {
  return probe::push_correlation(static_cast<probe::CorrelationFamily>(family), id);
}
std::optional<std::uint64_t> ActivityApi::pop_correlation_id(CorrelationFamily family) noexcept {
  return probe::pop_correlation(static_cast<probe::CorrelationFamily>(family));
}

Result<> ActivityApi::for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const {
  static_cast<void>(kinds);  // a buffer may hold any
  if (texts_) {
    visit(0, texts_->records());
  } else if (is_enabled()) {
    visit(0, capture_->texts().records());
  }
  for (const ActivityBuffer& buffer : buffers_) visit(0, buffer.records());
  return {};
}

}  // namespace xpu::profiler
