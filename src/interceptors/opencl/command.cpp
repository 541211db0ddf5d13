#include "interceptors/opencl/command.hpp"

#include "interceptors/opencl/lifecycle.hpp"

namespace xpu::interceptors::opencl {
namespace {

// Calls of which the cost of one is measured. Prime, so that it does not always fall on the launches that also look for finished commands.
constexpr std::uint32_t kSampleEvery = 61;

template <std::size_t size>
std::size_t slot_of(const void* handle) noexcept {
  return hash_of(handle) % size;
}

}  // namespace

Command::Command(Entry entry, probe::Command kind, cl_command_queue queue, cl_event* program_event) noexcept
    : listener_(listener_or_null()), handle_(queue), program_event_(program_event) {
  if (listener_ == nullptr) return;
  operation_.api = api_id(entry);
  if (probe::inside_scope()) {
    pass_on();
    return;
  }
  thread_ = this_thread();
  if (thread_ != nullptr) {
    is_sampled_ = ++thread_->launches % kSampleEvery == 0;
    if (is_sampled_) entered_ns_ = now_ns();
    CommandRing* ring = thread_->rings[slot_of<ThreadState::kRings>(queue)];
    if (ring != nullptr && ring->queue->is_for(queue)) {
      ring_ = ring;
    } else {
      find_ring();
    }
  }
  operation_.command = kind;
  if (program_event != nullptr) operation_.flags = probe::kUserEvent;
  if (ring_ == nullptr) return;
  operation_.queue = ring_->queue->id;
  if (ring_->queue->is_out_of_order.load(std::memory_order_relaxed)) operation_.flags |= probe::kOutOfOrderQueue;
}

void Command::find_ring() noexcept {
  Queue* queue = queue_of(handle_);
  if (queue == nullptr || queue->is_on_device || thread_ == nullptr) return;
  ring_ = ring_for_this_thread(*queue);
  if (ring_ == nullptr) return;
  thread_->rings[slot_of<ThreadState::kRings>(handle_)] = ring_;
  if (queue->device != nullptr) queue->device->clock.on_use();
  start_harvester();
}

// Whoever opened the scope publishes the work; the call is all that is left to say.
void Command::pass_on() noexcept {
  if (wants(*listener_, probe::kCalls)) {
    call_listener_ = listener_;
    operation_.enter_ns = now_ns();
    call_listener_->call_begin(operation_.api, operation_.enter_ns);
  }
  listener_ = nullptr;
}

cl_int Command::pass(cl_int result) noexcept {
  if (call_listener_ != nullptr) {
    call_listener_->call({.enter_ns = operation_.enter_ns, .exit_ns = now_ns(), .api = operation_.api, .result = result, .operation = 0});
  }
  return result;
}

void Command::set_kernel(cl_kernel handle) noexcept {
  Kernel* kernel = thread_ != nullptr ? thread_->kernels[slot_of<ThreadState::kKernels>(handle)] : nullptr;
  if (kernel == nullptr || !kernel->is_for(handle)) {
    kernel = kernel_of(handle);
    if (kernel == nullptr) return;
    if (thread_ != nullptr) thread_->kernels[slot_of<ThreadState::kKernels>(handle)] = kernel;
  }
  if (kernel->description.load(std::memory_order_acquire) != Kernel::Description::published) {
    describe_kernel(*kernel, handle, ring_ != nullptr ? ring_->queue->device : nullptr);
  }
  operation_.kernel = kernel->id;
}

cl_event* Command::start() noexcept {
  is_watched_ = ring_ != nullptr && ring_->wants_watch();
  if (is_watched_) ring_->prepare_watch();
  operation_.enter_ns = now_ns();
  id_ = listener_->begin(operation_);
  if (id_ == 0) return program_event_;
  if (wants(*listener_, probe::kCalls)) listener_->call_begin(operation_.api, operation_.enter_ns);
  event_ = untouched();
  if (is_sampled_) called_ns_ = now_ns();
  return &event_;
}

cl_int Command::finish(cl_int result) noexcept {
  if (id_ == 0) return result;
  const bool wants_exit = wants(*listener_, probe::kHostExitTimes);
  const std::uint64_t returned_ns = wants_exit || is_sampled_ || is_watched_ ? now_ns() : 0;
  const std::uint64_t exit_ns = wants_exit ? returned_ns : 0;
  if (event_ == untouched()) {
    event_ = nullptr;
  } else if (program_event_ != nullptr) {
    *program_event_ = event_;
  }
  if (result == CL_SUCCESS) {
    accepted(returned_ns, exit_ns);
  } else {
    listener_->submitted(id_, operation_, {.exit_ns = exit_ns, .result = result, .queue_sequence = 0});
  }
  if (is_sampled_) {
    const std::uint64_t end_ns = now_ns();
    const std::uint64_t cost_ns = (called_ns_ - entered_ns_) + (end_ns - returned_ns);
    listener_->overhead(end_ns - cost_ns, end_ns, kSampleEvery);
  }
  return result;
}

void Command::accepted(std::uint64_t returned_ns, std::uint64_t exit_ns) noexcept {
  if (ring_ == nullptr) find_ring();  // the driver took a command for a queue that it did not tell about
  std::uint32_t sequence = 0;
  if (ring_ != nullptr) {
    operation_.queue = ring_->queue->id;
    sequence = ring_->queue->sequence.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  const bool is_expected = listener_->submitted(id_, operation_, {.exit_ns = exit_ns, .result = CL_SUCCESS, .queue_sequence = sequence});
  const bool is_ours = program_event_ == nullptr;
  if (event_ == nullptr) {
    if (is_expected) lose(probe::LossCause::driver_refused_event);
    return;
  }
  if (!is_expected || ring_ == nullptr) {
    if (is_ours) target().clReleaseEvent(event_);
    if (is_expected) lose(probe::LossCause::ring_full);
    return;
  }
  if (!is_ours && target().clRetainEvent(event_) != CL_SUCCESS) {
    lose(probe::LossCause::driver_refused_event);
    return;
  }
  if (is_watched_) ring_->watch(id_, returned_ns);
  if (ring_->push({id_, event_})) return;
  target().clReleaseEvent(event_);
  lose(probe::LossCause::ring_full);
}

void Command::lose(probe::LossCause cause) noexcept {
  listener_->lost({.queue = operation_.queue, .cause = cause, .first = id_, .last = id_, .count = 1});
}

cl_int Command::finish_blocking(cl_int result) noexcept {
  finish(result);
  if (id_ == 0) return result;
  if (wants(*listener_, probe::kWaits)) {
    listener_->wait({.enter_ns = operation_.enter_ns,
                     .exit_ns = now_ns(),
                     .handle = reinterpret_cast<std::uintptr_t>(handle_),
                     .type = probe::WaitType::blocking_call,
                     .api = operation_.api,
                     .context = ring_ != nullptr ? id_of(ring_->queue->context) : 0,
                     .queue = operation_.queue,
                     .result = result});
  }
  if (ring_ != nullptr && result == CL_SUCCESS) drain_queue(*ring_->queue);
  return result;
}

// ---- calls and waits

void Call::begin(const probe::Subscriber& listener, Entry entry) noexcept {
  listener_ = &listener;
  api_ = api_id(entry);
  enter_ns_ = now_ns();
  listener.call_begin(api_, enter_ns_);
}

void Call::end(cl_int code) noexcept { listener_->call({.enter_ns = enter_ns_, .exit_ns = now_ns(), .api = api_, .result = code, .operation = 0}); }

WaitCall::WaitCall(Entry entry, probe::WaitType type) noexcept : type_(type) {
  const probe::Subscriber* listener = listener_or_null();
  if (listener == nullptr || probe::inside_scope() || !wants(*listener, probe::kWaits)) return;
  listener_ = listener;
  api_ = api_id(entry);
  enter_ns_ = now_ns();
  if (wants(*listener, probe::kCalls)) listener->call_begin(api_, enter_ns_);
}

cl_int WaitCall::finish(cl_int result, const void* handle, const Queue* queue, std::uint32_t wait_count) noexcept {
  if (listener_ == nullptr) return result;
  listener_->wait({.enter_ns = enter_ns_,
                   .exit_ns = now_ns(),
                   .handle = reinterpret_cast<std::uintptr_t>(handle),
                   .type = type_,
                   .api = api_,
                   .context = queue != nullptr ? id_of(queue->context) : 0,
                   .queue = queue != nullptr ? queue->id : 0,
                   .result = result,
                   .wait_count = wait_count});
  return result;
}

}  // namespace xpu::interceptors::opencl
