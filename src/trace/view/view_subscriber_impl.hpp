#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "trace/view/operation_notes.hpp"
#include "trace/view/view_buffers.hpp"
#include "trace/view/view_clock.hpp"
#include "xpu/trace/live_capture.hpp"
#include "xpu/trace/view/view_subscriber.hpp"

namespace xpu::trace::view {

struct ViewSubscriber::Impl {
  explicit Impl(ViewSubscriberOptions given);

  /// In a forked child.
  bool is_elsewhere() const noexcept;
  // For callbacks.
  bool is_device_work_enabled() const;
  /// One more, or one less, of those who want to be told of calls, whatever views are enabled.
  void need_calls(int difference);

  ResultCode change_selection(const std::function<ResultCode(Selection&)>& change);
  ResultCode record_what_is_selected(std::uint64_t now);
  CaptureOptions capture_options() const;
  ResultCode start_delivering();

  // The delivering thread, or whoever ends it: `round_mutex` is held, and `mutex` is not.
  void run();
  enum class RoundType : std::uint8_t { ordinary, flush, last };
  void do_round(RoundType type);
  std::uint64_t take_records();
  void rest_when_nothing_is_wanted();
  void count_buffers();  ///< `mutex` is held as well.
  void put(std::uint32_t writer, std::span<const std::byte> view);
  void finish();

  const ViewSubscriberOptions options;
  const pid_t process;
  const std::shared_ptr<OperationNotes> notes = std::make_shared<OperationNotes>();

  /// Held for a whole round, the callbacks included. Before `mutex`, where both are needed.
  std::mutex round_mutex;
  std::unique_ptr<ViewBuffers> buffers;
  ViewBuilder builder;
  struct ClockChange {
    std::uint64_t from_ns;
    std::shared_ptr<ViewClock> clock;
  };
  std::vector<ClockChange> clocks;
  std::uint64_t dropped_views = 0, bad_timestamps = 0;
  unsigned quiet_rounds = 0;                                 // one after the other in which nothing was recorded
  std::uint64_t requested_before = 0, completed_before = 0;  // of callbacks that were replaced
  alignas(std::uint64_t) std::array<std::byte, sizeof(KernelView)> converted;

  mutable std::mutex mutex;
  std::condition_variable wake, round_done;
  bool has_callbacks = false;
  bool is_finished = false, quits = false;
  Selection selection;
  struct SelectionChange {
    std::uint64_t from_ns;
    Selection selection;
  };
  int callers_that_need_calls = 0;
  std::vector<SelectionChange> selection_changes;  // that the builder does not know of
  std::unique_ptr<LiveCapture> capture;
  bool is_capture_paused = false;
  std::uint64_t flushes_wanted = 0, flushes_done = 0;
  std::thread thread;
  std::function<std::uint64_t()> clock;
  std::string problem;
  ViewSubscriberStatistics statistics;
};

}  // namespace xpu::trace::view
