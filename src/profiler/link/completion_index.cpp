#include "profiler/link/completion_index.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace xpu::profiler {
namespace {

// Host times and durations beyond this (146 years) are garbage; below it no sum of two overflows.
constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;
constexpr std::uint16_t kRaw = 1u << 15;  // the times are still ticks

/// Ticks from `from` to `to`; `known` is false when that is the wrong way round.
struct TickDistance {
  std::uint64_t ticks;
  bool known;
};
TickDistance distance(std::uint64_t from, std::uint64_t to, std::uint32_t valid_bits) {
  if (valid_bits >= 64) return {to - from, to >= from};
  const std::uint64_t mask = (std::uint64_t{1} << valid_bits) - 1;
  const std::uint64_t ticks = (to - from) & mask;
  return {ticks, ticks <= mask / 2};
}

bool starts_before(const Completion* a, const Completion* b) {
  return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->duration_ns < b->duration_ns;
}

}  // namespace

void ErrorCounts::add(std::uint32_t error_ns) {
  largest_ns_ = std::max(largest_ns_, error_ns);
  constexpr int kExactBits = 16;
  const int inexact_bits = std::max(static_cast<int>(std::bit_width(error_ns)) - kExactBits, 0);
  ++counts_[error_ns | ((std::uint32_t{1} << inexact_bits) - 1)];
  ++total_;
}

std::uint32_t ErrorCounts::median_ns() const {
  std::uint64_t seen = 0;
  for (const auto& [error_ns, count] : counts_) {
    seen += count;
    if (seen > (total_ - 1) / 2) return std::min(error_ns, largest_ns_);
  }
  return 0;
}

void CompletionIndex::add(std::size_t process, const trace::OperationCompletedRecord& record, CompletionAge age) {
  if (process >= processes_.size()) return;
  Writer& writer = processes_[process].writers[trace::operation_writer(record.operation)];
  Completion& completion = writer.completions[trace::operation_counter(record.operation)];
  if (completion.has(Completion::kPresent)) {
    ++duplicates_;
    return;
  }
  ++size_;
  completion.start_ns = static_cast<std::int64_t>(record.start);
  completion.duration_ns = record.end;
  completion.queued_before_ns = record.queued;
  completion.submit_before_ns = record.submit;
  completion.queue = record.queue;
  completion.status = record.status;
  std::uint16_t flags = Completion::kPresent | kRaw | age;
  if (record.header.flags & trace::kFlagUntimed) flags |= Completion::kUntimed;
  if (record.header.flags & trace::kFlagFailed) flags |= Completion::kFailed;
  if (record.header.flags & trace::kFlagUnfinishedAtExit) flags |= Completion::kUnfinished;
  const bool has_times =
      (record.header.flags & (trace::kFlagUntimed | trace::kFlagUnfinishedAtExit)) == 0 && (record.start | record.end) != 0;
  if (has_times) flags |= Completion::kTimed;
  completion.flags = flags;
}

void CompletionIndex::add(std::size_t process, const trace::CopyDetailRecord& record) {
  if (process >= processes_.size()) return;
  processes_[process].writers[trace::operation_writer(record.operation)].copies.push_back(
      {trace::operation_counter(record.operation), record.bytes, record.source_type, record.destination_type, record.direction,
       record.peer_device});
}

template <typename Visit>
void CompletionIndex::for_each_completion(Visit&& visit) {
  for (std::size_t process = 0; process < processes_.size(); ++process) {
    processes_[process].writers.for_each([&](std::uint64_t, Writer& writer) {
      writer.completions.for_each([&](std::uint64_t, Completion& completion) {
        if (completion.has(Completion::kPresent)) visit(process, completion);
      });
    });
  }
}

bool CompletionIndex::needs_host_hints(DefinitionTable& definitions) const {
  for (const ClockDefinition& clock : definitions.definitions().clocks) {
    if (definitions.clock(clock).counts && definitions.clock(clock).wraps()) return true;
  }
  return false;
}

/// A young completion may be of a queue that has not been described yet.
bool CompletionIndex::is_of_unknown_queue(std::size_t process, const Completion& completion, const DefinitionTable& definitions) {
  return completion.has(Completion::kYoung) && !definitions.has_queue(process, completion.queue);
}

void CompletionIndex::set_host_hint(std::size_t process, std::uint64_t operation, std::uint64_t enter_ns, DefinitionTable& definitions) {
  Completion* completion = find(process, operation);
  if (completion == nullptr || (completion->flags & kRaw) == 0 || is_of_unknown_queue(process, *completion, definitions)) return;
  const DeviceClock& clock = definitions.clock(*definitions.queue(process, completion->queue).clock);
  if (clock.wraps()) map_times(*completion, clock, enter_ns);
}

void CompletionIndex::map_times(Completion& completion, const DeviceClock& clock, std::uint64_t near_host_ns) {
  completion.flags &= static_cast<std::uint16_t>(~kRaw);
  if (!completion.has(Completion::kTimed)) return;
  const std::uint64_t start = static_cast<std::uint64_t>(completion.start_ns), end = completion.duration_ns;
  const std::uint64_t queued = completion.queued_before_ns, submit = completion.submit_before_ns;
  const TickDistance run = distance(start, end, clock.unit.valid_bits);
  const std::uint64_t duration_ns = clock.counts && run.known ? clock.map.ticks_to_ns(run.ticks) : kLatest;
  if (duration_ns >= kLatest) {
    completion.flags &= static_cast<std::uint16_t>(~Completion::kTimed);
    return;
  }
  completion.duration_ns = duration_ns;
  const auto set_before = [&](std::uint64_t tick, std::uint64_t& before_ns, Completion::Flag flag) {
    const TickDistance before = distance(tick, start, clock.unit.valid_bits);
    if (tick == 0 || !before.known) return;
    before_ns = clock.map.ticks_to_ns(before.ticks);
    if (before_ns < kLatest) completion.flags |= flag;
  };
  set_before(queued, completion.queued_before_ns, Completion::kQueued);
  set_before(submit, completion.submit_before_ns, Completion::kSubmit);

  // Which turn of a wrapping counter it was is known only beside a host time.
  const bool hinted = !clock.wraps() || near_host_ns != 0;
  if (clock.map.usable() && hinted) {
    const trace::MappedTime mapped = clock.map.to_host(start, near_host_ns);
    const bool sane = mapped.host_ns > -static_cast<std::int64_t>(kLatest) && mapped.host_ns < static_cast<std::int64_t>(kLatest);
    if (sane) {
      completion.start_ns = mapped.host_ns;
      completion.error_ns = static_cast<std::uint32_t>(std::min<std::uint64_t>(mapped.error_ns, std::numeric_limits<std::uint32_t>::max()));
      completion.flags |= Completion::kPlaced;
      earliest_ns_ = std::min(earliest_ns_, mapped.host_ns);
      return;
    }
  }
  completion.start_ns = static_cast<std::int64_t>(std::min(clock.map.ticks_to_ns(start), kLatest));
}

void CompletionIndex::sort_copies() {
  for (Process& process : processes_) {
    process.writers.for_each([](std::uint64_t, Writer& writer) {
      std::stable_sort(writer.copies.begin(), writer.copies.end(),
                       [](const CopyFacts& a, const CopyFacts& b) { return a.counter < b.counter; });
    });
  }
}

void CompletionIndex::map_all_times(DefinitionTable& definitions) {
  for_each_completion([&](std::size_t process, Completion& completion) {
    if ((completion.flags & kRaw) != 0 && !is_of_unknown_queue(process, completion, definitions))
      map_times(completion, definitions.clock(*definitions.queue(process, completion.queue).clock), 0);
  });
}

void CompletionIndex::place(DefinitionTable& definitions) {
  sort_copies();
  map_all_times(definitions);
  collect_errors(definitions);
  find_lanes(definitions);
}

void CompletionIndex::place_ready(DefinitionTable& definitions, PlacingState& state, bool is_last) {
  sort_copies();
  map_all_times(definitions);
  const auto is_certain = [&](std::size_t process, const Completion& completion) {
    if (is_last || completion.has(Completion::kCarried)) return true;
    if (completion.has(Completion::kYoung)) return false;
    if (!completion.has(Completion::kTimed)) return true;
    const DeviceClock& clock = definitions.clock(*definitions.queue(process, completion.queue).clock);
    return completion.has(Completion::kPlaced) && completion.start_ns <= clock.known_until_ns;
  };
  std::vector<std::vector<Completion*>> commands(definitions.definitions().queues.size());
  std::vector<Completion*> last_certain(commands.size(), nullptr);
  for_each_completion([&](std::size_t process, Completion& completion) {
    const bool certain = is_certain(process, completion);
    if ((completion.flags & kRaw) != 0) return;
    if (!completion.has(Completion::kPlaced)) {
      if (certain) completion.flags |= Completion::kReady;
      return;
    }
    const QueueDefinition& its_queue = definitions.queue(process, completion.queue);
    // Where commands end in any order, a young one is no predecessor of those that are not.
    if (!certain && its_queue.out_of_order) return;
    const std::uint32_t queue = its_queue.index;
    commands[queue].push_back(&completion);
    if (certain && (last_certain[queue] == nullptr || !starts_before(&completion, last_certain[queue]))) last_certain[queue] = &completion;
  });
  if (state.lanes.size() < commands.size()) state.lanes.resize(commands.size());
  for (std::size_t queue = 0; queue < commands.size(); ++queue) {
    if (last_certain[queue] == nullptr) continue;
    sort_by_start(commands[queue]);
    for (Completion* completion : commands[queue]) {
      if (starts_before(last_certain[queue], completion)) break;
      place_on(state.lanes[queue], *completion);
      completion->flags |= Completion::kReady;
    }
  }
  state.errors.resize(std::max(state.errors.size(), definitions.definitions().clocks.size()));
  for_each_completion([&](std::size_t process, Completion& completion) {
    if (completion.has(Completion::kPlaced) && completion.has(Completion::kReady))
      state.errors[definitions.queue(process, completion.queue).clock->index].add(completion.error_ns);
  });
}

void CompletionIndex::set_errors(DefinitionTable& definitions, const PlacingState& state) {
  for (const ClockDefinition& clock : definitions.definitions().clocks) {
    if (clock.index >= state.errors.size() || state.errors[clock.index].is_empty()) continue;
    definitions.set_error(clock, state.errors[clock.index].median_ns(), state.errors[clock.index].largest_ns());
  }
}

void CompletionIndex::collect_errors(DefinitionTable& definitions) {
  std::vector<std::vector<std::uint32_t>> errors(definitions.definitions().clocks.size());
  for_each_completion([&](std::size_t process, Completion& completion) {
    if (completion.has(Completion::kPlaced))
      errors[definitions.queue(process, completion.queue).clock->index].push_back(completion.error_ns);
  });
  for (const ClockDefinition& clock : definitions.definitions().clocks) {
    std::vector<std::uint32_t>& all = errors[clock.index];
    if (all.empty()) continue;
    const auto median = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::nth_element(all.begin(), median, all.end());
    definitions.set_error(clock, *median, *std::max_element(median, all.end()));
  }
}

/// Ties in the order of writers and counters, which the list has.
void CompletionIndex::sort_by_start(std::vector<Completion*>& commands) {
  if (!std::is_sorted(commands.begin(), commands.end(), starts_before)) std::stable_sort(commands.begin(), commands.end(), starts_before);
}

void CompletionIndex::place_on(LaneAssigner& lanes, Completion& completion) {
  const Placement placement = lanes.place({completion.start_ns, completion.duration_ns, completion.error_ns});
  completion.lane = placement.lane;
  completion.nudge_ns = placement.nudge_ns;
}

void CompletionIndex::find_lanes(DefinitionTable& definitions) {
  // Commands of an in-order queue that one thread feeds lie in the index in the order of their starts, so lanes come out of one sweep.
  // Where that fails, the queue is done again from a sorted list, which only then costs memory.
  struct Sweep {
    LaneAssigner lanes;
    std::int64_t last_start_ns = INT64_MIN;
    std::uint64_t commands = 0;
    bool sorted = true;
  };
  std::vector<Sweep> sweeps(definitions.definitions().queues.size());
  for_each_completion([&](std::size_t process, Completion& completion) {
    if (!completion.has(Completion::kPlaced)) return;
    Sweep& sweep = sweeps[definitions.queue(process, completion.queue).index];
    ++sweep.commands;
    if (!sweep.sorted) return;
    sweep.sorted = completion.start_ns > sweep.last_start_ns;
    sweep.last_start_ns = completion.start_ns;
    if (sweep.sorted) place_on(sweep.lanes, completion);
  });

  std::vector<std::vector<Completion*>> unsorted(sweeps.size());
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    if (!sweeps[i].sorted) unsorted[i].reserve(sweeps[i].commands);
  }
  if (std::all_of(sweeps.begin(), sweeps.end(), [](const Sweep& sweep) { return sweep.sorted; })) return;
  for_each_completion([&](std::size_t process, Completion& completion) {
    if (!completion.has(Completion::kPlaced)) return;
    const std::uint32_t queue = definitions.queue(process, completion.queue).index;
    if (!sweeps[queue].sorted) unsorted[queue].push_back(&completion);
  });
  for (std::vector<Completion*>& commands : unsorted) {
    sort_by_start(commands);
    LaneAssigner lanes;
    for (Completion* completion : commands) place_on(lanes, *completion);
    commands = {};
  }
}

Completion* CompletionIndex::find(std::size_t process, std::uint64_t operation) noexcept {
  Writer* writer = processes_[process].writers.find(trace::operation_writer(operation));
  if (writer == nullptr) return nullptr;
  Completion* completion = writer->completions.find(trace::operation_counter(operation));
  return completion != nullptr && completion->has(Completion::kPresent) ? completion : nullptr;
}

const CopyFacts* CompletionIndex::find_copy(std::size_t process, std::uint64_t operation) noexcept {
  Writer* writer = processes_[process].writers.find(trace::operation_writer(operation));
  if (writer == nullptr) return nullptr;
  const std::uint64_t counter = trace::operation_counter(operation);
  std::vector<CopyFacts>& copies = writer->copies;
  if (writer->next_copy >= copies.size() || copies[writer->next_copy].counter != counter) {
    const auto found = std::lower_bound(copies.begin(), copies.end(), counter,
                                        [](const CopyFacts& copy, std::uint64_t wanted) { return copy.counter < wanted; });
    if (found == copies.end() || found->counter != counter) return nullptr;
    writer->next_copy = static_cast<std::size_t>(found - copies.begin());
  }
  return &copies[writer->next_copy++];
}

}  // namespace xpu::profiler
