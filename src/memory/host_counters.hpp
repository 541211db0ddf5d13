#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "xpu/memory/host_caching_allocator.hpp"

namespace xpu::memory {

/// Durations add up in nanoseconds: in microseconds most of them would be 0.
class HostDuration {
 public:
  void add(std::uint64_t ns) noexcept {
    total_ns_ += ns;
    ++count_;
    min_ns_ = std::min(min_ns_, ns);
    max_ns_ = std::max(max_ns_, ns);
    last_ns_ = ns;
  }
  void reset_peak() noexcept {
    min_ns_ = std::numeric_limits<std::uint64_t>::max();
    max_ns_ = 0;
  }
  void reset_accumulated() noexcept { total_ns_ = count_ = 0; }
  HostStatistics::Duration in_microseconds() const noexcept {
    const auto us = [](std::uint64_t ns) { return static_cast<std::int64_t>(ns / 1000); };
    const std::uint64_t min_ns = std::min(min_ns_, max_ns_);  // 0 when nothing happened
    return {us(total_ns_), static_cast<std::int64_t>(count_), us(max_ns_), us(min_ns), us(last_ns_)};
  }

 private:
  std::uint64_t total_ns_ = 0, count_ = 0, max_ns_ = 0, last_ns_ = 0;
  std::uint64_t min_ns_ = std::numeric_limits<std::uint64_t>::max();
};

/// What was added and what was taken away: the rest follows from it, so that each costs a single addition.
class HostSum {
 public:
  void add(std::size_t amount) noexcept {
    added_ += static_cast<std::int64_t>(amount);
    peak_ = std::max(peak_, added_ - taken_);
  }
  void subtract(std::size_t amount) noexcept { taken_ += static_cast<std::int64_t>(amount); }
  void reset_peak() noexcept { peak_ = added_ - taken_; }
  void reset_accumulated() noexcept {
    added_at_reset_ = added_;
    taken_at_reset_ = taken_;
  }
  StatisticsCounter value() const noexcept { return {added_ - taken_, peak_, added_ - added_at_reset_, taken_ - taken_at_reset_}; }

 private:
  std::int64_t added_ = 0, taken_ = 0, peak_ = 0;
  std::int64_t added_at_reset_ = 0, taken_at_reset_ = 0;
};

/// The figures of an allocator of pinned memory, under its lock. Everything that changes them is a method here, so that no sum is
/// forgotten.
class HostCounters {
 public:
  void hand_out(std::size_t bytes) noexcept {
    allocation_.add(1);
    allocated_bytes_.add(bytes);
  }
  void free(std::size_t bytes) noexcept {
    allocation_.subtract(1);
    allocated_bytes_.subtract(bytes);
  }
  void begin_pending(std::size_t bytes) noexcept { pending_bytes_.add(bytes); }
  void end_pending(std::size_t bytes) noexcept { pending_bytes_.subtract(bytes); }
  void add_segment(std::size_t bytes, std::uint64_t took_ns) noexcept {
    segment_.add(1);
    reserved_bytes_.add(bytes);
    alloc_time_.add(took_ns);
  }
  void remove_segment(std::size_t bytes, std::uint64_t took_ns) noexcept {
    segment_.subtract(1);
    reserved_bytes_.subtract(bytes);
    free_time_.add(took_ns);
  }

  HostStatistics statistics() const noexcept {
    HostStatistics result;
    result.allocation = allocation_.value();
    result.allocated_bytes = allocated_bytes_.value();
    result.pending_bytes = pending_bytes_.value();
    result.segment = segment_.value();
    result.reserved_bytes = reserved_bytes_.value();
    result.host_alloc_time = alloc_time_.in_microseconds();
    result.host_free_time = free_time_.in_microseconds();
    result.num_host_alloc = result.segment.allocated;
    result.num_host_free = result.segment.freed;
    return result;
  }
  void reset_peak() noexcept {
    for (HostSum* const sum : sums()) sum->reset_peak();
    alloc_time_.reset_peak();
    free_time_.reset_peak();
  }
  void reset_accumulated() noexcept {
    for (HostSum* const sum : sums()) sum->reset_accumulated();
    alloc_time_.reset_accumulated();
    free_time_.reset_accumulated();
  }

 private:
  std::array<HostSum*, 5> sums() noexcept { return {&allocation_, &allocated_bytes_, &pending_bytes_, &segment_, &reserved_bytes_}; }

  HostSum allocation_, allocated_bytes_, pending_bytes_, segment_, reserved_bytes_;
  HostDuration alloc_time_, free_time_;
};

}  // namespace xpu::memory
