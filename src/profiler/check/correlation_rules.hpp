#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiler/check/findings.hpp"
#include "profiler/check/trace_event.hpp"
#include "profiler/check/trace_tables.hpp"

namespace xpu::profiler {

/// Each device slice names the call that submitted it, and begins no earlier than that.
class CorrelationRules {
 public:
  /// `tables` and `findings` must outlive it.
  CorrelationRules(TraceTables& tables, Findings& findings) : tables_(tables), findings_(findings) {}

  /// An event that `check_event` let pass, of any phase.
  void add(const TraceEvent& event);
  /// Once, when there are no more. Fills in the figures of `check` that are about calls and device slices.
  void finish(TraceCheck& check);

 private:
  struct Side {
    std::uint64_t correlation;
    std::int64_t start_ns;
    std::uint64_t event;
    std::uint32_t category, name, row;
  };
  /// `call`: the earliest of the same correlation, or null.
  void check_device_slice(const Side& slice, const Side* call);
  void report_repeated(std::span<const Side> calls);
  TracePlace place_of(const Side& side, std::string detail) const;

  TraceTables& tables_;
  Findings& findings_;
  std::vector<Side> calls_, device_slices_;
  std::uint64_t call_count_ = 0, device_slice_count_ = 0, kernel_count_ = 0;
};

}  // namespace xpu::profiler
