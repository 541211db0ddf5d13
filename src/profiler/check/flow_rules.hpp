#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiler/check/findings.hpp"
#include "profiler/check/slice_rules.hpp"
#include "profiler/check/trace_event.hpp"
#include "profiler/check/trace_tables.hpp"

namespace xpu::profiler {

/// An arrow has one start and at least one finish, does not point back in time, and each of its ends lies in a slice. Arrows are the same
/// when category and id are.
class FlowRules {
 public:
  /// `tables` and `findings` must outlive it.
  FlowRules(TraceTables& tables, Findings& findings) : tables_(tables), findings_(findings) {}

  /// An event that `check_event` let pass, of any phase.
  void add(const TraceEvent& event);
  /// Once, when there are no more, with all slices by row and start.
  void finish(std::span<const TraceSlice> slices);

  /// After `finish`: different arrows.
  std::uint64_t flows() const { return flows_; }

 private:
  struct End {
    std::uint64_t id;
    std::int64_t time_ns;
    std::uint64_t event;
    std::uint32_t category, name, row;
    char phase;          // s, t (a step) or f
    bool binds_to_next;  // a finish that belongs to the next slice of its row, not to the one around it
  };
  void check_flow(std::span<const End> ends);
  void check_places(std::span<const TraceSlice> slices);
  void report(Rule rule, const End& end, const std::string& detail);

  TraceTables& tables_;
  Findings& findings_;
  std::vector<End> ends_;
  std::uint64_t flows_ = 0;
};

}  // namespace xpu::profiler
