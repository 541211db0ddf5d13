#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/probe.hpp"
#include "profiler/link/definition_table.hpp"
#include "xpu/profiler/sink.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// What programs said about themselves: marks, counters, and ranges, of which it knows which one a thread was in. 56 bytes for each range.
/// One owner at a time.
class AnnotationTable {
 public:
  /// Names of queues and threads are passed over.
  void add(std::size_t process, const trace::AnnotationRecord& record);
  /// Pairs beginnings and ends, which nest per thread. Once, after everything was added; `definitions` must be finished, and outlive it.
  void finish(DefinitionTable& definitions);

  /// The innermost range in which the thread was at that time, or null. Quick when times of a thread grow from call to call.
  const RangeDefinition* find(const ThreadDefinition& thread, std::int64_t time_ns);
  /// After `finish`: ranges in the order of threads and beginnings, the outer one first, then all else.
  void hand_over(Sink& sink) const;

 private:
  struct Event {
    std::uint64_t time_ns = 0;
    double value = 0;
    std::uint32_t thread = 0, text = 0;  // of the record, until it is finished; then indices of definitions
    std::uint32_t process = 0;
    probe::AnnotationType type = {};
  };
  static_assert(sizeof(Event) == 32, "a recording may have millions of ranges, each of which has two");
  /// Those of one thread, in `ranges_`.
  struct Span {
    std::size_t first = 0, last = 0;
    std::size_t next = 0;  // behind the last one that had begun at the time that was asked for last
  };
  void sort_events(DefinitionTable& definitions);

  const Definitions* definitions_ = nullptr;
  std::vector<Event> events_;            // after `finish`: no ranges
  std::vector<RangeDefinition> ranges_;  // never changed after `finish`
  std::vector<Span> threads_;            // by the thread's index
};

}  // namespace xpu::profiler
