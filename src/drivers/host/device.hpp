#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/host/driver_state.hpp"
#include "drivers/host/queue_state.hpp"
#include "hal/host_memory.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::drivers::host {

class HostDevice final : public hal::Device {
 public:
  HostDevice(std::shared_ptr<DriverState> driver, std::uint32_t ordinal);

  const hal::Capabilities& capabilities() const noexcept override { return capabilities_; }
  const DeviceProperties& properties() const noexcept override { return properties_; }
  const hal::ClockInfo& clock() const noexcept override { return clock_; }
  Result<hal::ClockReading> read_clock() override;
  hal::MemoryProvider* memory(hal::MemoryKind kind) noexcept override;
  bool can_access_peer(const hal::Device& /*peer*/) const noexcept override { return true; }  // all of it is memory of the process

  Result<std::unique_ptr<hal::Queue>> create_queue(const hal::QueueOptions& options) override;
  Result<hal::NativeQueueInfo> inspect_queue(void* native) override;
  Result<std::unique_ptr<hal::Queue>> adopt_queue(void* native, hal::CompletionSink* sink) override;
  Result<std::unique_ptr<hal::Event>> create_event(const hal::EventOptions& options) override;
  Result<std::unique_ptr<hal::Module>> create_module(const hal::ModuleSource& source) override;
  Result<> synchronize_blocking() override;

 private:
  const std::shared_ptr<DriverState> driver_;
  const std::uint32_t ordinal_;
  const DeviceProperties properties_;
  const hal::Capabilities capabilities_;
  const hal::ClockInfo clock_;
  hal::HostMemoryProvider device_memory_, host_memory_, shared_memory_;
};

}  // namespace xpu::drivers::host
