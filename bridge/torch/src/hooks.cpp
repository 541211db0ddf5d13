#include "hooks.hpp"

#include <ATen/core/Generator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/detail/XPUHooksInterface.h>

#include "check.hpp"
#include "device_allocator.hpp"
#include "devices.hpp"
#include "generator.hpp"
#include "host_allocator.hpp"
#include "storage.hpp"
#include "xpu/base/version.hpp"
#include "xpu/runtime/runtime.hpp"

// What PyTorch's device-independent code asks of an accelerator.
namespace xpu_torch {

#if defined(XPU_TORCH_PRIVATEUSE1)
using HooksInterface = at::PrivateUse1HooksInterface;
#else
using HooksInterface = at::XPUHooksInterface;
#endif

class XPUHooks final : public HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return xpu::is_available(); }
  bool hasPrimaryContext(c10::DeviceIndex device) const override {
    return xpu::is_initialized() && resolve_device(device) < device_count();
  }
  void init() const override { check(xpu::initialize()); }
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(device_count()); }
  void setCurrentDevice(c10::DeviceIndex device) const override { check(xpu::Device::set_current(device)); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(xpu::Device::current()); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(check(xpu::Device::exchange_current(device)));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &host_allocator(); }
  c10::Device getDeviceFromPtr(void* data) const override {
    const int device = device_of_address(data);
    TORCH_CHECK(device >= 0, "ptr is not a device type pointer.");
    return device_of(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return new_generator(device); }

#if defined(XPU_TORCH_PRIVATEUSE1)
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override { resize_storage(storage, bytes); }
#else
  bool hasXPU() const override { return true; }
  std::string showConfig() const override { return "XPU runtime: libxpu " + std::string(xpu::version()); }
  std::int32_t getGlobalIdxFromDevice(const c10::Device& device) const override { return resolve_device(device.index()); }
  c10::DeviceIndex getNumGPUs() const override { return deviceCount(); }
  c10::DeviceIndex current_device() const override { return getCurrentDevice(); }
  void deviceSynchronize(c10::DeviceIndex device) const override { synchronize_device(device); }
#endif
};

#if defined(XPU_TORCH_PRIVATEUSE1)
namespace {
const bool g_registered_hooks = [] {
  at::RegisterPrivateUse1HooksInterface(new XPUHooks());
  return true;
}();
}  // namespace

bool hooks_are_ours() { return dynamic_cast<const XPUHooks*>(&at::detail::getPrivateUse1Hooks()) != nullptr; }
#else
bool hooks_are_ours() { return dynamic_cast<const XPUHooks*>(&at::detail::getXPUHooks()) != nullptr; }
#endif

}  // namespace xpu_torch

#if !defined(XPU_TORCH_PRIVATEUSE1)
// PyTorch looks for a class of this name, and the macro names types of its own namespace.
namespace at {
using xpu_torch::XPUHooks;
REGISTER_XPU_HOOKS(XPUHooks)
}  // namespace at
#endif
