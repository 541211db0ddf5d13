#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/probe.hpp"
#include "profiler/link/definition_table.hpp"
#include "xpu/profiler/sink.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// What programs said about themselves: marks, counters, and ranges, of which it knows which one a thread was in. One owner at a time.
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
    const ThreadDefinition* thread = nullptr;
    const NameDefinition* text = nullptr;
    std::uint64_t time_ns = 0;
    double value = 0;
    probe::AnnotationType type = {};
    std::uint32_t process = 0, writer = 0, text_id = 0;  // until the definitions are finished
  };
  /// Those of one thread, in `ranges_`.
  struct Span {
    std::size_t first = 0, last = 0;
    std::size_t next = 0;  // behind the last one that had begun at the time that was asked for last
  };

  std::vector<Event> events_;            // after `finish`: no ranges
  std::vector<RangeDefinition> ranges_;  // never changed after `finish`
  std::vector<Span> threads_;            // by the thread's index
};

}  // namespace xpu::profiler
