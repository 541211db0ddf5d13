#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <memory>

#include "check.hpp"
#include "device_allocator.hpp"
#include "devices.hpp"
#include "xpu/runtime/event.hpp"

// What PyTorch asks of a device type: current devices and streams, and events.
namespace xpu_torch {
namespace {

xpu::Event& event_of(void* event) { return *static_cast<xpu::Event*>(event); }

class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDeviceType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const int former = xpu::Device::current();
    if (device.index() != former) check(xpu::Device::set_current(device.index()));
    return device_of(former);
  }
  c10::Device getDevice() const override { return device_of(xpu::Device::current()); }
  void setDevice(c10::Device device) const override { check(xpu::Device::set_current(device.index())); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { static_cast<void>(xpu::Device::set_current(device.index())); }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count()); }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    c10::DeviceCapability capability;
    const xpu::DeviceProperties& properties = check(xpu::Device::get(resolve_device(device.index()))).properties();
    auto& types = capability.capability_data.supported_scalar_types;
    types.has_Half = properties.has_fp16;
    types.has_Double = types.has_ComplexDouble = properties.has_fp64;
    types.has_BFloat16 = properties.has_bfloat16_conversions;
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override { return to_torch(current_stream(device.index())); }
  c10::Stream getDefaultStream(c10::Device device) const override { return to_torch(check(xpu::Stream::default_stream(device.index()))); }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    const xpu::Stream stream = check(xpu::Stream::from_pool(priority, device.index()));
    if (const auto* const trace = gpu_trace()) (*trace)->trace_gpu_stream_creation(kDeviceType, address_of(stream.native_handle()));
    return to_torch(stream);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool is_high_priority) const override {
    return getNewStream(device, is_high_priority ? xpu::Stream::priority_range().greatest : 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const xpu::Stream wanted = to_xpu(stream);
    const xpu::Stream former = current_stream(wanted.device());
    const int device = xpu::Device::current();
    check(wanted.make_current());
    check(xpu::Device::set_current(device));  // PyTorch changes that by itself
    return to_torch(former);
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return to_xpu(stream).native_handle(); }
  bool queryStream(const c10::Stream& stream) const override { return check(to_xpu(stream).query()); }
  void synchronizeStream(const c10::Stream& stream) const override {
    const xpu::Stream waited = to_xpu(stream);
    if (const auto* const trace = gpu_trace()) (*trace)->trace_gpu_stream_synchronization(kDeviceType, address_of(waited.native_handle()));
    check(waited.synchronize());
  }
  bool isStreamCapturing(const c10::Stream& stream) const override { return to_xpu(stream).is_capturing(); }
  void synchronizeDevice(const c10::DeviceIndex device) const override { synchronize_device(device); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    device_allocator().recordStream(data, stream);
  }

  // An event of PyTorch's is the address of one of ours, which the first record makes.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device, const c10::EventFlag flag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device index ", static_cast<int>(device),
                " does not match recording stream's device index ", static_cast<int>(stream.device_index()), ".");
    const xpu::Stream recording = to_xpu(stream);
    const auto* const trace = gpu_trace();
    if (*event == nullptr) {
      auto made = std::make_unique<xpu::Event>(xpu::EventOptions{.timing = flag == c10::EventFlag::BACKEND_DEFAULT});
      check(made->record(recording));
      *event = made.release();
      if (trace != nullptr) (*trace)->trace_gpu_event_creation(kDeviceType, address_of(*event));
    } else {
      check(event_of(*event).record(recording));
    }
    if (trace != nullptr) (*trace)->trace_gpu_event_record(kDeviceType, address_of(*event), address_of(recording.native_handle()));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event == nullptr) return;
    if (const auto* const trace = gpu_trace()) (*trace)->trace_gpu_event_deletion(kDeviceType, address_of(event));
    delete static_cast<xpu::Event*>(event);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    const xpu::Stream waiting = to_xpu(stream);
    check(event_of(event).wait(waiting));
    if (const auto* const trace = gpu_trace())
      (*trace)->trace_gpu_event_wait(kDeviceType, address_of(event), address_of(waiting.native_handle()));
  }
  bool queryEvent(void* event) const override { return event == nullptr || check(event_of(event).query()); }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    if (const auto* const trace = gpu_trace()) (*trace)->trace_gpu_event_synchronization(kDeviceType, address_of(event));
    check(event_of(event).synchronize());
  }
  double elapsedTime(void* begin, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(begin != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
    return check(event_of(begin).elapsed_time(event_of(end)));
  }
};

// Never destroyed: guards work during exit.
const c10::impl::DeviceGuardImplRegistrar g_registered_guard(kDeviceType, new DeviceGuard());

}  // namespace

void synchronize_device(int device) {
  if (const auto* const trace = gpu_trace()) (*trace)->trace_gpu_device_synchronization(kDeviceType);
  check(xpu::synchronize(device));
}

}  // namespace xpu_torch
