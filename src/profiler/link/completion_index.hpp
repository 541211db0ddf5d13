#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "profiler/link/definition_table.hpp"
#include "profiler/link/lanes.hpp"
#include "profiler/link/paged_index.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// The end of one operation. Until `CompletionIndex::place` the four times are raw ticks: start, end, queued, submit in the order of the
/// fields.
struct Completion {
  enum Flag : std::uint16_t {
    kPresent = 1u << 0,
    kFailed = 1u << 1,
    kUnfinished = 1u << 2,
    kTimed = 1u << 3,    ///< `duration_ns` holds.
    kPlaced = 1u << 4,   ///< `start_ns` is host time; else, when timed, time of the device's clock.
    kQueued = 1u << 5,   ///< `queued_before_ns` holds.
    kSubmit = 1u << 6,   ///< `submit_before_ns` holds.
    kLinked = 1u << 7,   ///< Its submission was seen.
    kUntimed = 1u << 8,  ///< By the record's own word.
    // Of records that come little by little:
    kYoung = 1u << 9,     ///< What was written before it may still come.
    kCarried = 1u << 10,  ///< It was there the last time already.
    kReady = 1u << 11,    ///< It has its place.
  };

  std::int64_t start_ns = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t queued_before_ns = 0, submit_before_ns = 0;  ///< This much before the start.
  std::uint32_t error_ns = 0;
  std::uint32_t nudge_ns = 0;
  std::uint32_t queue = 0;
  std::int32_t status = 0;
  std::uint32_t lane = 0;
  std::uint16_t flags = 0;

  bool has(Flag flag) const noexcept { return (flags & flag) != 0; }
};
static_assert(sizeof(Completion) == 56, "the memory of an export is mostly these: 250 bytes per launch are the limit for everything");

/// Bytes and places of a copy or fill.
struct CopyFacts {
  std::uint64_t counter = 0;
  std::uint64_t bytes = 0;
  std::uint8_t source_type = 0, destination_type = 0, direction = 0;
  std::uint32_t peer_device = 0;
};
static_assert(sizeof(CopyFacts) == 24);

/// How old a completion is, as a flag of it; 0 where all of them are there.
using CompletionAge = std::uint16_t;

/// How many commands had which error. Memory does not grow with commands: beyond 65,535 ns the errors of a group are taken for its largest.
class ErrorCounts {
 public:
  void add(std::uint32_t error_ns);
  bool is_empty() const noexcept { return counts_.empty(); }
  std::uint32_t median_ns() const;
  std::uint32_t largest_ns() const noexcept { return largest_ns_; }

 private:
  std::map<std::uint32_t, std::uint64_t> counts_;
  std::uint64_t total_ = 0;
  std::uint32_t largest_ns_ = 0;
};

/// What goes on from one `CompletionIndex` to the next where records come little by little.
struct PlacingState {
  std::vector<LaneAssigner> lanes;  ///< By queue.
  std::vector<ErrorCounts> errors;  ///< By clock.
};

/// Every completion of a source, found by process, writer and counter, with its times mapped to the host's clock and a lane of its queue.
/// One owner at a time.
class CompletionIndex {
 public:
  explicit CompletionIndex(std::size_t processes) : processes_(processes) {}

  void add(std::size_t process, const trace::OperationCompletedRecord& record, CompletionAge age = 0);
  void add(std::size_t process, const trace::CopyDetailRecord& record);

  /// True when some clock in use wraps: then the hosts' times of the submitting calls are needed, by `set_host_hint`, before `place`.
  bool needs_host_hints(DefinitionTable& definitions) const;
  void set_host_hint(std::size_t process, std::uint64_t operation, std::uint64_t enter_ns, DefinitionTable& definitions);

  /// Maps all times, finds the lanes, and tells `definitions` the error of each clock. Once, after everything was added.
  void place(DefinitionTable& definitions);
  /// The same where more is to come, for those whose place is certain: in the order of a queue, as far as anything that is not young
  /// reaches, and up to the newest reading of its clock, for which nothing waits twice. They are ready then. `is_last`: all are.
  void place_ready(DefinitionTable& definitions, PlacingState& state, bool is_last);
  static void set_errors(DefinitionTable& definitions, const PlacingState& state);

  /// Null when the operation has no completion.
  Completion* find(std::size_t process, std::uint64_t operation) noexcept;
  const CopyFacts* find_copy(std::size_t process, std::uint64_t operation) noexcept;
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t duplicates() const noexcept { return duplicates_; }
  /// The earliest start of a placed command, or INT64_MAX.
  std::int64_t earliest_ns() const noexcept { return earliest_ns_; }

 private:
  // Small pages: a damaged file that scatters its counters costs 7 KiB per record at most.
  using Completions = PagedIndex<Completion, 128>;
  struct Writer {
    Completions completions;
    std::vector<CopyFacts> copies;  // sorted by counter once placed
    std::size_t next_copy = 0;      // calls come in the order of their copies nearly always
  };
  struct Process {
    PagedIndex<Writer, 4> writers;
  };

  static bool is_of_unknown_queue(std::size_t process, const Completion& completion, const DefinitionTable& definitions);
  void map_times(Completion& completion, const DeviceClock& clock, std::uint64_t near_host_ns);
  void sort_copies();
  void map_all_times(DefinitionTable& definitions);
  void collect_errors(DefinitionTable& definitions);
  void find_lanes(DefinitionTable& definitions);
  static void sort_by_start(std::vector<Completion*>& commands);
  static void place_on(LaneAssigner& lanes, Completion& completion);
  template <typename Visit>
  void for_each_completion(Visit&& visit);

  std::vector<Process> processes_;
  std::uint64_t size_ = 0, duplicates_ = 0;
  std::int64_t earliest_ns_ = INT64_MAX;
};

}  // namespace xpu::profiler
