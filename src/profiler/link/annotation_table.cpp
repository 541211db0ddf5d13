#include "profiler/link/annotation_table.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace xpu::profiler {
namespace {

constexpr std::size_t kNoParent = SIZE_MAX;

void hand_over_one(Sink& sink, const ThreadDefinition& thread, const NameDefinition& text, AnnotationActivity activity) {
  activity.process = thread.process;
  activity.thread = &thread;
  activity.text = &text;
  sink.handle_annotation_activity(activity);
}

}  // namespace

void AnnotationTable::add(std::size_t process, const trace::AnnotationRecord& record) {
  const auto type = static_cast<probe::AnnotationType>(record.header.flags);
  if (type > probe::AnnotationType::counter) return;
  events_.push_back({.time_ns = record.time_ns,
                     .value = record.value,
                     .type = type,
                     .process = static_cast<std::uint32_t>(process),
                     .writer = record.thread,
                     .text_id = record.text});
}

void AnnotationTable::finish(DefinitionTable& definitions) {
  for (Event& event : events_) {
    event.thread = &definitions.thread(event.process, event.writer);
    event.text = &definitions.name(event.process, event.text_id);
  }
  std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return std::tie(a.thread->index, a.time_ns) < std::tie(b.thread->index, b.time_ns);
  });
  std::vector<std::size_t> open;     // in `ranges_`
  std::vector<std::size_t> parents;  // by range: pointers would move with the vector
  std::vector<Event> others;
  for (const Event& event : events_) {
    if (!open.empty() && ranges_[open.back()].thread != event.thread) open.clear();
    if (event.type == probe::AnnotationType::begin) {
      parents.push_back(open.empty() ? kNoParent : open.back());
      open.push_back(ranges_.size());
      RangeDefinition& range = ranges_.emplace_back();
      range.index = static_cast<std::uint32_t>(ranges_.size() - 1);
      range.thread = event.thread;
      range.name = event.text;
      range.begin_ns = static_cast<std::int64_t>(event.time_ns);
      range.end_ns = std::numeric_limits<std::int64_t>::max();
      if (event.thread->index >= threads_.size()) threads_.resize(event.thread->index + 1);
      Span& span = threads_[event.thread->index];
      if (span.last == 0) span.first = span.next = range.index;
      span.last = ranges_.size();
    } else if (event.type == probe::AnnotationType::end && !open.empty()) {
      RangeDefinition& range = ranges_[open.back()];
      range.end_ns = static_cast<std::int64_t>(event.time_ns);
      range.is_closed = true;
      open.pop_back();
    } else {
      others.push_back(event);
    }
  }
  for (std::size_t index = 0; index < ranges_.size(); ++index) {
    if (parents[index] != kNoParent) ranges_[index].parent = &ranges_[parents[index]];
  }
  events_ = std::move(others);
}

const RangeDefinition* AnnotationTable::find(const ThreadDefinition& thread, std::int64_t time_ns) {
  if (thread.index >= threads_.size()) return nullptr;
  Span& span = threads_[thread.index];
  if (span.next != span.first && ranges_[span.next - 1].begin_ns > time_ns) {
    const auto begin = ranges_.begin();
    const auto later = std::upper_bound(begin + static_cast<std::ptrdiff_t>(span.first), begin + static_cast<std::ptrdiff_t>(span.next),
                                        time_ns, [](std::int64_t time, const RangeDefinition& range) { return time < range.begin_ns; });
    span.next = static_cast<std::size_t>(later - begin);
  }
  while (span.next != span.last && ranges_[span.next].begin_ns <= time_ns) ++span.next;
  if (span.next == span.first) return nullptr;
  const RangeDefinition* range = &ranges_[span.next - 1];
  while (range != nullptr && range->end_ns < time_ns) range = range->parent;
  return range;
}

void AnnotationTable::hand_over(Sink& sink) const {
  for (const RangeDefinition& range : ranges_) {
    AnnotationActivity activity;
    activity.type = AnnotationActivity::Type::range;
    activity.start_ns = range.begin_ns;
    activity.duration_ns = range.is_closed ? static_cast<std::uint64_t>(range.end_ns) - static_cast<std::uint64_t>(range.begin_ns) : 0;
    activity.duration_known = range.is_closed;
    hand_over_one(sink, *range.thread, *range.name, activity);
  }
  for (const Event& event : events_) {
    AnnotationActivity activity;
    activity.start_ns = static_cast<std::int64_t>(event.time_ns);
    activity.value = event.value;
    if (event.type == probe::AnnotationType::counter) {
      activity.type = AnnotationActivity::Type::counter;
    } else if (event.type == probe::AnnotationType::end) {
      // What it ends began before the recording did.
      activity.type = AnnotationActivity::Type::range;
      activity.duration_known = false;
    }
    hand_over_one(sink, *event.thread, *event.text, activity);
  }
}

}  // namespace xpu::profiler
