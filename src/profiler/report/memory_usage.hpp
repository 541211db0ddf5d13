#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profiler/report/annotated_ranges.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// Allocations and releases of a recording, in any order: how much was alive when, and whose the peak is. 48 bytes for each.
class MemoryUsage {
 public:
  void add(const MemoryActivity& activity);
  /// By process and context. Times are after `origin_ns`. `ranges` own what their thread allocates inside of them.
  std::vector<Report::Memory> take(const Definitions& definitions, AnnotatedRanges& ranges, std::int64_t origin_ns);

 private:
  struct Event {
    std::int64_t time_ns;
    std::uint64_t address, bytes, alive_bytes;
    const ThreadDefinition* thread;
    bool allocates;
  };
  /// A block that was alive at the peak.
  struct Block {
    std::int64_t time_ns;
    std::uint64_t bytes;
    const ThreadDefinition* thread;
  };

  static void sort(std::vector<Event>& events);
  static std::vector<Block> blocks_at(const std::vector<Event>& events, std::size_t peak);
  static std::vector<Report::MemoryOwner> owners_of(std::vector<Block> blocks, AnnotatedRanges& ranges, std::uint64_t peak_bytes);
  static void add_timeline(const std::vector<Event>& events, Report::Memory& row);

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Event>> events_;  // process index, context
};

}  // namespace xpu::profiler
