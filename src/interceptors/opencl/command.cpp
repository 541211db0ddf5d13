#include "interceptors/opencl/command.hpp"

#include "interceptors/opencl/lifecycle.hpp"

namespace xpu::interceptors::opencl {
namespace {

// Calls of which the cost of one is measured. Prime, so that it does not always fall on the launches that also look for finished commands.
constexpr std::uint32_t kSampleEvery = 61;

}  // namespace

void Command::find_ring() noexcept {
  ring_ = nullptr;
  Queue* queue = queue_of(handle_);
  if (queue == nullptr || queue->is_on_device) return;
  ring_ = ring_for_this_thread(*queue);
  if (ring_ == nullptr) return;
  thread_->rings[ThreadState::slot_of<ThreadState::kRings>(handle_)] = ring_;
  if (Device* device = queue->device.load(std::memory_order_acquire)) device->clock.on_use();
  queue_exists();
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

void Command::find_kernel(cl_kernel handle) noexcept {
  Kernel* kernel = kernel_of(handle);
  if (kernel == nullptr) return;
  thread_->kernels[ThreadState::slot_of<ThreadState::kKernels>(handle)] = kernel;
  describe_kernel(*kernel, handle, ring_ != nullptr ? ring_->queue->device.load(std::memory_order_acquire) : nullptr);
  operation_.kernel = kernel->id;
}

void Command::read_clock() noexcept {
  ring_->queue->device.load(std::memory_order_acquire)->clock.read_if_due();
  operation_.enter_ns = now_ns();
}

void Command::begin_sample() noexcept {
  thread_->until_sample = kSampleEvery;
  is_sampled_ = true;
  entered_ns_ = now_ns();
}

void Command::end_sample(std::uint64_t returned_ns) noexcept {
  const std::uint64_t end_ns = now_ns();
  const std::uint64_t cost_ns = (called_ns_ - entered_ns_) + (end_ns - returned_ns);
  listener_->overhead(probe::OverheadType::time, end_ns - cost_ns, end_ns, kSampleEvery);
}

// The driver took a command for a queue that it did not tell about, or there is no memory for its ring.
void Command::accept_without_ring(std::uint64_t exit_ns) noexcept {
  find_ring();
  std::uint32_t sequence = 0;
  if (ring_ != nullptr) {
    operation_.queue = ring_->queue->id;
    sequence = ring_->queue->sequence.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  const bool is_expected = listener_->submitted(id_, operation_, {.exit_ns = exit_ns, .result = CL_SUCCESS, .queue_sequence = sequence});
  if (program_event_ == nullptr && event_ != nullptr) target().clReleaseEvent(event_);
  if (is_expected) lose(probe::LossCause::ring_full);
}

void Command::lose(probe::LossCause cause) noexcept {
  listener_->lost({.queue = operation_.queue, .cause = cause, .first = id_, .last = id_, .count = 1});
}

cl_int Command::finish_blocking(cl_int result) noexcept {
  finish(result);
  if (id_ == 0) return result;
  if ((wanted_ & probe::kWaits) != 0) {
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

void Call::end(cl_int code) noexcept {
  listener_->call({.enter_ns = enter_ns_, .exit_ns = now_ns(), .api = api_, .result = code, .operation = 0});
}

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
