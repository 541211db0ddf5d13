#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiler/check/findings.hpp"
#include "profiler/check/trace_event.hpp"
#include "profiler/check/trace_tables.hpp"

namespace xpu::profiler {

/// A slice as the rules about rows keep it.
struct TraceSlice {
  std::int64_t start_ns, end_ns;
  std::uint64_t event;
  std::uint32_t row, name;
  bool is_device_work;
};

/// Slices of one row nest, device work of one row does not overlap at all, and each begin has its end.
class SliceRules {
 public:
  /// `tables` and `findings` must outlive it.
  SliceRules(TraceTables& tables, Findings& findings) : tables_(tables), findings_(findings) {}

  /// An event that `check_event` let pass, of any phase.
  void add(const TraceEvent& event);
  /// Once, when there are no more.
  void finish();

  /// After `finish`: all slices, by row and then by start, the longer one first.
  std::span<const TraceSlice> slices() const { return slices_; }

 private:
  struct Mark {  // a begin or an end
    std::int64_t time_ns;
    std::uint64_t event;
    std::uint32_t row, name;
    bool begins, has_name;
  };
  void pair_marks();
  void report(const Mark& mark, std::string detail);
  void check_row(std::span<const TraceSlice> row, std::vector<const TraceSlice*>& open);
  void report_overlap(const TraceSlice& earlier, const TraceSlice& later);

  TraceTables& tables_;
  Findings& findings_;
  std::vector<TraceSlice> slices_;
  std::vector<Mark> marks_;
};

}  // namespace xpu::profiler
