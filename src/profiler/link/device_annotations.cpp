#include "profiler/link/device_annotations.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "profiler/time_difference.hpp"

namespace xpu::profiler {
namespace {

std::uint32_t depth_of(const RangeDefinition& range) {
  std::uint32_t depth = 0;
  for (const RangeDefinition* around = range.parent; around != nullptr; around = around->parent) ++depth;
  return depth;
}

std::uint32_t depth_of(const CpuOperationActivity& annotation) {
  std::uint32_t depth = 0;
  for (const CpuOperationActivity* around = annotation.annotation; around != nullptr; around = around->annotation) ++depth;
  return depth;
}

const ExternalId* user_annotation_of(const DeviceActivity& activity) {
  const auto is_one = [](const ExternalId& id) { return id.family == static_cast<std::uint32_t>(kUserAnnotationFamily); };
  const auto found = std::find_if(activity.external_ids.begin(), activity.external_ids.end(), is_one);
  return found == activity.external_ids.end() ? nullptr : &*found;
}

}  // namespace

void DeviceAnnotations::add(const DeviceActivity& activity) {
  if (!activity.timed || !activity.placed || activity.command == Command::marker || activity.command == Command::barrier) return;
  for (const RangeDefinition* range = activity.range; range != nullptr; range = range->parent) {
    if (!range->name->text.empty()) extend(span_of(*range, *activity.queue), activity);
  }
  for (const CpuOperationActivity* annotation = activity.annotation; annotation != nullptr; annotation = annotation->annotation) {
    Span& span = span_of({annotation, 0}, *activity.queue);
    if (span.operation == nullptr) {
      span.operation = annotation;
      span.depth = depth_of(*annotation);
    }
    extend(span, activity);
  }
  if (activity.annotation != nullptr) return;
  if (const ExternalId* id = user_annotation_of(activity)) {
    Span& span = span_of({activity.process, id->id}, *activity.queue);
    span.id = id->id;
    extend(span, activity);
  }
}

/// As pictures show it: where a command was moved aside the span follows.
void DeviceAnnotations::extend(Span& span, const DeviceActivity& activity) {
  const std::int64_t start = end_ns(activity.start_ns, activity.nudge_ns), end = end_ns(start, activity.duration_ns);
  span.start_ns = span.commands == 0 ? start : std::min(span.start_ns, start);
  span.end_ns = span.commands == 0 ? end : std::max(span.end_ns, end);
  ++span.commands;
}

DeviceAnnotations::Span& DeviceAnnotations::span_of(const RangeDefinition& range, const QueueDefinition& queue) {
  if (range.index >= first_range_span_.size()) first_range_span_.resize(range.index + 1);
  std::uint32_t& first = first_range_span_[range.index];
  for (std::uint32_t at = first; at != 0; at = range_spans_[at - 1].next) {
    Span& span = spans_[range_spans_[at - 1].span - 1];
    if (span.queue == &queue) return span;
  }
  Span& span = spans_.emplace_back();
  span.queue = &queue;
  span.range = &range;
  span.depth = depth_of(range);
  range_spans_.push_back({static_cast<std::uint32_t>(spans_.size()), first});
  first = static_cast<std::uint32_t>(range_spans_.size());
  return span;
}

DeviceAnnotations::Span& DeviceAnnotations::span_of(const Key& annotation, const QueueDefinition& queue) {
  const auto [known, is_new] = framework_spans_.try_emplace({annotation, &queue}, spans_.size());
  if (is_new) spans_.emplace_back().queue = &queue;
  return spans_[known->second];
}

void DeviceAnnotations::hand_over(const std::function<void(const DeviceAnnotationActivity&)>& take) const {
  std::vector<std::uint32_t> order(spans_.size());
  std::iota(order.begin(), order.end(), 0u);
  // The outer one is the longer one and, of two that are equal, the one that was around the other on the host.
  std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
    const Span &a = spans_[left], &b = spans_[right];
    return std::tie(a.queue->index, a.start_ns, b.end_ns, a.depth, left) < std::tie(b.queue->index, b.start_ns, a.end_ns, b.depth, right);
  });
  const QueueDefinition* queue = nullptr;
  std::vector<std::vector<std::int64_t>> open_ends_ns;  // by lane: of those that may hold what comes, the innermost last
  for (const std::uint32_t index : order) {
    const Span& span = spans_[index];
    if (std::exchange(queue, span.queue) != span.queue) open_ends_ns.clear();
    DeviceAnnotationActivity activity;
    activity.process = span.queue->process;
    activity.queue = span.queue;
    activity.start_ns = span.start_ns;
    activity.duration_ns = static_cast<std::uint64_t>(difference_ns(span.end_ns, span.start_ns));
    activity.commands = span.commands;
    std::string number;
    if (span.range != nullptr) {
      activity.name = span.range->name->text;
    } else if (span.operation != nullptr) {
      activity.name = span.operation->name->text;
      activity.external_id = span.operation->external_id;
    } else {
      number = "annotation " + std::to_string(span.id);
      activity.name = number;
      activity.external_id = ExternalId{span.id, static_cast<std::uint32_t>(kUserAnnotationFamily)};
    }
    for (activity.lane = 0;; ++activity.lane) {
      if (activity.lane == open_ends_ns.size()) open_ends_ns.emplace_back();
      std::vector<std::int64_t>& open = open_ends_ns[activity.lane];
      while (!open.empty() && open.back() <= span.start_ns) open.pop_back();
      if (!open.empty() && open.back() < span.end_ns) continue;
      open.push_back(span.end_ns);
      break;
    }
    take(activity);
  }
}

}  // namespace xpu::profiler
