#include "profiler/check/correlation_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "profiler/check/event_rules.hpp"
#include "xpu/base/text.hpp"

namespace xpu::profiler {

void CorrelationRules::add(const TraceEvent& event) {
  if (event.letter() != 'X') return;
  const bool is_device_work = event.is_device_work();
  if (!is_device_work && !event.is_call()) return;
  ++(is_device_work ? device_slice_count_ : call_count_);
  if (event.category.text == "kernel") ++kernel_count_;
  const TraceValue& correlation = event.details.correlation;
  if (!correlation.is(TraceValue::Type::number) && !correlation.is(TraceValue::Type::text)) {
    if (is_device_work) {
      findings_.add(Rule::device_without_correlation, event.index,
                    [&] { return profiler::place_of(event, "of category " + event.category.text); });
    }
    return;
  }
  (is_device_work ? device_slices_ : calls_)
      .push_back({tables_.texts.key(correlation), *event.time.thousandths, event.index, tables_.texts.id(event.category.text),
                  tables_.texts.id(event.name.text), tables_.rows.id(event)});
}

void CorrelationRules::finish(TraceCheck& check) {
  const auto by_correlation = [](const Side& left, const Side& right) {
    return std::tie(left.correlation, left.start_ns, left.event) < std::tie(right.correlation, right.start_ns, right.event);
  };
  std::sort(calls_.begin(), calls_.end(), by_correlation);
  std::sort(device_slices_.begin(), device_slices_.end(), by_correlation);
  check.kernels = kernel_count_;
  check.device_slices = device_slice_count_;
  check.device_slices_with_correlation = device_slices_.size();
  check.calls = call_count_;
  check.calls_with_correlation = calls_.size();
  if (call_count_ == 0 && !device_slices_.empty()) {
    findings_.add(Rule::no_calls, fmt::format("{} device slices name a correlation", device_slices_.size()));
    return;
  }

  for (auto first = calls_.cbegin(); first != calls_.cend();) {
    const auto last = std::find_if(first, calls_.cend(), [&](const Side& call) { return call.correlation != first->correlation; });
    report_repeated({first, last});
    first = last;
  }
  auto call = calls_.cbegin();
  for (const Side& slice : device_slices_) {
    while (call != calls_.cend() && call->correlation < slice.correlation) ++call;
    const bool has_call = call != calls_.cend() && call->correlation == slice.correlation;
    check_device_slice(slice, has_call ? &*call : nullptr);
    check.device_slices_with_call += has_call ? 1 : 0;
  }
  auto slice = device_slices_.cbegin();
  for (const Side& each : calls_) {
    while (slice != device_slices_.cend() && slice->correlation < each.correlation) ++slice;
    check.calls_with_device_slice += slice != device_slices_.cend() && slice->correlation == each.correlation ? 1 : 0;
  }
}

void CorrelationRules::check_device_slice(const Side& slice, const Side* call) {
  const std::string correlation = tables_.texts.key_text(slice.correlation);
  if (call == nullptr) {
    findings_.add(Rule::stale_correlation, slice.event,
                  [&] { return place_of(slice, fmt::format("no call has its correlation {}", correlation)); });
    return;
  }
  const std::int64_t early_ns = call->start_ns - slice.start_ns;
  const std::int64_t error_ns = tables_.error_ns(slice.row);
  if (early_ns <= std::max(error_ns, tables_.resolution_ns())) return;
  findings_.add(Rule::device_before_call, slice.event, [&] {
    return place_of(slice, fmt::format("starts {} before event {} \"{}\" of its correlation {}; the clock's stated error is {}",
                                       microseconds_text(early_ns), call->event, tables_.texts.text(call->name), correlation,
                                       microseconds_text(error_ns)));
  });
}

/// A call of the runtime may be made of calls of the driver with the same correlation; two of one kind cannot both have submitted.
void CorrelationRules::report_repeated(std::span<const Side> calls) {
  if (calls.size() == 1) return;
  std::map<std::uint32_t, const Side*> first_by_category;
  for (const Side& call : calls) {
    const auto [first, is_new] = first_by_category.try_emplace(call.category, &call);
    if (is_new) continue;
    findings_.add(Rule::repeated_correlation, call.event, [&, &same = *first->second] {
      return place_of(call, fmt::format("event {} \"{}\" has correlation {} too", same.event, tables_.texts.text(same.name),
                                        tables_.texts.key_text(call.correlation)));
    });
  }
}

TracePlace CorrelationRules::place_of(const Side& side, std::string detail) const {
  return {side.event, tables_.texts.text(side.name), side.start_ns, std::move(detail)};
}

}  // namespace xpu::profiler
