#include "drivers/host/driver.hpp"

#include <utility>
#include <vector>

#include "drivers/host/device.hpp"
#include "drivers/host/driver_state.hpp"
#include "drivers/host/futex.hpp"
#include "drivers/host/processor.hpp"
#include "drivers/host/queue_registry.hpp"

namespace xpu::drivers::host {
namespace {

class HostDriver final : public hal::Driver {
 public:
  explicit HostDriver(Result<Options> options) : setup_(make_state(std::move(options))) {}

  const char* name() const noexcept override { return "host"; }

  Result<std::vector<DeviceProperties>> enumerate() override {
    XPU_TRY_ASSIGN(const std::shared_ptr<DriverState> state, setup());
    std::vector<DeviceProperties> devices;
    for (std::uint32_t ordinal = 0; ordinal < state->options.devices; ++ordinal) {
      devices.push_back(device_properties(state->options, ordinal));
    }
    return devices;
  }

  Result<std::unique_ptr<hal::Device>> open_device(std::uint32_t ordinal) override {
    XPU_TRY_ASSIGN(std::shared_ptr<DriverState> state, setup());
    return std::unique_ptr<hal::Device>(new HostDevice(std::move(state), ordinal));
  }

  void prepare_for_exit(std::uint32_t limit_ms) noexcept override {
    if (!setup_) return;
    DriverState& state = **setup_;
    state.is_exiting.store(true, std::memory_order_relaxed);
    const std::uint64_t deadline_ns = now_ns() + std::uint64_t{limit_ms} * 1'000'000;
    struct Closed {
      std::shared_ptr<QueueState> queue;
      OperationFifo::Rest rest;
    };
    std::vector<Closed> closed;
    // All of them first: dropping what one queue holds lets another one go on that waits for it.
    for (std::shared_ptr<QueueState>& queue : queue_states_of(state)) {
      const OperationFifo::Rest rest = queue->close();
      closed.push_back({std::move(queue), rest});
    }
    for (const Closed& each : closed) each.queue->drop_rest(each.rest);
    for (const Closed& each : closed) {
      // An operation may be what ends the process.
      if (!UserCode::is_running(*each.queue)) each.queue->wait_until_ended(deadline_ns);
    }
  }

 private:
  static Result<std::shared_ptr<DriverState>> make_state(Result<Options> options) {
    XPU_TRY_ASSIGN(const Options chosen, std::move(options));
    return std::make_shared<DriverState>(with_defaults(chosen));
  }
  Result<std::shared_ptr<DriverState>> setup() const { return setup_; }

  const Result<std::shared_ptr<DriverState>> setup_;
};

}  // namespace

std::unique_ptr<hal::Driver> create_driver() { return std::make_unique<HostDriver>(read_options()); }
std::unique_ptr<hal::Driver> create_driver(const Options& options) { return std::make_unique<HostDriver>(options); }

}  // namespace xpu::drivers::host
