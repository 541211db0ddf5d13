#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "xpu/base/export.hpp"
#include "xpu/trace/view/enums.hpp"
#include "xpu/trace/view/selection.hpp"
#include "xpu/trace/view/view_builder.hpp"

namespace xpu::trace::view {

struct ViewSubscriberOptions {
  std::uint64_t max_bytes = std::uint64_t{128} << 20;  ///< Memory for wire records that wait for the next round; at least 1 MiB.
  std::chrono::milliseconds interval{50};              ///< From one round of the delivering thread to the next.
  std::size_t max_open_operations = 1'000'000;         ///< As of `ViewBuilder`.
};

struct ViewSubscriberStatistics {
  ViewStatistics views;
  std::uint64_t dropped_views = 0;  ///< For which the subscriber had no buffer.
  std::uint64_t buffers_requested = 0;
  std::uint64_t buffers_completed = 0;
  std::uint64_t bad_timestamps = 0;  ///< Readings of the subscriber's clock that went back, which were not used.
};

/// Views of what happens in this process, written into buffers that the subscriber provides, as PTI 1.0 agrees it with its users. There may
/// be several, each with kinds, filters, buffers and a clock of its own.
///
/// Buffers: one at a time for each thread that submits, and in it the views of that thread. Each one that was asked for is completed
/// exactly once: when it is full, at `flush`, when many are under way, when callbacks are replaced (on that thread), or at the end, which
/// is the destructor or the exit of the process. Both callbacks are called by a thread of the subscriber's own, and the first request by
/// whoever sets them; no lock of the program's is held, and they may use everything here but `set_callbacks` and `flush`, which answer
/// bad_argument then.
///
/// What is enabled holds for calls and commands that begin from then on, and each of them is told of to its end, also when its kind was
/// disabled meanwhile. While nothing is enabled and nothing is under way nobody listens.
///
/// Every function that returns a code is for any thread. In a forked child all answer tracing_not_initialized.
class XPU_EXPORT ViewSubscriber {
 public:
  /// Sets where to write and how many bytes there are: aligned to 8, at least `kLargestViewBytes`.
  using BufferRequested = std::function<void(std::byte** buffer, std::size_t* bytes)>;
  /// `used` bytes of it are views, see `next_record`; 0 for a buffer that nothing was written to.
  using BufferCompleted = std::function<void(std::byte* buffer, std::size_t bytes, std::size_t used)>;
  using Clock = std::function<std::uint64_t()>;

  explicit ViewSubscriber(ViewSubscriberOptions options = {});
  /// Delivers everything, also what has not ended (kViewUnlinked), and completes every buffer.
  ~ViewSubscriber();
  ViewSubscriber(const ViewSubscriber&) = delete;
  ViewSubscriber& operator=(const ViewSubscriber&) = delete;

  /// Asks for one buffer at once. bad_argument: a callback is empty, or the buffer is null, too small or not aligned; then it is completed
  /// with 0 used bytes, and the callbacks that were set before stay set.
  ResultCode set_callbacks(BufferRequested requested, BufferCompleted completed);

  /// no_callbacks_set, what `Selection::enable` answers, or tracing_not_initialized: nothing can be recorded in this process, for the
  /// reason that `problem` gives.
  ResultCode enable(ViewKind kind);
  ResultCode disable(ViewKind kind);
  ResultCode enable_api(ViewKind kind, bool enable, ApiGroup group, std::uint32_t id);
  ResultCode enable_api_class(ViewKind kind, bool enable, ApiClass api_class, ApiGroup group);

  /// When it returns, views of everything that had ended by now are in buffers, and those were completed: without any synchronisation by
  /// the program, and without a wait for what has not ended.
  ResultCode flush();

  /// Times of what begins from now on are those of this clock, in nanoseconds, and flagged kViewUserClock; all times of one view are of one
  /// clock. It is read often, by any thread, and compared with the host's as it goes. bad_argument: empty; bad_timestamp: it returns 0, or
  /// goes back.
  ResultCode set_timestamp_callback(Clock clock);
  /// Now, on the clock of views that begin now.
  std::uint64_t timestamp() const;

  /// For operations that this thread submits from now on; recorded or not, so that pushes and pops stay in pairs. bad_argument: no kind.
  static ResultCode push_external_id(ExternalKind kind, std::uint64_t id) noexcept;
  /// external_id_queue_empty: nothing was pushed. `id` may be null.
  static ResultCode pop_external_id(ExternalKind kind, std::uint64_t* id) noexcept;

  ViewSubscriberStatistics statistics() const;
  /// Why the last `enable` answered tracing_not_initialized, in a sentence; else empty.
  std::string problem() const;

  struct Impl;

 private:
  friend class CallbackSubscriber;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::trace::view
