#include "profiler/link/annotation_pairing.hpp"

#include <algorithm>

namespace xpu::profiler {

void AnnotationPairing::add(DefinitionTable& definitions, std::size_t process, const trace::AnnotationRecord& record) {
  const auto type = static_cast<probe::AnnotationType>(record.header.flags);
  if (type > probe::AnnotationType::counter) return;  // names were read in the first pass
  added_.push_back(
      {&definitions.thread(process, record.thread), &definitions.name(process, record.text), record.time_ns, record.value, type});
}

void AnnotationPairing::hand_over(const Annotation& from, AnnotationActivity::Type type, std::optional<std::uint64_t> end_ns, Sink& sink) {
  AnnotationActivity activity;
  activity.process = from.thread->process;
  activity.thread = from.thread;
  activity.text = from.text;
  activity.type = type;
  activity.value = from.value;
  activity.start_ns = static_cast<std::int64_t>(from.time_ns);
  activity.duration_ns = end_ns.value_or(from.time_ns) - from.time_ns;
  activity.duration_known = type != AnnotationActivity::Type::range || end_ns.has_value();
  sink.handle_annotation_activity(activity);
}

void AnnotationPairing::hand_over(Sink& sink) { hand_over(false, sink); }
void AnnotationPairing::hand_over_all(Sink& sink) { hand_over(true, sink); }

void AnnotationPairing::hand_over(bool is_last, Sink& sink) {
  std::stable_sort(added_.begin(), added_.end(), [](const Annotation& a, const Annotation& b) {
    return a.thread != b.thread ? a.thread->index < b.thread->index : a.time_ns < b.time_ns;
  });
  if (!added_.empty() && open_.size() <= added_.back().thread->index) open_.resize(added_.back().thread->index + 1);
  auto next = added_.begin();
  for (std::size_t thread = 0; thread < open_.size(); ++thread) {
    std::vector<Annotation>& open = open_[thread];
    for (; next != added_.end() && next->thread->index == thread; ++next) {
      switch (next->type) {
        case probe::AnnotationType::begin: open.push_back(*next); break;
        case probe::AnnotationType::end:
          if (open.empty()) {
            hand_over(*next, AnnotationActivity::Type::range, std::nullopt, sink);
          } else {
            hand_over(open.back(), AnnotationActivity::Type::range, next->time_ns, sink);
            open.pop_back();
          }
          break;
        case probe::AnnotationType::counter: hand_over(*next, AnnotationActivity::Type::counter, std::nullopt, sink); break;
        default: hand_over(*next, AnnotationActivity::Type::mark, std::nullopt, sink);
      }
    }
    if (!is_last) continue;
    for (const Annotation& begin : open) hand_over(begin, AnnotationActivity::Type::range, std::nullopt, sink);
    open = {};
  }
  added_.clear();
}

std::size_t AnnotationPairing::open() const noexcept {
  std::size_t count = 0;
  for (const std::vector<Annotation>& ranges : open_) count += ranges.size();
  return count;
}

}  // namespace xpu::profiler
