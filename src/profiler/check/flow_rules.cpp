#include "profiler/check/flow_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "xpu/base/text.hpp"

namespace xpu::profiler {
namespace {

int order_of(char phase) { return phase == 's' ? 0 : phase == 't' ? 1 : 2; }

}  // namespace

void FlowRules::add(const TraceEvent& event) {
  const char phase = event.letter();
  if (phase != 's' && phase != 't' && phase != 'f') return;
  ends_.push_back({tables_.texts.key(event.id), *event.time.thousandths, event.index, tables_.texts.id(event.category.text),
                   tables_.texts.id(event.name.text), tables_.rows.id(event), phase, phase == 'f' && event.binding_point.text != "e"});
}

void FlowRules::finish(std::span<const TraceSlice> slices) {
  std::sort(ends_.begin(), ends_.end(), [](const End& left, const End& right) {
    return std::tuple(left.category, left.id, order_of(left.phase), left.time_ns, left.event) <
           std::tuple(right.category, right.id, order_of(right.phase), right.time_ns, right.event);
  });
  for (auto first = ends_.cbegin(); first != ends_.cend();) {
    const auto last = std::find_if(first, ends_.cend(),
                                   [&](const End& end) { return std::tie(end.category, end.id) != std::tie(first->category, first->id); });
    check_flow({first, last});
    ++flows_;
    first = last;
  }
  check_places(slices);
}

void FlowRules::check_flow(std::span<const End> ends) {
  const auto starts = static_cast<std::size_t>(std::count_if(ends.begin(), ends.end(), [](const End& end) { return end.phase == 's'; }));
  if (starts == 0) {
    report(Rule::flow_without_start, ends.front(), "has no start");
    return;
  }
  const End& start = ends.front();
  for (const End& again : ends.subspan(1, starts - 1))
    report(Rule::flow_started_twice, again, fmt::format("starts in event {} already", start.event));
  if (ends.back().phase != 'f') report(Rule::flow_without_finish, start, "has no finish");
  for (const End& end : ends.subspan(starts)) {
    const std::int64_t early_ns = start.time_ns - end.time_ns;
    const std::int64_t error_ns = tables_.error_ns(start.row) + tables_.error_ns(end.row);
    if (early_ns <= std::max(error_ns, tables_.resolution_ns())) continue;
    report(Rule::flow_finish_before_start, end,
           fmt::format("ends {} before its start, event {}; the clocks' stated error is {}", microseconds_text(early_ns), start.event,
                       microseconds_text(error_ns)));
  }
}

/// Ends and slices of each row side by side, both in the order of time.
void FlowRules::check_places(std::span<const TraceSlice> slices) {
  std::sort(ends_.begin(), ends_.end(),
            [](const End& left, const End& right) { return std::tie(left.row, left.time_ns) < std::tie(right.row, right.time_ns); });
  const std::int64_t resolution_ns = tables_.resolution_ns();
  std::size_t next = 0;
  std::int64_t latest_end_ns = INT64_MIN;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const End& end = ends_[i];
    if (i == 0 || ends_[i - 1].row != end.row) {
      latest_end_ns = INT64_MIN;
      while (next < slices.size() && slices[next].row < end.row) ++next;
    }
    for (; next < slices.size() && slices[next].row == end.row && slices[next].start_ns - resolution_ns <= end.time_ns; ++next)
      latest_end_ns = std::max(latest_end_ns, slices[next].end_ns);
    const bool is_inside = latest_end_ns != INT64_MIN && latest_end_ns >= end.time_ns - resolution_ns;
    const bool has_next = end.binds_to_next && next < slices.size() && slices[next].row == end.row;
    if (is_inside || has_next) continue;
    report(Rule::flow_outside_slice, end,
           fmt::format("its {} lies in no slice of row {}",
                       end.phase == 's'   ? "start"
                       : end.phase == 't' ? "step"
                                          : "finish",
                       tables_.rows.row(end.row).text()));
  }
}

void FlowRules::report(Rule rule, const End& end, const std::string& detail) {
  findings_.add(rule, end.event, [&] {
    return TracePlace{end.event, tables_.texts.text(end.name), end.time_ns,
                      fmt::format("{} id {} {}", tables_.texts.text(end.category), tables_.texts.key_text(end.id), detail)};
  });
}

}  // namespace xpu::profiler
