#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "memory/counter.hpp"
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

/// The figures of an allocator of pinned memory, under its lock. Everything that changes them is a method here, so that no sum is
/// forgotten.
class HostCounters {
 public:
  void hand_out(std::size_t bytes) noexcept {
    memory::add(sums_.allocation, 1);
    memory::add(sums_.allocated_bytes, static_cast<std::int64_t>(bytes));
  }
  void free(std::size_t bytes) noexcept {
    memory::subtract(sums_.allocation, 1);
    memory::subtract(sums_.allocated_bytes, static_cast<std::int64_t>(bytes));
  }
  void begin_pending(std::size_t bytes) noexcept { memory::add(sums_.pending_bytes, static_cast<std::int64_t>(bytes)); }
  void end_pending(std::size_t bytes) noexcept { memory::subtract(sums_.pending_bytes, static_cast<std::int64_t>(bytes)); }
  void add_segment(std::size_t bytes, std::uint64_t took_ns) noexcept {
    memory::add(sums_.segment, 1);
    memory::add(sums_.reserved_bytes, static_cast<std::int64_t>(bytes));
    ++sums_.num_host_alloc;
    alloc_time_.add(took_ns);
  }
  void remove_segment(std::size_t bytes, std::uint64_t took_ns) noexcept {
    memory::subtract(sums_.segment, 1);
    memory::subtract(sums_.reserved_bytes, static_cast<std::int64_t>(bytes));
    ++sums_.num_host_free;
    free_time_.add(took_ns);
  }

  HostStatistics statistics() const noexcept {
    HostStatistics result = sums_;
    result.host_alloc_time = alloc_time_.in_microseconds();
    result.host_free_time = free_time_.in_microseconds();
    return result;
  }
  void reset_peak() noexcept {
    for (const auto sum : kSums) memory::reset_peak(sums_.*sum);
    alloc_time_.reset_peak();
    free_time_.reset_peak();
  }
  void reset_accumulated() noexcept {
    for (const auto sum : kSums) memory::reset_accumulated(sums_.*sum);
    sums_.num_host_alloc = sums_.num_host_free = 0;
    alloc_time_.reset_accumulated();
    free_time_.reset_accumulated();
  }

 private:
  static constexpr StatisticsCounter HostStatistics::* kSums[] = {&HostStatistics::allocation, &HostStatistics::allocated_bytes,
                                                                  &HostStatistics::pending_bytes, &HostStatistics::segment,
                                                                  &HostStatistics::reserved_bytes};

  HostStatistics sums_;  // without the times
  HostDuration alloc_time_, free_time_;
};

}  // namespace xpu::memory
