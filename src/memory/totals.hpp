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

/// The sums of the two pools of one arena, under its lock.
///
/// The highest values that the sums over all arenas ever had must be known exactly, for each pool and for both, but an arena cannot look at
/// all others each time. So each pool of each arena has an *allowance* for each sum. All allowances together are at most the highest value
/// seen, those of one pool at most the highest of that pool; while every pool of every arena stays within its own, there cannot be a new
/// one. One that exceeds its allowance asks `Peaks` to look at all of them.
///
/// What is kept for the three sums that every allocation changes is the room below the allowance: a single subtraction then tells whether
/// it was enough. What is active is what is allocated and what is pending; only the latter is counted here, because mostly there is none.
class Totals {
 public:
  struct Amounts {
    std::int64_t blocks = 0, bytes = 0, requested_bytes = 0;
  };
  using Allowance = std::array<std::array<std::int64_t, kMetrics>, 2>;

  /// True when an allowance is exceeded.
  [[nodiscard]] bool add(Pool pool, const Amounts& amounts) noexcept {
    std::int64_t signs = room_[kAllocation][pool] -= amounts.blocks;
    signs |= room_[kAllocatedBytes][pool] -= amounts.bytes;
    signs |= room_[kRequestedBytes][pool] -= amounts.requested_bytes;
    return signs < 0;
  }
  void subtract(Pool pool, const Amounts& amounts) noexcept {
    const auto give = [&](std::size_t metric, std::int64_t amount) {
      room_[metric][pool] += amount;
      freed_[metric][pool] += amount;
    };
    give(kAllocation, amounts.blocks);
    give(kAllocatedBytes, amounts.bytes);
    give(kRequestedBytes, amounts.requested_bytes);
  }
  /// `direction` 1: a block that was freed becomes pending; -1: it is not any more.
  void add_pending(Pool pool, std::int64_t bytes, int direction) noexcept {
    pending_[pool][0] += direction;
    pending_[pool][1] += direction * bytes;
  }
  [[nodiscard]] bool exceeds_active(Pool pool) const noexcept {
    return value(pool, kActive) > allowance_[pool][kActive] || value(pool, kActiveBytes) > allowance_[pool][kActiveBytes];
  }

  const Allowance& allowance() const noexcept { return allowance_; }
  void set_allowance(const Allowance& allowance) noexcept {
    for (std::size_t pool = 0; pool < 2; ++pool) {
      for (std::size_t metric = 0; metric < kHotMetrics; ++metric)
        room_[metric][pool] += allowance[pool][metric] - allowance_[pool][metric];
    }
    allowance_ = allowance;
  }

  /// All but the inactive ones, which the regions know.
  std::int64_t value(std::size_t pool, std::size_t metric) const noexcept {
    if (metric == kActive) return value(pool, kAllocation) + pending_[pool][0];
    if (metric == kActiveBytes) return value(pool, kAllocatedBytes) + pending_[pool][1];
    return allowance_[pool][metric] - room_[metric][pool];
  }
  /// What went away so far; what came is this and the value.
  std::int64_t freed(std::size_t pool, std::size_t metric) const noexcept {
    if (metric == kActive) return freed_[kAllocation][pool] - pending_[pool][0];
    if (metric == kActiveBytes) return freed_[kAllocatedBytes][pool] - pending_[pool][1];
    return freed_[metric][pool];
  }

 private:
  static constexpr std::size_t kHotMetrics = 3;

  // By metric first: compilers would join neighbours that change together into one wide load, which then waits for the narrow stores of the
  // call before.
  std::array<std::array<std::int64_t, 2>, kHotMetrics> room_{}, freed_{};
  std::array<std::array<std::int64_t, 2>, 2> pending_{};
  Allowance allowance_{};
};

}  // namespace xpu::memory
