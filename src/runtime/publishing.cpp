#include "runtime/publishing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "base/mutex.hpp"
#include "runtime/state.hpp"

namespace xpu::runtime {
constinit ApiNames g_api_names{};

namespace {

// A reading's age adds to the bound of a time; a tenth of a second keeps it small where clocks drift.
constexpr std::uint64_t kClockDueNs = 100'000'000;

ApiNames intern_api_names() {
  ApiNames names;
  names.launch = probe::intern("xpu::Stream::launch");
  names.copy = probe::intern("xpu::Stream::copy");
  names.fill = probe::intern("xpu::Stream::fill");
  names.run = probe::intern("xpu::Stream::run");
  names.run_blocking = probe::intern("xpu::Stream::run_blocking");
  names.synchronize_stream = probe::intern("xpu::Stream::synchronize");
  names.synchronize_device = probe::intern("xpu::Device::synchronize");
  names.synchronize_event = probe::intern("xpu::Event::synchronize");
  names.query_stream = probe::intern("xpu::Stream::query");
  names.query_event = probe::intern("xpu::Event::query");
  names.record_event = probe::intern("xpu::Event::record");
  names.wait_event = probe::intern("xpu::Event::wait");
  names.allocate = probe::intern("xpu::Buffer::allocate");
  names.free = probe::intern("xpu::Buffer::~Buffer");
  names.create_stream = probe::intern("xpu::Stream::from_pool");
  names.create_module = probe::intern("xpu::Module::from");
  return names;
}

/// Kernels by device and name, in lists that never become shorter, so that they can be read without the lock: by every host function, and
/// from within `subscribe`.
struct NamedKernel {
  probe::Id id;
  const DeviceState* device;
  std::string name;
  std::uint32_t local_bytes, private_bytes, sub_group;
  NamedKernel* next;
};
constinit base::Mutex g_kernels_mutex;
constinit std::array<std::atomic<NamedKernel*>, 256> g_kernels{};

void publish_kernel(const probe::Subscriber& subscriber, const NamedKernel& kernel) {
  probe::KernelDescription description;
  description.name = kernel.name;
  description.device = kernel.device->probe_id;
  description.local_bytes = kernel.local_bytes;
  description.private_bytes = kernel.private_bytes;
  description.sub_group = kernel.sub_group;
  subscriber.object(probe::ObjectKind::kernel, kernel.id, probe::ObjectEvent::created, &description);
}

void publish_device_to(const probe::Subscriber& subscriber, const DeviceState& device, const hal::Device& opened) {
  const DeviceProperties& properties = device.properties;
  const hal::ClockInfo& clock = opened.clock();
  probe::DeviceDescription description;
  description.name = properties.name;
  description.driver = properties.platform_name;
  std::copy(properties.uuid.bytes.begin(), properties.uuid.bytes.end(), description.uuid);
  description.pci_domain = properties.pci.domain;
  description.pci[0] = properties.pci.bus;
  description.pci[1] = properties.pci.device;
  description.pci[2] = properties.pci.function;
  description.tick_numerator = clock.tick_numerator;
  description.tick_denominator = clock.tick_denominator;
  description.valid_bits = clock.valid_bits;
  description.clock_domain = clock.same_as;
  description.vendor = properties.vendor;
  description.driver_version = properties.driver_version;
  description.total_memory_bytes = properties.total_memory_bytes;
  description.max_allocation_bytes = properties.max_allocation_bytes;
  description.local_memory_bytes = properties.local_memory_bytes;
  description.max_work_group_size = properties.max_work_group_size;
  description.compute_units = properties.max_compute_units;
  description.max_clock_mhz = properties.max_clock_frequency_mhz;
  subscriber.object(probe::ObjectKind::device, device.probe_id, probe::ObjectEvent::created, &description);
  const probe::ContextDescription context{0, 1, &device.probe_id};
  subscriber.object(probe::ObjectKind::context, device.context_id, probe::ObjectEvent::created, &context);
}

void publish_stream_to(const probe::Subscriber& subscriber, const StreamState& stream) {
  probe::QueueDescription description;
  description.context = stream.device->context_id;
  description.device = stream.device->probe_id;
  description.native = reinterpret_cast<std::uintptr_t>(stream.native_handle);
  description.priority = stream.priority;
  description.published_before = stream.published.load(std::memory_order_relaxed);
  subscriber.object(probe::ObjectKind::queue, stream.probe_id, probe::ObjectEvent::created, &description);
}

/// Every living object. Takes no lock: `subscribe` calls it under one of the probe.
void publish_everything() {
  const probe::Subscriber* subscriber = probe::subscriber();
  // Before the start there is nothing, and a lock to be taken; a forked child has no devices, and nothing of the parent's is told for it.
  const Phase phase = g_phase.load(std::memory_order_acquire);
  if (subscriber == nullptr || phase == Phase::cold || phase == Phase::bad_fork) return;
  for (DeviceState* device : enumeration().devices) {
    const hal::Device* opened = device->device.load(std::memory_order_acquire);
    if (opened == nullptr) continue;
    publish_device_to(*subscriber, *device, *opened);
    device->last_clock_reading_ns.store(0, std::memory_order_relaxed);
    for_each_stream(*device, [&](const StreamState& stream) {
      if (!stream.is_released.load(std::memory_order_acquire)) publish_stream_to(*subscriber, stream);
    });
  }
  for (const std::atomic<NamedKernel*>& list : g_kernels) {
    for (const NamedKernel* kernel = list.load(std::memory_order_acquire); kernel != nullptr; kernel = kernel->next) {
      publish_kernel(*subscriber, *kernel);
    }
  }
}

void read_clock(DeviceState& device, const probe::Subscriber& subscriber) noexcept {
  hal::Device* opened = device.device.load(std::memory_order_acquire);
  const probe::Scope scope;
  const std::uint64_t begin_ns = now_ns();
  const auto reading = opened->read_clock();
  subscriber.overhead(probe::OverheadType::driver, begin_ns, now_ns(), 1);
  if (!reading) return;
  probe::ClockReading published;
  published.host_before_ns = reading->host_before_ns;
  published.host_after_ns = reading->host_after_ns;
  published.device_ticks = reading->ticks;
  published.device = device.probe_id;
  published.method = opened->clock().same_as == ClockDomain::unknown ? probe::ClockMethod::device_timer : probe::ClockMethod::native;
  subscriber.clock(published);
}

/// The clocks, and what has ended: some drivers hand that over only when they are asked.
void publish_what_has_ended() {
  const probe::Subscriber* subscriber = probe::subscriber();
  const Phase phase = g_phase.load(std::memory_order_acquire);
  if (subscriber == nullptr || phase == Phase::cold || phase == Phase::bad_fork) return;
  for (DeviceState* device : enumeration().devices) {
    if (device->device.load(std::memory_order_acquire) == nullptr) continue;
    for_each_stream(*device, [](StreamState& stream) {
      if (stream.is_released.load(std::memory_order_acquire)) return;
      const probe::Scope scope;
      if (const std::shared_ptr<hal::Queue> queue = hold_queue(stream)) static_cast<void>(queue->query());
    });
    read_clock(*device, *subscriber);
  }
}

/// What goes no further is said at least.
void publish_unexpected(const DeviceState& device, std::uint64_t records, const probe::Subscriber& subscriber) {
  const std::string text = fmt::format("driver {} delivered {} records of operations of device {} that it had delivered before",
                                       device.driver->name(), records, device.index);
  subscriber.annotate({.time_ns = now_ns(), .range = 0, .type = probe::AnnotationType::mark, .text = text, .value = 0});
}

}  // namespace

std::int32_t result_code(const Error& error) noexcept {
  const auto native = static_cast<std::int32_t>(error.native_code);
  return native != 0 && native == error.native_code ? native : -1 - static_cast<std::int32_t>(error.code);
}

probe::Id kernel_id(const DeviceState& device, std::string_view name, const hal::KernelInfo* info) {
  std::atomic<NamedKernel*>& list = g_kernels[std::hash<std::string_view>()(name) % g_kernels.size()];
  const auto find = [&] {
    NamedKernel* kernel = list.load(std::memory_order_acquire);
    while (kernel != nullptr && (kernel->device != &device || kernel->name != name)) kernel = kernel->next;
    return kernel;
  };
  if (const NamedKernel* known = find()) return known->id;
  const base::MutexLock lock(g_kernels_mutex);
  if (const NamedKernel* known = find()) return known->id;
  auto* made = new NamedKernel{.id = probe::new_object_id(probe::ObjectKind::kernel),
                               .device = &device,
                               .name = std::string(name),
                               .local_bytes = info == nullptr ? 0 : info->facts.local_memory_bytes,
                               .private_bytes = info == nullptr ? 0 : info->private_bytes,
                               .sub_group = info == nullptr ? 0 : info->sub_group_size,
                               .next = list.load(std::memory_order_relaxed)};
  list.store(made, std::memory_order_release);
  if (const probe::Subscriber* subscriber = probe::subscriber()) publish_kernel(*subscriber, *made);
  return made->id;
}

void publish_device(const DeviceState& device, const hal::Device& opened) {
  if (const probe::Subscriber* subscriber = probe::subscriber()) publish_device_to(*subscriber, device, opened);
}

void publish_stream(const StreamState& stream) {
  if (const probe::Subscriber* subscriber = probe::subscriber()) publish_stream_to(*subscriber, stream);
}

void publish_stream_end(const StreamState& stream) noexcept {
  if (const probe::Subscriber* subscriber = probe::subscriber()) {
    subscriber->object(probe::ObjectKind::queue, stream.probe_id, probe::ObjectEvent::destroyed, nullptr);
  }
}

bool publish_clock_if_due(DeviceState& device, std::uint64_t now_ns) noexcept {
  std::uint64_t last = device.last_clock_reading_ns.load(std::memory_order_relaxed);
  if (last != 0 && now_ns - last < kClockDueNs) [[likely]]
    return false;
  const probe::Subscriber* subscriber = probe::subscriber();
  // One thread reads.
  if (subscriber == nullptr || !device.last_clock_reading_ns.compare_exchange_strong(last, now_ns, std::memory_order_relaxed)) return false;
  read_clock(device, *subscriber);
  return true;
}

void publish_end() noexcept {
  const probe::Subscriber* subscriber = probe::subscriber();
  if (subscriber == nullptr) return;
  for (DeviceState* device : enumeration().devices) {
    if (device->device.load(std::memory_order_acquire) == nullptr) continue;
    read_clock(*device, *subscriber);
    std::uint64_t unexpected = 0;
    for_each_stream(*device, [&](StreamState& stream) {
      unexpected += stream.pending.unexpected_records();
      const std::shared_ptr<hal::Queue> queue = hold_queue(stream);
      const auto idle = queue == nullptr ? Result<bool>(true) : queue->query();
      if (idle && *idle) stream.pending.publish_lost();
    });
    if (unexpected != 0) publish_unexpected(*device, unexpected, *subscriber);
  }
}

ApiNames register_publishing() noexcept {
  static constinit std::atomic<bool> is_registered{false};
  if (!is_registered.exchange(true)) {
    probe::register_publisher(publish_everything);
    probe::register_harvester(publish_what_has_ended);
    probe::announce_publisher(probe::kRuntimePublishes);
  }
  return intern_api_names();
}

void set_api_names(const ApiNames& names) noexcept { g_api_names = names; }

PublishedCall::PublishedCall(probe::Id ApiNames::* api) noexcept : subscriber_(listener()) {
  if (subscriber_ == nullptr) return;
  if ((subscriber_->wanted.load(std::memory_order_relaxed) & probe::kCalls) == 0) {
    subscriber_ = nullptr;
    return;
  }
  api_ = g_api_names.*api;
  wait_.enter_ns = now_ns();
  subscriber_->call_begin(api_, wait_.enter_ns);
}

PublishedCall::PublishedCall(probe::Id ApiNames::* api, probe::WaitType type, const DeviceState& device, const StreamState* stream,
                             const void* handle) noexcept
    : subscriber_(listener()), is_wait_(true) {
  if (subscriber_ == nullptr) return;
  const std::uint32_t wanted = subscriber_->wanted.load(std::memory_order_relaxed);
  if ((wanted & probe::kWaits) == 0) {
    subscriber_ = nullptr;
    return;
  }
  api_ = g_api_names.*api;
  wait_.type = type;
  wait_.api = api_;
  wait_.context = device.context_id;
  wait_.queue = stream == nullptr ? 0 : stream->probe_id;
  wait_.handle = reinterpret_cast<std::uintptr_t>(handle);
  wait_.wait_count = type == probe::WaitType::events || type == probe::WaitType::stream_on_event ? 1 : 0;
  wait_.enter_ns = now_ns();
  if ((wanted & probe::kCalls) != 0 && type != probe::WaitType::blocking_call) subscriber_->call_begin(api_, wait_.enter_ns);
}

PublishedCall::~PublishedCall() {
  if (subscriber_ == nullptr) return;
  wait_.exit_ns = now_ns();
  wait_.result = result_;
  if (is_wait_) {
    subscriber_->wait(wait_);
  } else {
    subscriber_->call({wait_.enter_ns, wait_.exit_ns, api_, result_, 0});
  }
}

}  // namespace xpu::runtime
