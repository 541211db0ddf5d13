#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace xpu::memory {

/// What is counted for each pool, and its place in the tables.
enum Metric : std::size_t {
  kAllocation,
  kAllocatedBytes,
  kRequestedBytes,
  kActive,  ///< With blocks that were freed and may still be in use.
  kActiveBytes,
  kInactiveSplit,
  kInactiveSplitBytes,
};
inline constexpr std::size_t kMetrics = 7;
enum Pool : std::size_t { kSmallPool, kLargePool, kAllPools };
inline constexpr std::size_t kPoolRows = 3;

template <typename T>
using MetricTable = std::array<std::array<T, kMetrics>, kPoolRows>;

/// The sums of one arena, of each of its pools and of both, under its lock.
///
/// The highest values that the sums over all arenas ever had must be known exactly, for each pool and for both, but an arena cannot look at
/// all others each time. So each arena has an *allowance* for each sum. All allowances together are at most the highest value seen; while
/// every arena stays within its own, there cannot be a new one. One that exceeds an allowance asks `Peaks` to look at all of them.
///
/// What is kept for the three sums that every allocation changes is the room below the allowance: a single subtraction then tells whether
/// it was enough. What is active is what is allocated and what is pending; only the latter is counted here, because mostly there is none.
class Totals {
 public:
  struct Amounts {
    std::int64_t blocks = 0, bytes = 0, requested_bytes = 0;
  };
  using Allowance = MetricTable<std::int64_t>;

  /// True when an allowance is exceeded. `pool`: small or large.
  [[nodiscard]] bool add(Pool pool, const Amounts& amounts) noexcept {
    std::int64_t signs = 0;
    const auto take = [&](std::size_t metric, std::int64_t amount) {
      signs |= room_[metric][pool] -= amount;
      signs |= room_[metric][kAllPools] -= amount;
    };
    take(kAllocation, amounts.blocks);
    take(kAllocatedBytes, amounts.bytes);
    take(kRequestedBytes, amounts.requested_bytes);
    return signs < 0;
  }
  void subtract(Pool pool, const Amounts& amounts) noexcept {
    const auto give = [&](std::size_t metric, std::int64_t amount) {
      room_[metric][pool] += amount;
      room_[metric][kAllPools] += amount;
      freed_[metric][pool] += amount;
    };
    give(kAllocation, amounts.blocks);
    give(kAllocatedBytes, amounts.bytes);
    give(kRequestedBytes, amounts.requested_bytes);
  }
  /// `direction` 1: a block that was freed becomes pending; -1: it is not any more.
  void add_pending(Pool pool, std::int64_t bytes, int direction) noexcept {
    for (const std::size_t row : {static_cast<std::size_t>(pool), static_cast<std::size_t>(kAllPools)}) {
      pending_[row][0] += direction;
      pending_[row][1] += direction * bytes;
    }
  }
  [[nodiscard]] bool exceeds_active(Pool pool) const noexcept {
    for (const std::size_t row : {static_cast<std::size_t>(pool), static_cast<std::size_t>(kAllPools)}) {
      for (const std::size_t metric : {kActive, kActiveBytes}) {
        if (value(row, metric) > allowance_[row][metric]) return true;
      }
    }
    return false;
  }

  const Allowance& allowance() const noexcept { return allowance_; }
  void set_allowance(const Allowance& allowance) noexcept {
    for (std::size_t row = 0; row < kPoolRows; ++row) {
      for (std::size_t metric = 0; metric < kHotMetrics; ++metric) room_[metric][row] += allowance[row][metric] - allowance_[row][metric];
    }
    allowance_ = allowance;
  }

  /// All but the inactive ones, which the regions know.
  std::int64_t value(std::size_t row, std::size_t metric) const noexcept {
    if (metric == kActive) return value(row, kAllocation) + pending_[row][0];
    if (metric == kActiveBytes) return value(row, kAllocatedBytes) + pending_[row][1];
    return allowance_[row][metric] - room_[metric][row];
  }
  /// What went away so far from a pool; what came is this and the value.
  std::int64_t freed(std::size_t pool, std::size_t metric) const noexcept {
    if (metric == kActive) return freed_[kAllocation][pool] - pending_[pool][0];
    if (metric == kActiveBytes) return freed_[kAllocatedBytes][pool] - pending_[pool][1];
    return freed_[metric][pool];
  }

 private:
  static constexpr std::size_t kHotMetrics = 3;

  // By metric first: compilers would join neighbours that change together into one wide load, which then waits for the narrow stores of the
  // call before.
  std::array<std::array<std::int64_t, kPoolRows>, kHotMetrics> room_{};
  std::array<std::array<std::int64_t, 2>, kHotMetrics> freed_{};
  std::array<std::array<std::int64_t, 2>, kPoolRows> pending_{};
  Allowance allowance_{};
};

}  // namespace xpu::memory
