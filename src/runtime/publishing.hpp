#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/probe.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/module.hpp"
#include "xpu/hal/queue.hpp"

/// What the runtime tells the probe. Nothing here is called while nobody listens, but for objects, whose ids are given in any case.
namespace xpu::runtime {

struct DeviceState;
struct StreamState;

/// Names of the runtime's functions as they appear in recordings; interned when the runtime starts.
struct ApiNames {
  probe::Id launch, copy, fill, run, run_blocking, synchronize_stream, synchronize_device, synchronize_event, query_stream, query_event,
      record_event, wait_event, allocate, free, create_stream, create_module;
};
/// Filled in before the runtime accepts its first call.
extern constinit ApiNames g_api_names;
/// What is published as the result of a call that failed: the driver's own code where there is one, else -1 - `ErrorCode`; never 0.
std::int32_t result_code(const Error& error) noexcept;

/// The subscriber, unless this thread's work has another source already (`probe::Scope`).
inline const probe::Subscriber* listener() noexcept {
  const probe::Subscriber* subscriber = probe::subscriber();
  return subscriber == nullptr || probe::inside_scope() ? nullptr : subscriber;
}

/// The id of a kernel of this device and name: one for all kernels that share both, described by the first of them. `info` null: a
/// function, of which nothing is known.
probe::Id kernel_id(const DeviceState& device, std::string_view name, const hal::KernelInfo* info = nullptr);

void publish_device(const DeviceState& device, const hal::Device& opened);
void publish_stream(const StreamState& stream);
void publish_stream_end(const StreamState& stream) noexcept;
/// A reading of the device's clock when the last one is older than a tenth of a second and somebody listens. True when there was one.
bool publish_clock_if_due(DeviceState& device, std::uint64_t now_ns) noexcept;
/// At exit, after the drivers have been prepared for it: last readings of the clocks, and what their records are missing.
void publish_end() noexcept;
/// Hands everything that is alive to whoever subscribes later.
/// Before the runtime's first lock is taken: interning and registering take locks of the probe, which a fork takes before the runtime's.
/// The result goes to `set_api_names`.
ApiNames register_publishing() noexcept;
/// Once, under the runtime's lock.
void set_api_names(const ApiNames& names) noexcept;

/// Where addresses lie, for the records of copies: what allocators took of the device, memory or room for it.
void remember_memory(const void* address, std::size_t bytes, hal::MemoryKind kind, const DeviceState& device);
/// False when it is none.
bool forget_memory(const void* address) noexcept;
/// Whether somebody wants to hear of memory now.
bool is_memory_listened_to() noexcept;
/// Then. `total`: bytes of the device that are allocated now.
void publish_memory(const DeviceState& device, probe::MemoryAction action, hal::MemoryKind kind, const void* address, std::size_t bytes,
                    std::uint64_t total) noexcept;
probe::CopyDetail describe_copy(const DeviceState& device, const void* destination, const void* source, std::size_t bytes) noexcept;
probe::CopyDetail describe_fill(const void* destination, std::size_t bytes, const void* pattern, std::size_t pattern_bytes) noexcept;

/// Publishes a call that submits nothing, or a wait, that this object's life brackets; nothing when nobody wants it. What is not handed
/// through `finish` succeeded.
class PublishedCall {
 public:
  explicit PublishedCall(probe::Id ApiNames::* api) noexcept;
  /// A wait; `stream` null when it is for several. A `blocking_call` is also an operation, which names it to whoever waits for its return.
  PublishedCall(probe::Id ApiNames::* api, probe::WaitType type, const DeviceState& device, const StreamState* stream,
                const void* handle) noexcept;
  ~PublishedCall();
  PublishedCall(const PublishedCall&) = delete;
  PublishedCall& operator=(const PublishedCall&) = delete;
  /// Remembers how the call ended, and returns it.
  template <typename T>
  Result<T> finish(Result<T> result) noexcept {
    if (!result) result_ = result_code(result.error());
    return result;
  }

 private:
  const probe::Subscriber* subscriber_;
  probe::Id api_ = 0;
  bool is_wait_ = false;
  std::int32_t result_ = 0;
  probe::Wait wait_;
};

}  // namespace xpu::runtime
