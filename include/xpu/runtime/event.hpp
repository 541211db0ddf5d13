#pragma once

#include <memory>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/queue.hpp"

namespace xpu {

class Stream;
namespace runtime {
struct DeviceState;
struct StreamState;
}  // namespace runtime

struct EventOptions {
  bool timing = false;  ///< It carries a device timestamp, for `elapsed_time`.
  /// `synchronize` gives the processor away at once instead of spinning first. A device that cannot is an error at the first `record`.
  bool blocking = false;
};

/// A point on a stream. Movable, not copyable; created on its device by the first `record`. Thread-compatible: `query` and `synchronize`
/// may run beside each other, `record` beside nothing.
///
/// An event that was never recorded is complete and waiting for it does nothing. Recording again replaces what it captures; waits that were
/// submitted keep the old point.
class XPU_EXPORT Event {
 public:
  Event() noexcept = default;
  explicit Event(const EventOptions& options) noexcept : options_(options) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Captures the stream's end, by default that of the current one. A timed event directly behind an operation takes that operation's end,
  /// unless the device had been idle before this call. Error invalid_argument: "Event device A does not match recording stream's device
  /// B.".
  Result<> record();
  Result<> record(const Stream& stream);
  /// Only the first time.
  Result<> record_once(const Stream& stream);
  /// What is submitted to the stream from now on waits; any device's stream may wait.
  Result<> wait() const;
  Result<> wait(const Stream& stream) const;

  Result<bool> query() const;
  /// Error failed_precondition from within an operation that it would wait for.
  Result<> synchronize() const;
  /// Milliseconds from this event to `end` on the device's clock; negative when they were recorded in the other order. In this order:
  /// "Both events must be recorded before calculating elapsed time.", "Both events must be completed before calculating elapsed time.",
  /// "Both events must be created with argument 'enable_timing=True'."; then both must be of one device.
  Result<double> elapsed_time(const Event& end) const;

  bool is_created() const noexcept { return event_ != nullptr; }
  /// -1 until recorded.
  int device() const noexcept;
  /// Null until recorded; then the driver's own event.
  void* native_handle() const noexcept;
  const EventOptions& options() const noexcept { return options_; }

 private:
  Result<> create_on(runtime::DeviceState& device);
  void release() noexcept;

  EventOptions options_;
  std::shared_ptr<hal::Event> event_;
  runtime::DeviceState* device_ = nullptr;
  runtime::StreamState* stream_ = nullptr;  // that recorded it last
};

}  // namespace xpu
