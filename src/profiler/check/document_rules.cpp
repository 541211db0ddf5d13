#include "profiler/check/document_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "xpu/base/text.hpp"

namespace xpu::profiler {
namespace {

constexpr std::int64_t kNsPerDay = std::int64_t{24} * 3'600 * 1'000'000'000;
constexpr std::int64_t kNsOf2010 = 14'610 * kNsPerDay;  // 40 years of 365 days and 10 leap days after 1970

// Sums of such figures fit.
constexpr std::int64_t kLargestFigure = std::int64_t{1} << 53;

std::int64_t figure(const auto& figures, std::string_view name) {
  const auto found = figures.find(name);
  return found == figures.end() ? 0 : found->second;
}

}  // namespace

void DocumentRules::add(std::span<const std::string> path, const TraceValue& value) {
  if (path.size() == 1 && path[0] == "baseTimeNanoseconds") {
    base_ = value;
  } else if (path.size() == 2 && (path[0] == "droppedRecords" || path[0] == "writtenEvents")) {
    if (value.integer && *value.integer >= 0 && *value.integer <= kLargestFigure) {
      (path[0] == "droppedRecords" ? dropped_ : written_)[path[1]] = *value.integer;
    } else {
      findings_.add(Rule::wrong_type, fmt::format("\"{}\" of {} is no count", path[1], path[0]));
    }
  } else if (path.size() == 3 && path[0] == "clocks" && value.integer) {
    if (path[2] == "device") clocks_[path[1]].device = value.integer;
    if (path[2] == "error max ns") clocks_[path[1]].error_max_ns = value.integer;
  }
}

void DocumentRules::add(const TraceEvent& event) {
  const char phase = event.letter();
  if (phase == 'M' || !event.time.thousandths) return;
  const std::int64_t time_ns = *event.time.thousandths;
  first_ns_ = std::min(first_ns_.value_or(time_ns), time_ns);
  last_ns_ = std::max(last_ns_.value_or(time_ns), time_ns);
  if (phase == 's') ++arrows_;
  if (phase == 'X' && event.category.text == "Trace") {
    const std::int64_t end_ns = *event.end_ns();
    window_begin_ns_ = std::min(window_begin_ns_.value_or(time_ns), time_ns);
    window_end_ns_ = std::max(window_end_ns_.value_or(end_ns), end_ns);
    window_events_.push_back(event.index);
  } else if ((phase == 'i' || phase == 'I') && event.name.text == "Record Window End") {
    stated_end_ns_ = time_ns;
  }
}

void DocumentRules::finish_clocks() {
  for (const auto& [place, clock] : clocks_) {
    if (!clock.device || !clock.error_max_ns) continue;
    std::int64_t& error_ns = tables_.device_error_ns[*clock.device];
    error_ns = std::clamp(*clock.error_max_ns, error_ns, kLargestErrorNs);
  }
}

void DocumentRules::finish(std::span<const TraceSlice> slices, const TraceCheck& check, std::uint64_t now_unix_ns) {
  check_base_time(now_unix_ns);
  check_window(slices);
  check_figures(slices, check);
}

/// Files without the key have times since 1970 or since the machine's start; nothing says which.
void DocumentRules::check_base_time(std::uint64_t now_unix_ns) {
  if (!base_) return;
  if (!base_->integer) {
    findings_.add(Rule::wrong_type, "baseTimeNanoseconds is no integer of nanoseconds");
    return;
  }
  if (!first_ns_) return;
  // In double: only days matter, and nothing overflows.
  const double base_ns = static_cast<double>(*base_->integer);
  const double first_ns = base_ns + static_cast<double>(*first_ns_), last_ns = base_ns + static_cast<double>(*last_ns_);
  if (first_ns < static_cast<double>(kNsOf2010)) {
    findings_.add(Rule::implausible_base_time,
                  fmt::format("with {} the first event is {:.1f} days after 1970", base_->text, first_ns / static_cast<double>(kNsPerDay)));
  } else if (last_ns > static_cast<double>(now_unix_ns) + static_cast<double>(kNsPerDay)) {
    findings_.add(Rule::implausible_base_time, fmt::format("with {} the last event is {:.1f} days from now", base_->text,
                                                           (last_ns - static_cast<double>(now_unix_ns)) / static_cast<double>(kNsPerDay)));
  }
}

void DocumentRules::check_window(std::span<const TraceSlice> slices) {
  if (!window_begin_ns_) return;
  const std::int64_t begin_ns = *window_begin_ns_, end_ns = stated_end_ns_ ? *stated_end_ns_ : *window_end_ns_;
  for (const TraceSlice& slice : slices) {
    if (slice.start_ns >= begin_ns - tables_.resolution_ns() && slice.end_ns <= end_ns + tables_.resolution_ns()) continue;
    if (std::binary_search(window_events_.begin(), window_events_.end(), slice.event)) continue;
    findings_.add(Rule::outside_record_window, slice.event, [&] {
      return TracePlace{slice.event, tables_.texts.text(slice.name), slice.start_ns,
                        fmt::format("until {}; the window is {} to {}", microseconds_text(slice.end_ns), microseconds_text(begin_ns),
                                    microseconds_text(end_ns))};
    });
  }
}

void DocumentRules::compare(std::string_view what, std::uint64_t counted) {
  const auto stated = written_.find(what);
  if (stated == written_.end() || static_cast<std::uint64_t>(stated->second) == counted) return;
  findings_.add(Rule::conservation_mismatch, fmt::format("writtenEvents says {} {}, the file has {}", stated->second, what, counted));
}

void DocumentRules::check_figures(std::span<const TraceSlice> slices, const TraceCheck& check) {
  compare("slices", slices.size());
  compare("kernels", check.kernels);
  compare("flows", arrows_);
  if (written_.contains("commands") && written_.contains("slices of commands")) {
    const std::int64_t shown = figure(written_, "slices of commands"), submitted = figure(written_, "commands");
    const std::int64_t missing = figure(dropped_, "lost") + figure(dropped_, "pending") + figure(dropped_, "without times") +
                                 figure(dropped_, "without place in time");
    if (shown + missing != submitted) {
      findings_.add(Rule::conservation_mismatch,
                    fmt::format("of {} commands {} are shown and {} accounted for as missing", submitted, shown, missing));
    }
    if (check.device_slices > static_cast<std::uint64_t>(shown)) {
      findings_.add(Rule::conservation_mismatch,
                    fmt::format("writtenEvents says {} slices of commands, the file has {} of devices", shown, check.device_slices));
    }
  }
  for (const auto& [what, count] : dropped_) {
    if (count <= 0) continue;
    findings_.add(Rule::stated_losses, fmt::format("{}: {}", what, count), static_cast<std::uint64_t>(count));
  }
}

}  // namespace xpu::profiler
