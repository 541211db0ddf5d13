#pragma once

#include <cstdint>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"

namespace xpu::hal {

/// How far the queues of a device have come, as far as an allocator must know. A *ticket* is a point behind everything that was submitted
/// to one queue until it was issued; tickets of a queue count up from 1 and are reached in order. A queue is named by whatever the
/// implementation knows it by.
///
/// Thread-safe. Called with no lock held that a submission to these queues may want.
class XPU_EXPORT QueueProgress {
 public:
  QueueProgress() = default;
  virtual ~QueueProgress() = default;
  QueueProgress(const QueueProgress&) = delete;
  QueueProgress& operator=(const QueueProgress&) = delete;

  /// A new ticket of the queue. May cost a submission of the driver's.
  virtual Result<std::uint64_t> issue(void* queue) = 0;
  /// The last ticket that the queue is known to have reached; 0 = none. Does not wait. A lost device has reached all of them.
  virtual std::uint64_t completed(void* queue) noexcept = 0;
  /// Returns when the queue has reached the ticket.
  virtual Result<> wait_blocking(void* queue, std::uint64_t ticket) = 0;
  /// What is submitted to `waiting` from now on begins after `queue` has reached the ticket. Error unsupported where the driver cannot.
  virtual Result<> make_wait(void* waiting, void* queue, std::uint64_t ticket) = 0;
};

}  // namespace xpu::hal
