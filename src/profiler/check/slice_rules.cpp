#include "profiler/check/slice_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "xpu/base/text.hpp"

namespace xpu::profiler {

void SliceRules::add(const TraceEvent& event) {
  const char phase = event.letter();
  if (phase == 'X') {
    // Where a duration below 0 puts the end is anybody's guess; it is reported as what it is.
    const std::int64_t end_ns = std::max(*event.time.thousandths, *event.end_ns());
    slices_.push_back(
        {*event.time.thousandths, end_ns, event.index, tables_.rows.id(event), tables_.texts.id(event.name.text), event.is_device_work()});
  } else if (phase == 'B' || phase == 'E') {
    marks_.push_back({*event.time.thousandths, event.index, tables_.rows.id(event), tables_.texts.id(event.name.text), phase == 'B',
                      event.name.present()});
  }
}

void SliceRules::finish() {
  pair_marks();
  std::sort(slices_.begin(), slices_.end(), [](const TraceSlice& left, const TraceSlice& right) {
    return std::tuple(left.row, left.start_ns, right.end_ns, left.event) < std::tuple(right.row, right.start_ns, left.end_ns, right.event);
  });
  std::vector<const TraceSlice*> open;
  for (auto first = slices_.cbegin(); first != slices_.cend();) {
    const auto last = std::find_if(first, slices_.cend(), [&](const TraceSlice& slice) { return slice.row != first->row; });
    check_row({first, last}, open);
    first = last;
  }
}

void SliceRules::report(const Mark& mark, std::string detail) {
  findings_.add(Rule::unbalanced_begin_end, mark.event,
                [&] { return TracePlace{mark.event, tables_.texts.text(mark.name), mark.time_ns, std::move(detail)}; });
}

/// Makes slices of begins and ends, which nest per row; of those at one time, the order in the file counts.
void SliceRules::pair_marks() {
  std::sort(marks_.begin(), marks_.end(), [](const Mark& left, const Mark& right) {
    return std::tie(left.row, left.time_ns, left.event) < std::tie(right.row, right.time_ns, right.event);
  });
  std::vector<const Mark*> open;
  const auto close_row = [&] {
    for (const Mark* begin : open) report(*begin, "never ends");
    open.clear();
  };
  std::uint32_t row = 0;
  for (const Mark& mark : marks_) {
    if (mark.row != row) close_row();
    row = mark.row;
    if (mark.begins) {
      open.push_back(&mark);
      continue;
    }
    if (open.empty()) {
      report(mark, "ends what never began");
      continue;
    }
    const Mark& begin = *open.back();
    open.pop_back();
    if (mark.has_name && mark.name != begin.name) report(mark, fmt::format("ends \"{}\"", tables_.texts.text(begin.name)));
    slices_.push_back({begin.time_ns, mark.time_ns, begin.event, row, begin.name, false});
  }
  close_row();
}

void SliceRules::check_row(std::span<const TraceSlice> row, std::vector<const TraceSlice*>& open) {
  const std::int64_t resolution_ns = tables_.resolution_ns();
  const TraceSlice* device_work = nullptr;  // that ends last; annotations may lie around it
  open.clear();
  for (const TraceSlice& slice : row) {
    while (!open.empty() && open.back()->end_ns - resolution_ns <= slice.start_ns) open.pop_back();
    if (slice.is_device_work && device_work != nullptr && device_work->end_ns - resolution_ns > slice.start_ns) {
      report_overlap(*device_work, slice);
    } else if (!open.empty() && slice.end_ns - resolution_ns > open.back()->end_ns) {
      report_overlap(*open.back(), slice);
    }
    open.push_back(&slice);
    if (slice.is_device_work && (device_work == nullptr || slice.end_ns > device_work->end_ns)) device_work = &slice;
  }
}

void SliceRules::report_overlap(const TraceSlice& earlier, const TraceSlice& later) {
  findings_.add(earlier.is_device_work && later.is_device_work ? Rule::device_overlap : Rule::partial_overlap, later.event, [&] {
    const TraceRow& row = tables_.rows.row(later.row);
    return TracePlace{
        later.event, tables_.texts.text(later.name), later.start_ns,
        fmt::format("until {}, over event {} \"{}\" from {} to {}, on row {}", microseconds_text(later.end_ns), earlier.event,
                    tables_.texts.text(earlier.name), microseconds_text(earlier.start_ns), microseconds_text(earlier.end_ns), row.text())};
  });
}

}  // namespace xpu::profiler
