#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "xpu/profiler/activity.hpp"

namespace xpu::profiler {

/// What each queue did for each annotation: of the framework, by the external ids of its commands, and of the program, by the range in
/// which they were submitted. 84 bytes for each range and queue. One owner at a time.
class DeviceAnnotations {
 public:
  /// Markers, barriers and what has no place in time are passed over.
  void add(const DeviceActivity& activity);
  /// By queue and start, the outer one first, each on the lowest lane on which it lies in the others or beside them.
  void hand_over(const std::function<void(const DeviceAnnotationActivity&)>& take) const;

 private:
  struct Span {
    const QueueDefinition* queue = nullptr;
    const RangeDefinition* range = nullptr;           // or
    const CpuOperationActivity* operation = nullptr;  // or neither: nothing but the number is known
    std::uint64_t id = 0;
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint64_t commands = 0;
    std::uint32_t depth = 0;  // annotations around it
  };
  using Key = std::pair<const void*, std::uint64_t>;  // the annotation, or the process and the number

  static void extend(Span& span, const DeviceActivity& activity);
  Span& span_of(const RangeDefinition& range, const QueueDefinition& queue);
  Span& span_of(const Key& annotation, const QueueDefinition& queue);

  std::vector<Span> spans_;
  // Ranges are numbered, so that the span of one is found by its index; those of further queues hang on it.
  struct RangeSpan {
    std::uint32_t span = 0, next = 0;  // from 1, in `spans_` and in `range_spans_`; 0 = none
  };
  std::vector<RangeSpan> range_spans_;
  std::vector<std::uint32_t> first_range_span_;  // by range, from 1
  std::map<std::pair<Key, const QueueDefinition*>, std::size_t> framework_spans_;
};

}  // namespace xpu::profiler
