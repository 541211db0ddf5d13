#pragma once

#include <algorithm>
#include <cstdint>

#include "xpu/memory/statistics.hpp"

namespace xpu::memory {

inline void add(StatisticsCounter& counter, std::int64_t amount) noexcept {
  counter.current += amount;
  counter.peak = std::max(counter.peak, counter.current);
  counter.allocated += amount;
}
inline void subtract(StatisticsCounter& counter, std::int64_t amount) noexcept {
  counter.current -= amount;
  counter.freed += amount;
}
inline void reset_peak(StatisticsCounter& counter) noexcept { counter.peak = counter.current; }
inline void reset_accumulated(StatisticsCounter& counter) noexcept { counter.allocated = counter.freed = 0; }

}  // namespace xpu::memory
