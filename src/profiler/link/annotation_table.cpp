#include "profiler/link/annotation_table.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace xpu::profiler {
namespace {

constexpr std::uint32_t kNoParent = UINT32_MAX;

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
  events_.push_back({record.time_ns, record.value, record.thread, record.text, static_cast<std::uint32_t>(process), type});
}

void AnnotationTable::sort_events(DefinitionTable& definitions) {
  for (Event& event : events_) {
    event.thread = definitions.thread(event.process, event.thread).index;
    event.text = definitions.name(event.process, event.text).index;
  }
  const auto comes_before = [](const Event& a, const Event& b) { return std::tie(a.thread, a.time_ns) < std::tie(b.thread, b.time_ns); };
  // It costs as much memory again where there is something to sort.
  if (!std::is_sorted(events_.begin(), events_.end(), comes_before)) std::stable_sort(events_.begin(), events_.end(), comes_before);
}

void AnnotationTable::finish(DefinitionTable& definitions) {
  definitions_ = &definitions.definitions();
  sort_events(definitions);
  const auto is_begin = [](const Event& event) { return event.type == probe::AnnotationType::begin; };
  ranges_.reserve(static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), is_begin)));
  std::vector<std::uint32_t> open;  // in `ranges_`
  std::size_t kept = 0;             // events that are no part of a range
  for (const Event& event : events_) {
    if (!open.empty() && ranges_[open.back()].thread->index != event.thread) open.clear();
    if (is_begin(event)) {
      const std::uint32_t parent = open.empty() ? kNoParent : open.back();
      const auto index = static_cast<std::uint32_t>(ranges_.size());
      open.push_back(index);
      RangeDefinition& range = ranges_.emplace_back();
      range.index = index;
      range.thread = &definitions_->threads[event.thread];
      range.name = &definitions_->names[event.text];
      range.begin_ns = static_cast<std::int64_t>(event.time_ns);
      range.end_ns = std::numeric_limits<std::int64_t>::max();
      if (parent != kNoParent) range.parent = &ranges_[parent];  // there is room for all of them: none moves
      if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
      Span& span = threads_[event.thread];
      if (span.last == 0) span.first = span.next = index;
      span.last = ranges_.size();
    } else if (event.type == probe::AnnotationType::end && !open.empty()) {
      RangeDefinition& range = ranges_[open.back()];
      range.end_ns = static_cast<std::int64_t>(event.time_ns);
      range.is_closed = true;
      open.pop_back();
    } else {
      events_[kept++] = event;
    }
  }
  events_.resize(kept);
  events_.shrink_to_fit();
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
    hand_over_one(sink, definitions_->threads[event.thread], definitions_->names[event.text], activity);
  }
}

}  // namespace xpu::profiler
