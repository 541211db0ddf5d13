#include "xpu/runtime/stream.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <utility>

#include "runtime/callbacks.hpp"
#include "runtime/launch_check.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

namespace xpu {

namespace runtime {

std::shared_ptr<hal::Queue> hold_queue(StreamState& stream) noexcept {
  if (!stream.is_external) [[likely]]
    return {std::shared_ptr<void>(), stream.queue.get()};  // it lives for ever: nothing is counted
  const base::MutexLock lock(stream.error_mutex);
  return stream.queue;
}

namespace {

Result<> check_can_wait(const StreamState& stream, hal::Queue& queue) {
  if (!queue.would_wait_for_itself()) [[likely]]
    return {};
  XPU_TRY_ASSIGN(const bool has_ended, queue.query());
  if (has_ended) return {};
  return Error{ErrorCode::failed_precondition,
               fmt::format("stream {:#x} of device {} cannot be waited for here: it goes on when this kernel or function has returned",
                           stream.id, stream.device->index)};
}

}  // namespace

Result<> check_can_wait(StreamState& stream) {
  const probe::Scope scope;
  const std::shared_ptr<hal::Queue> queue = hold_queue(stream);
  return queue == nullptr ? Result<>() : check_can_wait(stream, *queue);
}

Result<> synchronize_taking_error(StreamState& stream) {
  const std::shared_ptr<hal::Queue> queue = hold_queue(stream);
  if (queue == nullptr) return check_not_released(stream);
  XPU_TRY(check_can_wait(stream, *queue));
  Result<> synchronized = queue->synchronize_blocking();
  if (std::optional<Error> kept = take_kept_error(stream)) return *std::move(kept);  // it came first
  return synchronized;
}

std::optional<Error> take_kept_error(StreamState& stream) noexcept {
  if (!stream.has_kept_error.load(std::memory_order_acquire)) return std::nullopt;
  const base::MutexLock lock(stream.error_mutex);
  stream.has_kept_error.store(false, std::memory_order_relaxed);
  return std::exchange(stream.kept_error, std::nullopt);
}

void wait_keeping_error(StreamState& stream) noexcept {
  const probe::Scope scope;
  const std::shared_ptr<hal::Queue> queue = hold_queue(stream);
  if (queue == nullptr || !check_can_wait(stream, *queue)) return;
  Result<> synchronized = queue->synchronize_blocking();
  if (synchronized) return;
  const base::MutexLock lock(stream.error_mutex);
  if (stream.kept_error) return;
  stream.kept_error = std::move(synchronized).error();
  stream.has_kept_error.store(true, std::memory_order_release);
}

Result<> check_not_released(const StreamState& stream) {
  if (stream.is_released.load(std::memory_order_acquire)) [[unlikely]] {
    return Error{ErrorCode::failed_precondition, fmt::format("external stream {:#x} was released by its owner", stream.id)};
  }
  return {};
}

namespace {

[[gnu::cold, gnu::noinline]] Result<> check_usable_slowly(const StreamState& stream) {
  XPU_TRY(ensure_initialized());
  return check_not_released(stream);
}
inline bool is_usable(const StreamState& stream) noexcept { return is_running() && !stream.is_released.load(std::memory_order_acquire); }
inline Result<> check_usable(const StreamState& stream) {
  if (is_usable(stream)) [[likely]]
    return {};
  return check_usable_slowly(stream);
}

/// What a submission is, for whoever listens. Everything in it is looked at only then.
struct Described {
  probe::Id ApiNames::* api;
  probe::Command command;
};

// What recording costs is measured on one operation in so many, where it costs nothing itself.
constexpr std::uint32_t kSampleEvery = 64;

/// Submits with the submission lock held: `call(const hal::Submission&)` is the driver's function, `describe(probe::Operation&, Detail&)`
/// fills in what the listener gets; a Detail is what an operation may point to.
template <typename Detail, typename Describe, typename Call>
Result<Operation> submit_published(StreamState& stream, const probe::Subscriber& subscriber, hal::Submission submission,
                                   const Described& what, Describe& describe, Call& call) {
  const bool is_sampled = --stream.until_sample == 0;
  if (is_sampled) [[unlikely]]
    stream.until_sample = kSampleEvery;
  const std::uint64_t entered_ns = is_sampled ? now_ns() : 0;
  const std::uint32_t wanted = subscriber.wanted.load(std::memory_order_relaxed);
  probe::Operation operation;
  operation.queue = stream.probe_id;
  operation.api = g_api_names.*what.api;
  operation.command = what.command;
  Detail detail;
  describe(operation, detail);
  operation.enter_ns = now_ns();
  if (publish_clock_if_due(*stream.device, operation.enter_ns)) [[unlikely]]
    operation.enter_ns = now_ns();
  const probe::OperationId id = subscriber.begin(operation);
  if (id == 0) {
    XPU_TRY(call(submission));
    return Operation{0, ++stream.sequence};
  }
  if ((wanted & probe::kCalls) != 0) subscriber.call_begin(operation.api, operation.enter_ns);
  submission.token = stream.pending.open(&subscriber, id, stream.probe_id);

  const std::uint64_t called_ns = is_sampled ? now_ns() : 0;
  Result<> taken = call(submission);
  const std::uint64_t returned_ns = is_sampled || (wanted & probe::kHostExitTimes) != 0 ? now_ns() : 0;

  std::uint32_t sequence = 0;
  if (taken) {
    ++stream.sequence;
    // Read again: a function that ran within the call may have submitted, too.
    sequence = stream.published.load(std::memory_order_relaxed) + 1;
    stream.published.store(sequence, std::memory_order_relaxed);
  }
  const std::uint64_t exit_ns = (wanted & probe::kHostExitTimes) != 0 ? returned_ns : 0;
  const bool is_recorded = subscriber.submitted(id, operation, {exit_ns, taken ? 0 : result_code(taken.error()), sequence});
  if (submission.token == 0) {
    if (taken && is_recorded) subscriber.lost({stream.probe_id, probe::LossCause::ring_full, id, id, 1});
  } else if (!taken) {
    stream.pending.refused(submission.token);
  } else if (is_recorded) {
    stream.pending.submitted(submission.token);
  } else {
    stream.pending.discard(submission.token);
  }
  if (is_sampled) {
    const std::uint64_t end_ns = now_ns();
    subscriber.overhead(probe::OverheadType::time, end_ns - (called_ns - entered_ns) - (end_ns - returned_ns), end_ns, kSampleEvery);
  }
  if (!taken) return std::move(taken).error();
  return Operation{is_recorded ? id : 0, stream.sequence};
}

template <typename Detail, typename Describe, typename Call>
Result<Operation> submit(StreamState& stream, const hal::Submission& submission, const Described& what, Describe&& describe, Call&& call) {
  const SubmissionGuard guard(stream.lock);
  if (stream.is_released.load(std::memory_order_acquire)) [[unlikely]]
    XPU_TRY(check_not_released(stream));
  const probe::Subscriber* subscriber = listener();
  const probe::Scope scope;
  if (subscriber != nullptr) [[unlikely]]
    return submit_published<Detail>(stream, *subscriber, submission, what, describe, call);
  XPU_TRY(call(submission));
  return Operation{0, ++stream.sequence};
}

void fill_geometry(probe::Geometry& published, const Geometry& geometry) {
  published.dimensions = geometry.dimensions;
  std::memcpy(published.global, geometry.global, sizeof published.global);
  std::memcpy(published.local, geometry.local, sizeof published.local);
  std::memcpy(published.offset, geometry.offset, sizeof published.offset);
}

Result<Operation> submit_function(StreamState& stream, probe::Id ApiNames::* api, const OperationInfo& info,
                                  const hal::HostFunction& function) {
  const auto describe = [&](probe::Operation& operation, probe::Geometry& geometry) {
    operation.kernel = kernel_id(*stream.device, info.name);
    if (info.geometry == nullptr) return;
    fill_geometry(geometry, *info.geometry);
    operation.geometry = &geometry;
  };
  const auto call = [&](const hal::Submission& submission) { return stream.queue->host_function(function, submission); };
  const auto submit_usable = [&]() -> Result<Operation> {
    XPU_TRY(check_usable(stream));
    return submit<probe::Geometry>(stream, {0, info.short_and_independent}, {api, probe::Command::native_kernel}, describe, call);
  };
  Result<Operation> submitted = submit_usable();
  // A driver drops what it took and nothing else.
  if (!submitted && function.drop != nullptr) function.drop(function.user);
  return submitted;
}

/// A host function of a caller that waits for it.
struct AwaitedFunction {
  const hal::HostFunction* function;
  std::atomic<bool> was_called{false}, is_over{false};
};

Result<Operation> run_awaited(StreamState& stream, const OperationInfo& info, const hal::HostFunction& function) {
  XPU_TRY(check_can_wait(stream));
  AwaitedFunction awaited{&function};
  hal::HostFunction held;
  held.user = &awaited;
  held.call = [](void* user) -> Result<> {
    auto& called = *static_cast<AwaitedFunction*>(user);
    called.was_called.store(true, std::memory_order_relaxed);
    return called.function->call(called.function->user);
  };
  held.drop = [](void* user) { static_cast<AwaitedFunction*>(user)->is_over.store(true, std::memory_order_release); };
  OperationInfo here = info;
  here.short_and_independent = true;  // the caller waits in any case, so it may as well be the one who runs it
  XPU_TRY_ASSIGN(const Operation operation, submit_function(stream, &ApiNames::run_blocking, here, held));
  if (!awaited.is_over.load(std::memory_order_acquire)) {
    const probe::Scope scope;
    auto event = stream.device->device.load(std::memory_order_acquire)->create_event({});
    Result<> waited;
    if (event) {
      const SubmissionGuard guard(stream.lock);
      waited = check_not_released(stream);
      if (waited) waited = stream.queue->record(**event);
    }
    if (event && waited) waited = (*event)->synchronize_blocking();
    // The frame is the caller's: it may not go before the driver has let go of it.
    while (!awaited.is_over.load(std::memory_order_acquire)) wait_keeping_error(stream);
  }
  if (!awaited.was_called.load(std::memory_order_acquire)) {
    return Error{ErrorCode::unavailable, fmt::format("'{}' was not run: the process is exiting, or the device is lost", info.name)};
  }
  return operation;
}

}  // namespace
}  // namespace runtime

using namespace runtime;

StreamId Stream::id() const noexcept { return state_->id; }
int Stream::device() const noexcept { return state_->device->index; }
int Stream::priority() const noexcept { return state_->priority; }
bool Stream::is_external() const noexcept { return state_->is_external; }
void* Stream::native_handle() const noexcept { return state_->native_handle; }
memory::StreamRef Stream::memory_ref() const noexcept { return runtime::memory_ref(*state_); }

Result<bool> Stream::query() const {
  XPU_TRY(check_usable(*state_));
  PublishedCall call(&ApiNames::query_stream);
  const probe::Scope scope;
  const std::shared_ptr<hal::Queue> queue = hold_queue(*state_);
  if (queue == nullptr) return call.finish(Result<bool>(check_not_released(*state_).error()));
  return call.finish(queue->query());
}

Result<> Stream::synchronize() const {
  XPU_TRY(check_usable(*state_));
  Result<> synchronized;
  {
    PublishedCall call(&ApiNames::synchronize_stream, probe::WaitType::queue, *state_->device, state_, state_->native_handle);
    const probe::Scope scope;
    synchronized = call.finish(synchronize_taking_error(*state_));
  }
  publish_clock_if_due(*state_->device, now_ns());
  reached(gpu_trace::Point::stream_synchronization, state_->native_handle);
  return synchronized;
}

Result<> Stream::wait(const Stream& other) const {
  XPU_TRY(check_usable(*state_));
  if (*this == other) return {};
  Event event;
  XPU_TRY(event.record(other));
  return event.wait(*this);
}

Result<> Stream::launch_values(const Kernel& kernel, const Geometry& geometry, std::span<const ArgumentValue> arguments,
                               std::uint32_t local_memory_bytes) const {
  StreamState& stream = *state_;
  if (!is_usable(stream)) [[unlikely]]
    XPU_TRY(check_usable_slowly(stream));
  const KernelState& launched = *kernel.state_;
  alignas(64) std::byte block[kMaxArgumentBytes];
  XPU_TRY(prepare_launch(launched, *stream.device, geometry, arguments, local_memory_bytes, block));
  const hal::Launch launch{launched.kernel.get(), &geometry, {block, launched.argument_bytes}, local_memory_bytes};
  const auto describe = [&](probe::Operation& operation, probe::Geometry& published) {
    operation.kernel = launched.probe_id;
    fill_geometry(published, geometry);
    operation.geometry = &published;
  };
  auto submitted =
      submit<probe::Geometry>(stream, {0, launched.is_short_and_independent}, {&ApiNames::launch, probe::Command::ndrange_kernel}, describe,
                              [&](const hal::Submission& submission) { return stream.queue->launch(launch, submission); });
  if (!submitted) [[unlikely]]
    return std::move(submitted).error();
  return {};
}

Result<> Stream::copy(void* destination, const void* source, std::size_t bytes) const {
  StreamState& stream = *state_;
  XPU_TRY(check_usable(stream));
  if (bytes == 0) return {};
  if (destination == nullptr || source == nullptr) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a copy of {} bytes has a null {}", bytes, destination == nullptr ? "destination" : "source")};
  }
  const auto describe = [&](probe::Operation& operation, probe::CopyDetail& detail) {
    detail = describe_copy(*stream.device, destination, source, bytes);
    operation.copy = &detail;
    if (detail.direction == probe::CopyDirection::host_to_device) operation.command = probe::Command::write;
    if (detail.direction == probe::CopyDirection::device_to_host) operation.command = probe::Command::read;
  };
  XPU_TRY(submit<probe::CopyDetail>(stream, {}, {&ApiNames::copy, probe::Command::copy}, describe, [&](const hal::Submission& submission) {
    return stream.queue->copy(destination, source, bytes, submission);
  }));
  return {};
}

Result<> Stream::copy_blocking(void* destination, const void* source, std::size_t bytes) const {
  XPU_TRY(check_usable(*state_));
  XPU_TRY(check_can_wait(*state_));
  XPU_TRY(copy(destination, source, bytes));
  return synchronize();
}

Result<> Stream::fill_bytes(void* destination, std::span<const std::byte> pattern, std::size_t bytes) const {
  StreamState& stream = *state_;
  XPU_TRY(check_usable(stream));
  const std::size_t length = pattern.size();
  if (length != 1 && length != 2 && length != 4 && length != 8 && length != 16) {
    return Error{ErrorCode::invalid_argument, fmt::format("a fill pattern of {} bytes, it must have 1, 2, 4, 8 or 16", length)};
  }
  if (bytes % length != 0) {
    return Error{ErrorCode::invalid_argument, fmt::format("a fill of {} bytes is no multiple of its pattern's {}", bytes, length)};
  }
  if (bytes == 0) return {};
  if (destination == nullptr) return Error{ErrorCode::invalid_argument, fmt::format("a fill of {} bytes has a null destination", bytes)};
  const auto describe = [&](probe::Operation& operation, probe::CopyDetail& detail) {
    detail = describe_fill(destination, bytes, pattern.data(), length);
    operation.copy = &detail;
  };
  XPU_TRY(submit<probe::CopyDetail>(stream, {}, {&ApiNames::fill, probe::Command::fill}, describe, [&](const hal::Submission& submission) {
    return stream.queue->fill(destination, pattern, bytes, submission);
  }));
  return {};
}

Result<Operation> Stream::run_held(const OperationInfo& info, const hal::HostFunction& function) const {
  return submit_function(*state_, &ApiNames::run, info, function);
}

Result<Operation> Stream::run_held_blocking(const OperationInfo& info, const hal::HostFunction& function) const {
  XPU_TRY(check_usable(*state_));
  PublishedCall call(&ApiNames::run_blocking, probe::WaitType::blocking_call, *state_->device, state_, state_->native_handle);
  return call.finish(run_awaited(*state_, info, function));
}

Error Stream::error_of_current_exception() {
  try {
    throw;
  } catch (const BadResult& thrown) {
    return thrown.error();
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_host_memory, "a host function ran out of memory"};
  } catch (const std::exception& thrown) {
    return {ErrorCode::internal, fmt::format("a host function threw: {}", thrown.what())};
  } catch (...) {
    return {ErrorCode::internal, "a host function threw something that is no std::exception"};
  }
}

}  // namespace xpu
