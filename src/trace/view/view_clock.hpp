#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>

#include "xpu/trace/view/records.hpp"

namespace xpu::trace::view {

/// A subscriber's clock beside the host's: readings of both, and host times in its terms. One owner at a time.
class ViewClock {
 public:
  explicit ViewClock(std::function<std::uint64_t()> now) : now_(std::move(now)) {}

  /// Reads both clocks, closest together of several times. bad_timestamp, and nothing is remembered: it returned 0, or went back.
  ResultCode read();
  std::uint64_t now() const { return now_(); }
  /// 0, which is unknown, stays. Between two readings in proportion, so that later is never earlier; outside of them as far from the
  /// nearest one as on the host's clock. There must be a reading.
  std::uint64_t to_view_time(std::uint64_t host_ns) const noexcept;

 private:
  struct Reading {
    std::uint64_t host_ns, view_ns;
  };
  std::function<std::uint64_t()> now_;
  std::deque<Reading> readings_;
};

/// Puts all times of a view, which is a whole record, on another clock and flags it.
void convert_times(std::span<std::byte> view, const ViewClock& clock) noexcept;
/// When what a view tells of began, on the host's clock: of the call for device views. 0 = it has no time.
std::uint64_t begin_of(std::span<const std::byte> view) noexcept;

}  // namespace xpu::trace::view
