#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "xpu/profiler/report.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// Allocations and releases of a recording, in any order: how much was alive when, and whose the peak is. 48 bytes for each.
class MemoryUsage {
 public:
  void add(const MemoryActivity& activity);
  /// Ranges own what their thread allocates inside of them; everything else is passed over.
  void add(const AnnotationActivity& activity);
  /// By process and context. Times are after `origin_ns`.
  std::vector<Report::Memory> take(const Definitions& definitions, std::int64_t origin_ns);

 private:
  struct Event {
    std::int64_t time_ns;
    std::uint64_t address, bytes, alive_bytes;
    const ThreadDefinition* thread;
    bool allocates;
  };
  struct Range {
    std::int64_t begin_ns, end_ns;
    const NameDefinition* name;
  };
  /// A block that was alive at the peak.
  struct Block {
    std::int64_t time_ns;
    std::uint64_t bytes;
    const ThreadDefinition* thread;
  };

  static void sort(std::vector<Event>& events);
  static std::vector<Block> blocks_at(const std::vector<Event>& events, std::size_t peak);
  std::vector<Report::MemoryOwner> owners_of(std::vector<Block> blocks, std::uint64_t peak_bytes);
  static void add_timeline(const std::vector<Event>& events, Report::Memory& row);

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Event>> events_;  // process index, context
  std::map<const ThreadDefinition*, std::vector<Range>> ranges_;
};

}  // namespace xpu::profiler
