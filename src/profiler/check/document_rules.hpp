#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/check/findings.hpp"
#include "profiler/check/slice_rules.hpp"
#include "profiler/check/trace_event.hpp"
#include "profiler/check/trace_tables.hpp"

namespace xpu::profiler {

/// What the file says of itself as a whole: when it was recorded, what is in it, what is missing.
class DocumentRules {
 public:
  /// `tables` and `findings` must outlive it.
  DocumentRules(TraceTables& tables, Findings& findings) : tables_(tables), findings_(findings) {}

  /// A value outside the list of events (trace_parser.hpp).
  void add(std::span<const std::string> path, const TraceValue& value);
  /// An event that `check_event` let pass, of any phase.
  void add(const TraceEvent& event);
  /// When there are no more values: the clocks' errors, which other rules ask the tables for.
  void finish_clocks();
  /// Once, with all slices and the counts of `check` complete.
  void finish(std::span<const TraceSlice> slices, const TraceCheck& check, std::uint64_t now_unix_ns);

 private:
  struct Clock {
    std::optional<std::int64_t> device, error_max_ns;
  };
  using Figures = std::map<std::string, std::int64_t, std::less<>>;

  void check_base_time(std::uint64_t now_unix_ns);
  void check_window(std::span<const TraceSlice> slices);
  void check_figures(std::span<const TraceSlice> slices, const TraceCheck& check);
  void compare(std::string_view what, std::uint64_t counted);

  TraceTables& tables_;
  Findings& findings_;
  std::map<std::string, Clock> clocks_;  // by place in the list
  Figures dropped_, written_;
  std::optional<TraceValue> base_;
  std::optional<std::int64_t> first_ns_, last_ns_;  // of all events with a time
  std::vector<std::uint64_t> window_events_;        // those that say what the window is; ascending
  std::optional<std::int64_t> window_begin_ns_, window_end_ns_, stated_end_ns_;
  std::uint64_t arrows_ = 0;
};

}  // namespace xpu::profiler
