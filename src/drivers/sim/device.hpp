#pragma once

#include <memory>
#include <utility>

#include "drivers/sim/timeline.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::drivers::sim {

/// What `enumerate` says of the device with this ordinal; the same in every process.
DeviceProperties properties_of(const Program& program, std::uint32_t ordinal);

class SimDevice final : public hal::Device {
 public:
  SimDevice(std::shared_ptr<Timeline> timeline, std::shared_ptr<DeviceState> state, std::uint64_t origin_ns);

  const hal::Capabilities& capabilities() const noexcept override { return capabilities_; }
  const DeviceProperties& properties() const noexcept override { return state_->properties; }
  const hal::ClockInfo& clock() const noexcept override { return clock_info_; }
  Result<hal::ClockReading> read_clock() override;
  hal::MemoryProvider* memory(hal::MemoryKind kind) noexcept override { return &state_->memory.of(kind); }
  /// All memory is the process's own.
  bool can_access_peer(const hal::Device&) const noexcept override { return true; }
  Result<std::unique_ptr<hal::Queue>> create_queue(const hal::QueueOptions& options) override;
  Result<hal::NativeQueueInfo> inspect_queue(void* native) override;
  Result<std::unique_ptr<hal::Queue>> adopt_queue(void* native, hal::CompletionSink* sink) override;
  Result<std::unique_ptr<hal::Event>> create_event(const hal::EventOptions& options) override;
  Result<std::unique_ptr<hal::Module>> create_module(const hal::ModuleSource& source) override;
  Result<> synchronize_blocking() override;

  Timeline& timeline() const noexcept { return *timeline_; }

 private:
  Result<> check_not_lost() const;

  const std::shared_ptr<Timeline> timeline_;
  const std::shared_ptr<DeviceState> state_;
  const std::uint64_t origin_ns_;
  const hal::Capabilities capabilities_;
  const hal::ClockInfo clock_info_;
};

}  // namespace xpu::drivers::sim
