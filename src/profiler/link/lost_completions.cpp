#include "profiler/link/lost_completions.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace xpu::profiler {

void LostCompletions::add(std::size_t process, const trace::LossRecord& record) {
  if (process >= processes_.size() || (record.header.flags & trace::kFlagCompletionLost) == 0 || record.count == 0) return;
  processes_[process][record.queue].push_back({record.first_operation, record.last_operation});
  ++count_;
}

void LostCompletions::sort() {
  if (count_ == 0) return;
  count_ = 0;
  for (Queues& queues : processes_) {
    queues.for_each([&](std::uint64_t, std::vector<Range>& ranges) {
      std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
      std::vector<Range> merged;
      for (const Range& range : ranges) {
        if (merged.empty() || range.first > merged.back().last) {
          merged.push_back(range);
          continue;
        }
        merged.back().last = std::max(merged.back().last, range.last);
        merged.back().is_old = merged.back().is_old && range.is_old;
      }
      ranges = std::move(merged);
      count_ += ranges.size();
    });
  }
}

bool LostCompletions::covers(std::size_t process, std::uint32_t queue, std::uint64_t operation) const noexcept {
  const auto covered_by_losses_of = [&](std::uint32_t losing_queue) {
    const std::vector<Range>* ranges = processes_[process].find(losing_queue);
    if (ranges == nullptr) return false;
    const auto after = std::upper_bound(ranges->begin(), ranges->end(), operation,
                                        [](std::uint64_t wanted, const Range& range) { return wanted < range.first; });
    return after != ranges->begin() && operation <= std::prev(after)->last;
  };
  constexpr std::uint32_t kUnknownQueue = 0;
  return covered_by_losses_of(queue) || covered_by_losses_of(kUnknownQueue);
}

void LostCompletions::forget_all_but(std::span<const std::uint64_t> operations) {
  if (count_ == 0) return;
  count_ = 0;
  processes_.front().for_each([&](std::uint64_t, std::vector<Range>& ranges) {
    std::erase_if(ranges, [&](Range& range) {
      const auto first = std::lower_bound(operations.begin(), operations.end(), range.first);
      const bool is_needed = first != operations.end() && *first <= range.last;
      return !is_needed && std::exchange(range.is_old, true);
    });
    count_ += ranges.size();
  });
}

}  // namespace xpu::profiler
