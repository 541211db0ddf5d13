#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/probe.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/pending_operations.hpp"
#include "runtime/stream_progress.hpp"
#include "runtime/submission_lock.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/driver.hpp"
#include "xpu/runtime/runtime.hpp"
#include "xpu/runtime/stream.hpp"

/// What the values of the public headers point to. Everything here lives for ever: threads, and destructors of a program's static objects,
/// may use it until the process is gone.
namespace xpu::runtime {

inline constexpr int kMaxDevices = 127;
inline constexpr int kPriorities = 3;
inline constexpr int kStreamsPerPool = Stream::kStreamsPerPool;

enum class Phase : std::uint32_t {
  cold,         ///< Devices may have been counted; nothing is initialised.
  initialized,  ///< Work is accepted.
  bad_fork,     ///< A child of an initialised process: nothing works here.
  exiting,
};
extern constinit std::atomic<Phase> g_phase;

/// Success in phase `initialized`; initialises in `cold`; else the error of the phase.
Result<> ensure_initialized_slowly();
inline Result<> ensure_initialized() {
  if (g_phase.load(std::memory_order_acquire) == Phase::initialized) [[likely]]
    return {};
  return ensure_initialized_slowly();
}
/// Whether the driver may still be called, for destructors.
inline bool is_running() noexcept { return g_phase.load(std::memory_order_acquire) == Phase::initialized; }

/// For what a destructor may not destroy because the driver may not be called any more (at exit, in a forked child): it goes with the
/// process.
void keep_for_ever(std::shared_ptr<const void> object) noexcept;

struct StreamState {
  DeviceState* device = nullptr;
  StreamId id = 0;
  std::int64_t memory_id = 0;  ///< By which allocators know it, those of other devices, too; never another one's later.
  int priority = 0;
  bool is_external = false;
  std::shared_ptr<hal::Queue> queue;  ///< With the submission lock, while not released; else see `hold_queue`.
  void* native_handle = nullptr;
  std::atomic<bool> is_released{false};  ///< An external one whose owner took it back.

  SubmissionLock lock;                      ///< Held for a submission; taken again by a function that the driver runs within one.
  std::uint64_t sequence = 0;               ///< Operations so far; under `lock`.
  std::atomic<std::uint32_t> published{0};  ///< Of them, those that somebody listened to; written under `lock`.
  std::uint32_t until_sample = 64;          ///< Published operations until the next one whose recording is timed; under `lock`.
  probe::Id probe_id = 0;
  PendingOperations pending;
  StreamTickets tickets;

  base::Mutex error_mutex;
  std::optional<Error> kept_error XPU_GUARDED_BY(error_mutex);  ///< An asynchronous error that came out where nobody asked for it.
  std::atomic<bool> has_kept_error{false};
  StreamState* next = nullptr;  ///< In `DeviceState::first_stream`.
};

enum class PeerAccess : std::uint8_t { unknown, no, yes };

struct DeviceState {
  int index = 0;
  hal::Driver* driver = nullptr;
  std::uint32_t ordinal = 0;  ///< In its driver.
  DeviceProperties properties;
  probe::Id probe_id = 0, context_id = 0;

  base::Mutex mutex;                          ///< For opening, creating streams and the external ones.
  std::atomic<hal::Device*> device{nullptr};  ///< Null until opened.
  std::array<std::array<std::atomic<StreamState*>, kStreamsPerPool>, kPriorities> streams{};
  std::array<std::atomic<std::uint32_t>, kPriorities> next_stream{};
  std::atomic<StreamState*> first_stream{nullptr};
  struct External {
    StreamState* stream = nullptr;
    std::uint32_t holders = 0;  ///< ExternalStream objects; a stream of `from_external` holds one for ever.
  };
  std::map<void*, External> externals XPU_GUARDED_BY(mutex);
  std::atomic<std::uint64_t> last_clock_reading_ns{0};
  DeviceMemory memory;
  std::array<std::atomic<PeerAccess>, kMaxDevices> peers{};  ///< By the other device's index.
};

/// The drivers and devices of this process.
struct Enumeration {
  std::vector<std::unique_ptr<hal::Driver>> drivers;
  std::vector<DeviceState*> devices;  ///< By index.
  RuntimeReport report;
  Error error{ErrorCode::not_found, ""};  ///< When there are no devices: why.
};
/// Made at the first call.
const Enumeration& enumeration();

/// Of [0, count); initialises nothing.
Result<DeviceState*> find_device(int index);
/// The same, of the current device when the index is negative.
Result<DeviceState*> find_device_or_current(int index);
/// Opens it if need be.
Result<hal::Device*> open(DeviceState& device);
/// Initialises and opens.
Result<DeviceState*> use_device(int index);

/// The stream of a pool, created when it is not there. `level` 0 low, 1 normal, 2 high.
Result<StreamState*> pool_stream(DeviceState& device, int level, int index);
inline constexpr int kDefaultStreamIndex = kStreamsPerPool - 1;
constexpr StreamId pool_stream_id(int level, int index) {
  return static_cast<StreamId>(index) << 4 | static_cast<StreamId>(level) << 1 | 1;
}
/// The calling thread's.
Result<StreamState*> current_stream(DeviceState& device);
void set_current_stream(StreamState& stream) noexcept;
int current_device() noexcept;
void set_current_device(int index) noexcept;

/// Calls `visit(StreamState&)` for every stream of the device that was ever created. Takes no lock.
template <typename Visit>
void for_each_stream(const DeviceState& device, Visit&& visit) {
  for (StreamState* stream = device.first_stream.load(std::memory_order_acquire); stream != nullptr; stream = stream->next) visit(*stream);
}
/// An external stream whose owner took it back is refused. Asked with the submission lock held, or once more under it.
Result<> check_not_released(const StreamState& stream);
/// The queue for a call without the submission lock: it stays for as long as the result lives, whoever lets go of the stream meanwhile.
/// Null when the stream was released and its work has ended.
std::shared_ptr<hal::Queue> hold_queue(StreamState& stream) noexcept;
/// The error that `wait_keeping_error` kept, once.
std::optional<Error> take_kept_error(StreamState& stream) noexcept;
/// Waits for everything submitted; an asynchronous error stays for the next synchronisation. Returns at once where `check_can_wait` fails.
void wait_keeping_error(StreamState& stream) noexcept;
/// Error failed_precondition from within an operation without whose end the stream cannot go on.
Result<> check_can_wait(StreamState& stream);
/// The first asynchronous error since the last call, of the driver or kept.
Result<> synchronize_taking_error(StreamState& stream);
/// Publishes the stream and lets `for_each_stream` find it.
void add_stream(DeviceState& device, StreamState& stream) XPU_REQUIRES(device.mutex);

}  // namespace xpu::runtime
