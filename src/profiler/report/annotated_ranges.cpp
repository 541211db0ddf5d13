#include "profiler/report/annotated_ranges.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "profiler/time_difference.hpp"

namespace xpu::profiler {

void AnnotatedRanges::add(const AnnotationActivity& activity) {
  if (activity.type != AnnotationActivity::Type::range || activity.text->text.empty()) return;
  const std::int64_t end =
      activity.duration_known ? end_ns(activity.start_ns, activity.duration_ns) : std::numeric_limits<std::int64_t>::max();
  by_thread_[activity.thread].ranges.push_back({activity.start_ns, end, activity.text, activity.duration_known});
}

const std::vector<AnnotatedRange>& AnnotatedRanges::of(const ThreadDefinition* thread) {
  const auto found = by_thread_.find(thread);
  if (found == by_thread_.end()) return none_;
  Ranges& known = found->second;
  if (!known.is_sorted) {
    std::sort(known.ranges.begin(), known.ranges.end(), [](const AnnotatedRange& a, const AnnotatedRange& b) {
      return std::tie(a.begin_ns, b.end_ns, a.name->text) < std::tie(b.begin_ns, a.end_ns, b.name->text);
    });
    known.is_sorted = true;
  }
  return known.ranges;
}

std::vector<const ThreadDefinition*> AnnotatedRanges::threads() const {
  std::vector<const ThreadDefinition*> threads;
  for (const auto& [thread, ranges] : by_thread_) threads.push_back(thread);
  return threads;
}

const std::vector<const AnnotatedRange*>& OpenRanges::at(std::int64_t time_ns) {
  for (; next_ < ranges_->size() && (*ranges_)[next_].begin_ns <= time_ns; ++next_) open_.push_back(&(*ranges_)[next_]);
  std::erase_if(open_, [&](const AnnotatedRange* range) { return range->end_ns < time_ns; });
  return open_;
}

}  // namespace xpu::profiler
