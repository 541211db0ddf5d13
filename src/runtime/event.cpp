#include "xpu/runtime/event.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/callbacks.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

namespace xpu {

using namespace runtime;

namespace {

/// Signed difference on a counter of `bits` bits.
std::int64_t ticks_between(std::uint64_t begin, std::uint64_t end, std::uint32_t bits) {
  const unsigned unused = bits >= 64 ? 0 : 64 - bits;
  return static_cast<std::int64_t>((end - begin) << unused) >> unused;
}

/// An event of another driver: a function in the stream's order waits for it.
Result<> wait_for_foreign(StreamState& stream, std::shared_ptr<hal::Event> event) {
  auto held = std::make_unique<std::shared_ptr<hal::Event>>(std::move(event));
  hal::HostFunction function;
  function.user = held.get();
  function.call = [](void* user) { return (*static_cast<std::shared_ptr<hal::Event>*>(user))->synchronize_blocking(); };
  function.drop = [](void* user) { delete static_cast<std::shared_ptr<hal::Event>*>(user); };
  XPU_TRY(stream.queue->host_function(function, {}));
  static_cast<void>(held.release());  // the driver drops what it took
  return {};
}

}  // namespace

Event::~Event() { release(); }

Event::Event(Event&& other) noexcept
    : options_(other.options_),
      event_(std::exchange(other.event_, nullptr)),
      device_(std::exchange(other.device_, nullptr)),
      stream_(std::exchange(other.stream_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  if (this != &other) {
    release();
    options_ = other.options_;
    event_ = std::exchange(other.event_, nullptr);
    device_ = std::exchange(other.device_, nullptr);
    stream_ = std::exchange(other.stream_, nullptr);
  }
  return *this;
}

void Event::release() noexcept {
  if (event_ == nullptr) return;
  if (is_running()) {
    reached(gpu_trace::Point::event_deletion, event_->native_handle());
    const probe::Scope scope;
    event_.reset();
  } else {
    keep_for_ever(std::move(event_));
  }
}

Result<> Event::create_on(DeviceState& device) {
  hal::Device* opened = device.device.load(std::memory_order_acquire);
  const hal::Capabilities& capabilities = opened->capabilities();
  if (options_.timing && !capabilities.timed_events) {
    return Error{ErrorCode::unsupported, fmt::format("device {} ({}) gives events no times", device.index, device.properties.name)};
  }
  if (options_.blocking && !capabilities.blocking_events) {
    return Error{ErrorCode::unsupported,
                 fmt::format("device {} ({}) cannot wait for an event without spinning, so blocking events are refused", device.index,
                             device.properties.name)};
  }
  XPU_TRY_ASSIGN(event_, opened->create_event({options_.timing, options_.blocking}));
  device_ = &device;
  reached(gpu_trace::Point::event_creation, event_->native_handle());
  return {};
}

Result<> Event::record() {
  XPU_TRY_ASSIGN(const Stream stream, Stream::current());
  return record(stream);
}

Result<> Event::record(const Stream& stream) {
  StreamState& state = *stream.state_;
  XPU_TRY(ensure_initialized());
  if (device_ != nullptr && device_ != state.device) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("Event device {} does not match recording stream's device {}.", device_->index, state.device->index)};
  }
  PublishedCall call(&ApiNames::record_event);
  {
    const probe::Scope scope;
    // Asked before anything is created, so that an event that could not be recorded stays a new one; and once more with the lock.
    XPU_TRY(call.finish(check_not_released(state)));
    if (event_ == nullptr) XPU_TRY(call.finish(create_on(*state.device)));
    const SubmissionGuard guard(state.lock);
    XPU_TRY(call.finish(check_not_released(state)));
    XPU_TRY(call.finish(state.queue->record(*event_)));
    stream_ = &state;
  }
  reached(gpu_trace::Point::event_record, event_->native_handle(), state.native_handle);
  return {};
}

Result<> Event::record_once(const Stream& stream) {
  if (event_ != nullptr) return {};
  return record(stream);
}

Result<> Event::wait() const {
  if (event_ == nullptr) return {};
  XPU_TRY_ASSIGN(const Stream stream, Stream::current());
  return wait(stream);
}

Result<> Event::wait(const Stream& stream) const {
  StreamState& state = *stream.state_;
  XPU_TRY(ensure_initialized());
  if (event_ == nullptr) return {};
  {
    PublishedCall call(&ApiNames::wait_event, probe::WaitType::stream_on_event, *state.device, &state, event_->native_handle());
    const probe::Scope scope;
    const SubmissionGuard guard(state.lock);
    XPU_TRY(call.finish(check_not_released(state)));
    const bool is_own = device_->driver == state.device->driver;
    XPU_TRY(call.finish(is_own ? state.queue->wait(*event_) : wait_for_foreign(state, event_)));
  }
  reached(gpu_trace::Point::event_wait, event_->native_handle(), state.native_handle);
  return {};
}

Result<bool> Event::query() const {
  if (event_ == nullptr) return true;
  XPU_TRY(ensure_initialized());
  PublishedCall call(&ApiNames::query_event);
  const probe::Scope scope;
  return call.finish(event_->query());
}

Result<> Event::synchronize() const {
  if (event_ == nullptr) return {};
  XPU_TRY(ensure_initialized());
  {
    PublishedCall call(&ApiNames::synchronize_event, probe::WaitType::events, *device_, nullptr, event_->native_handle());
    const probe::Scope scope;
    if (Result<> can_wait = stream_ == nullptr ? Result<>() : check_can_wait(*stream_); !can_wait) [[unlikely]] {
      // What it captured may be over though the stream is not.
      XPU_TRY_ASSIGN(const bool is_complete, call.finish(event_->query()));
      if (!is_complete) return call.finish(std::move(can_wait));
    }
    XPU_TRY(call.finish(event_->synchronize_blocking()));
  }
  reached(gpu_trace::Point::event_synchronization, event_->native_handle());
  return {};
}

Result<double> Event::elapsed_time(const Event& end) const {
  if (event_ == nullptr || end.event_ == nullptr) {
    return Error{ErrorCode::failed_precondition, "Both events must be recorded before calculating elapsed time."};
  }
  XPU_TRY(ensure_initialized());
  const probe::Scope scope;
  XPU_TRY_ASSIGN(const bool is_complete, event_->query());
  XPU_TRY_ASSIGN(const bool end_is_complete, end.event_->query());
  if (!is_complete || !end_is_complete) {
    return Error{ErrorCode::failed_precondition, "Both events must be completed before calculating elapsed time."};
  }
  if (!options_.timing || !end.options_.timing) {
    return Error{ErrorCode::failed_precondition, "Both events must be created with argument 'enable_timing=True'."};
  }
  if (device_ != end.device_) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("Both events must be of one device, whose clock it is; they are of devices {} and {}.", device_->index,
                             end.device_->index)};
  }
  XPU_TRY_ASSIGN(const std::uint64_t begin_ticks, event_->ticks());
  XPU_TRY_ASSIGN(const std::uint64_t end_ticks, end.event_->ticks());
  const hal::ClockInfo& clock = device_->device.load(std::memory_order_acquire)->clock();
  const auto ticks = static_cast<double>(ticks_between(begin_ticks, end_ticks, clock.valid_bits));
  return ticks * clock.tick_numerator / clock.tick_denominator / 1e6;
}

int Event::device() const noexcept { return device_ == nullptr ? -1 : device_->index; }
void* Event::native_handle() const noexcept { return event_ == nullptr ? nullptr : event_->native_handle(); }

}  // namespace xpu
