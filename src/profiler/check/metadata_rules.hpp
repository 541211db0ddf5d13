#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "profiler/check/findings.hpp"
#include "profiler/check/trace_event.hpp"

namespace xpu::profiler {

/// Rows are described once, and no device is listed on which nothing happens.
class MetadataRules {
 public:
  /// `findings` must outlive it.
  explicit MetadataRules(Findings& findings) : findings_(findings) {}

  /// An event that `check_event` let pass, of any phase.
  void add(const TraceEvent& event);
  /// Once, when there are no more.
  void finish();

 private:
  struct Description {
    std::string value;
    std::uint64_t event;
  };
  struct Device {
    std::string label;
    std::uint64_t event;
  };
  void add_description(const TraceEvent& event);

  Findings& findings_;
  std::unordered_map<std::string, Description> descriptions_;  // by name and row
  std::unordered_map<std::string, Device> devices_;            // by pid
  std::unordered_set<std::string> used_;                       // pids on which something happens
};

}  // namespace xpu::profiler
