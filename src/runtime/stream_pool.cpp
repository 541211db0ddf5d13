#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "runtime/callbacks.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

// Which streams there are: pools made on demand, external ones, ids, and what is current on a thread.

namespace xpu::runtime {
namespace {

constexpr int kNormalLevel = 1;
/// The native bit and three bits of type below the index.
constexpr int kTypeShift = 1, kIndexShift = 4;
constexpr StreamId kTypeMask = 7;
constexpr int kPoolIdBits = 16;
static_assert(pool_stream_id(kPriorities - 1, kStreamsPerPool - 1) < StreamId{1} << kPoolIdBits);

constinit thread_local std::array<StreamState*, kMaxDevices> t_current_streams{};

constexpr hal::QueuePriority priority_of_level(int level) { return static_cast<hal::QueuePriority>(kNormalLevel - level); }

Result<StreamState*> create_pool_stream(DeviceState& device, int level, int index) XPU_REQUIRES(device.mutex) {
  hal::Device* opened = device.device.load(std::memory_order_acquire);
  auto stream = std::make_unique<StreamState>();
  stream->device = &device;
  stream->id = pool_stream_id(level, index);
  stream->memory_id = stream->id + (std::int64_t{device.index} << kPoolIdBits);
  stream->priority = kNormalLevel - level;
  hal::QueueOptions options;
  options.priority = priority_of_level(level);
  options.sink = &stream->pending;
  XPU_TRY_ASSIGN(stream->queue, opened->create_queue(options));
  stream->native_handle = stream->queue->native_handle();
  add_stream(device, *stream);
  return stream.release();
}

Result<StreamState*> adopt(DeviceState& device, void* native) XPU_REQUIRES(device.mutex) {
  hal::Device* opened = device.device.load(std::memory_order_acquire);
  XPU_TRY_ASSIGN(const hal::NativeQueueInfo info, opened->inspect_queue(native));
  if (!info.is_in_order) return Error{ErrorCode::invalid_argument, "External SYCL queue must be in-order."};
  if (!info.is_same_context) {
    return Error{ErrorCode::invalid_argument, "External SYCL queue must be created with the same context as the PyTorch XPU used."};
  }
  if (info.device != device.ordinal) {
    return Error{ErrorCode::invalid_argument, "External SYCL queue doesn't match the given device index."};
  }
  auto stream = std::make_unique<StreamState>();
  stream->device = &device;
  stream->id = static_cast<StreamId>(reinterpret_cast<std::uintptr_t>(native));
  // Another queue may be at this address later.
  static constinit std::atomic<std::int64_t> adopted{0};
  stream->memory_id = -1 - adopted.fetch_add(1, std::memory_order_relaxed);
  stream->priority = static_cast<int>(info.priority);
  stream->is_external = true;
  XPU_TRY_ASSIGN(stream->queue, opened->adopt_queue(native, &stream->pending));
  stream->native_handle = native;
  add_stream(device, *stream);
  return stream.release();
}

/// The stream round a native queue, with one holder more.
Result<StreamState*> hold_external(void* native, int index) {
  XPU_TRY_ASSIGN(DeviceState * device, use_device(index));
  if (native == nullptr) return Error{ErrorCode::invalid_argument, "External sycl::queue* must not be a nullptr."};
  if (!device->device.load(std::memory_order_acquire)->capabilities().native_queues) {
    return Error{ErrorCode::unsupported, fmt::format("driver {} takes no queues that were made elsewhere", device->driver->name())};
  }
  const probe::Scope scope;
  const base::MutexLock lock(device->mutex);
  const auto known = device->externals.find(native);
  if (known != device->externals.end()) {
    ++known->second.holders;
    return known->second.stream;
  }
  XPU_TRY_ASSIGN(StreamState * stream, adopt(*device, native));
  device->externals[native] = {stream, 1};
  return stream;
}

/// One holder less; after the last one the stream is refused everywhere.
void let_go_of_external(StreamState& stream) noexcept {
  if (!is_running()) return;
  DeviceState& device = *stream.device;
  {
    const base::MutexLock lock(device.mutex);
    const auto known = device.externals.find(stream.native_handle);
    if (known == device.externals.end() || --known->second.holders != 0) return;
    device.externals.erase(known);
  }
  {
    // From here on nothing is submitted to it.
    const SubmissionGuard guard(stream.lock);
    stream.is_released.store(true, std::memory_order_release);
  }
  wait_keeping_error(stream);
  // The stream's state stays: values that name it may be anywhere.
  std::shared_ptr<hal::Queue> released;
  {
    const base::MutexLock lock(stream.error_mutex);
    released.swap(stream.queue);
  }
  const probe::Scope scope;
  released.reset();
  publish_stream_end(stream);
}

Error unrecognized(StreamId id, int device) {
  return {ErrorCode::invalid_argument,
          fmt::format(
              "Unrecognized stream stream {} on device xpu:{} (I didn't recognize the stream type, {}). Did you manufacture the StreamId "
              "yourself?  Don't do that;",
              id, device, id >> kTypeShift & kTypeMask)};
}

}  // namespace

void add_stream(DeviceState& device, StreamState& stream) {
  stream.probe_id = probe::new_object_id(probe::ObjectKind::queue);
  stream.pending.set_valid_bits(device.device.load(std::memory_order_acquire)->clock().valid_bits);
  stream.next = device.first_stream.load(std::memory_order_relaxed);
  device.first_stream.store(&stream, std::memory_order_release);
  // After it can be found: a subscriber that comes between the two hears of it twice, and never not at all.
  publish_stream(stream);
}

Result<StreamState*> pool_stream(DeviceState& device, int level, int index) {
  std::atomic<StreamState*>& place = device.streams[static_cast<std::size_t>(level)][static_cast<std::size_t>(index)];
  if (StreamState* stream = place.load(std::memory_order_acquire)) return stream;
  StreamState* made = nullptr;
  {
    PublishedCall call(&ApiNames::create_stream);
    const probe::Scope scope;
    const base::MutexLock lock(device.mutex);
    if (StreamState* stream = place.load(std::memory_order_acquire)) return stream;
    XPU_TRY_ASSIGN(made, call.finish(create_pool_stream(device, level, index)));
    place.store(made, std::memory_order_release);
  }
  reached(gpu_trace::Point::stream_creation, made->native_handle);
  return made;
}

Result<StreamState*> current_stream(DeviceState& device) {
  if (StreamState* stream = t_current_streams[static_cast<std::size_t>(device.index)]) return stream;
  return pool_stream(device, kNormalLevel, kDefaultStreamIndex);
}

void set_current_stream(StreamState& stream) noexcept { t_current_streams[static_cast<std::size_t>(stream.device->index)] = &stream; }

}  // namespace xpu::runtime

namespace xpu {

using namespace runtime;

Result<Stream> Stream::from_pool(int priority, int device_index) {
  XPU_TRY_ASSIGN(DeviceState * device, use_device(device_index));
  const int level = kNormalLevel - std::clamp(priority, priority_range().greatest, priority_range().least);
  const std::uint32_t turn = device->next_stream[static_cast<std::size_t>(level)].fetch_add(1, std::memory_order_relaxed);
  XPU_TRY_ASSIGN(StreamState * stream, pool_stream(*device, level, static_cast<int>(turn % kStreamsPerPool)));
  return Stream(stream);
}

Result<Stream> Stream::default_stream(int device_index) {
  XPU_TRY_ASSIGN(DeviceState * device, use_device(device_index));
  XPU_TRY_ASSIGN(StreamState * stream, pool_stream(*device, kNormalLevel, kDefaultStreamIndex));
  return Stream(stream);
}

Result<Stream> Stream::current(int device_index) {
  XPU_TRY_ASSIGN(DeviceState * device, use_device(device_index));
  XPU_TRY_ASSIGN(StreamState * stream, current_stream(*device));
  return Stream(stream);
}

Result<Stream> Stream::from_id(StreamId id, int device_index) {
  XPU_TRY_ASSIGN(DeviceState * device, use_device(device_index));
  if (id == 0) return default_stream(device_index);
  if (id < 0) return Error{ErrorCode::invalid_argument, fmt::format("invalid StreamId: {}", id)};
  if (id % 2 == 0) {
    const base::MutexLock lock(device->mutex);
    const auto known = device->externals.find(reinterpret_cast<void*>(id));
    if (known == device->externals.end()) return unrecognized(id, device->index);
    return Stream(known->second.stream);
  }
  const StreamId level = id >> kTypeShift & kTypeMask, index = id >> kIndexShift;
  if (level >= kPriorities) return unrecognized(id, device->index);
  if (index >= kStreamsPerPool) return Error{ErrorCode::invalid_argument, fmt::format("invalid StreamId: {}", id)};
  XPU_TRY_ASSIGN(StreamState * stream, pool_stream(*device, static_cast<int>(level), static_cast<int>(index)));
  return Stream(stream);
}

Result<Stream> Stream::from_external(void* native_queue, int device) {
  XPU_TRY_ASSIGN(StreamState * stream, hold_external(native_queue, device));
  return Stream(stream);
}

Result<> Stream::make_current() const {
  XPU_TRY(ensure_initialized());
  XPU_TRY(check_not_released(*state_));
  set_current_stream(*state_);
  set_current_device(state_->device->index);
  return {};
}

Result<ExternalStream> ExternalStream::wrap(void* native_queue, int device) {
  XPU_TRY_ASSIGN(const Stream stream, Stream::from_external(native_queue, device));
  return ExternalStream(stream);
}

ExternalStream::~ExternalStream() {
  if (stream_) let_go_of_external(*stream_->state_);
}

Result<StreamGuard> StreamGuard::make(const Stream& stream) {
  XPU_TRY_ASSIGN(const Stream original, Stream::current(stream.device()));
  const int original_device = current_device();
  XPU_TRY(stream.make_current());
  return StreamGuard(original, original_device);
}

StreamGuard::StreamGuard(StreamGuard&& other) noexcept
    : original_stream_(other.original_stream_), original_device_(std::exchange(other.original_device_, -1)) {}

StreamGuard::~StreamGuard() {
  if (original_device_ < 0) return;
  set_current_stream(*original_stream_.state_);
  set_current_device(original_device_);
}

}  // namespace xpu
