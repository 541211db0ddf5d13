#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/probe.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/queue.hpp"

/// What the runtime tells the probe. Nothing here is called while nobody listens, but for objects, whose ids are given in any case.
namespace xpu::runtime {

struct DeviceState;
struct StreamState;

/// Names of the runtime's functions as they appear in recordings; interned at the first use.
struct ApiNames {
  probe::Id launch, copy, fill, run, synchronize_stream, synchronize_device, synchronize_event, query_stream, query_event, record_event,
      wait_event, wait_stream, allocate, free, create_stream, create_module;
};
const ApiNames& api_names();

/// The subscriber, unless this thread's work has another source already (`probe::Scope`).
inline const probe::Subscriber* listener() noexcept {
  const probe::Subscriber* subscriber = probe::subscriber();
  return subscriber == nullptr || probe::inside_scope() ? nullptr : subscriber;
}

/// The id of a kernel of this device and name: one for all kernels that share both.
probe::Id kernel_id(const DeviceState& device, std::string_view name);

void publish_device(const DeviceState& device, const hal::Device& opened);
void publish_stream(const StreamState& stream);
/// A reading of the device's clock when the last one is older than a tenth of a second.
void publish_clock_if_due(DeviceState& device) noexcept;
/// At exit: last readings, and what is still pending.
void publish_end() noexcept;
/// Hands everything that is alive to whoever subscribes later.
void register_publishing() noexcept;

/// Where addresses lie, for the records of copies: the runtime's own allocations.
void remember_memory(const void* address, std::size_t bytes, hal::MemoryKind kind, const DeviceState& device);
/// False when it is none.
bool forget_memory(const void* address) noexcept;
probe::CopyDetail describe_copy(const DeviceState& device, const void* destination, const void* source, std::size_t bytes) noexcept;
probe::CopyDetail describe_fill(const void* destination, std::size_t bytes, const void* pattern, std::size_t pattern_bytes) noexcept;

/// Publishes a call that submits nothing, or a wait, that this object's life brackets; nothing when nobody wants it.
class PublishedCall {
 public:
  explicit PublishedCall(probe::Id ApiNames::* api) noexcept;
  /// A wait; `stream` null when it is for several.
  PublishedCall(probe::Id ApiNames::* api, probe::WaitType type, const DeviceState& device, const StreamState* stream,
                const void* handle) noexcept;
  ~PublishedCall();
  PublishedCall(const PublishedCall&) = delete;
  PublishedCall& operator=(const PublishedCall&) = delete;
  /// 0 = success; else what is written as its result.
  void set_result(std::int32_t result) noexcept { result_ = result; }

 private:
  const probe::Subscriber* subscriber_;
  probe::Id api_ = 0;
  bool is_wait_ = false;
  std::int32_t result_ = 0;
  probe::Wait wait_;
};

}  // namespace xpu::runtime
