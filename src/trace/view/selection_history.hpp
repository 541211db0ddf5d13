#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "xpu/trace/view/selection.hpp"

namespace xpu::trace::view {

/// What was selected when: records come later than what they tell of, so a selection holds for what began while it did. One owner at a
/// time.
class SelectionHistory {
 public:
  explicit SelectionHistory(Selection selection) { changes_.push_back({0, std::move(selection)}); }

  /// For what began at `from_ns` or later; 0: for everything.
  void change(const Selection& selection, std::uint64_t from_ns) {
    // Whoever toggles all the time loses what is oldest: the next one is taken for it.
    constexpr std::size_t kRemembered = 1'024;
    while (!changes_.empty() && changes_.back().from_ns >= from_ns) changes_.pop_back();
    if (changes_.size() == kRemembered) changes_.pop_front();
    changes_.push_back({from_ns, selection});
  }
  /// 0 = unknown: as it is now.
  const Selection& at(std::uint64_t time_ns) const noexcept {
    if (time_ns == 0 || time_ns >= changes_.back().from_ns) return changes_.back().selection;
    const auto later = std::upper_bound(changes_.begin(), changes_.end(), time_ns,
                                        [](std::uint64_t time, const Change& change) { return time < change.from_ns; });
    return later == changes_.begin() ? later->selection : std::prev(later)->selection;
  }

 private:
  struct Change {
    std::uint64_t from_ns;
    Selection selection;
  };
  std::deque<Change> changes_;  // never empty
};

}  // namespace xpu::trace::view
