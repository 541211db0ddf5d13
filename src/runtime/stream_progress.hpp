#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.hpp"
#include "xpu/hal/queue.hpp"
#include "xpu/hal/queue_progress.hpp"
#include "xpu/memory/stream_ref.hpp"

namespace xpu::runtime {

struct StreamState;

/// Points of a stream up to which allocators asked how far it has come. A number is given before the point is taken, so a point that is
/// reached answers for every smaller number, too.
struct StreamTickets {
  base::Mutex mutex;  // never held while a driver is asked: asking sim runs kernels, which may come here again
  std::uint64_t issued XPU_GUARDED_BY(mutex) = 0, completed XPU_GUARDED_BY(mutex) = 0;
  /// By number, of those that are not known to be reached. Null where no event could be recorded: reached when the stream is idle.
  std::map<std::uint64_t, std::shared_ptr<hal::Event>> points XPU_GUARDED_BY(mutex);
};

/// How far the streams have come, for allocators. A queue is named by its StreamState; null is no stream, which never has work.
class StreamProgress final : public hal::QueueProgress {
 public:
  /// The only one: it has no state of its own, and lives for ever.
  static StreamProgress& instance();

  Result<std::uint64_t> issue(void* queue) override;
  std::uint64_t completed(void* queue) noexcept override;
  /// Error failed_precondition from within an operation without whose end the stream cannot go on.
  Result<> wait_blocking(void* queue, std::uint64_t ticket) override;
  /// Error unavailable when another thread submits to `waiting` just now: it may be waiting for this one.
  Result<> make_wait(void* waiting, void* queue, std::uint64_t ticket) override;
};

/// The stream as allocators see it.
memory::StreamRef memory_ref(const StreamState& stream) noexcept;

}  // namespace xpu::runtime
