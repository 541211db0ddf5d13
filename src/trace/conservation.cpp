#include "xpu/trace/conservation.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/probe.hpp"
#include "trace/operation_set.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace {
namespace {

constexpr std::size_t kMaxListedPending = 1'000;

// A stretch of a queue's sequence numbers in which we listened: everything after `before`, up to the next stretch. A queue that is
// published again later in the recording begins a new one; what was used in between without us is nobody's.
struct Stretch {
  std::uint32_t before = 0;
  std::uint32_t highest = 0;
  std::uint32_t lowest = 0;  // 0: none was seen
  std::uint32_t seen = 0;
  bool is_described = true;
};

// Completions that a loss record says were dropped: for telling lost commands from pending ones by name.
struct LostRange {
  std::uint64_t first = 0, last = 0;
};

struct QueueState {
  std::vector<Stretch> stretches;  // sorted by `before`
  std::uint64_t on_record = 0;     // submissions
  std::uint64_t completions = 0;   // with or without a submission on record
  std::uint64_t recorded = 0, untimed = 0, failed = 0;
  std::uint64_t submissions_lost = 0, completions_lost = 0;
  std::vector<LostRange> lost_ranges;

  void saw_sequence(std::uint32_t sequence) {
    if (sequence == 0) return;
    auto stretch = std::lower_bound(stretches.begin(), stretches.end(), sequence,
                                    [](const Stretch& left, std::uint32_t right) { return left.before < right; });
    if (stretch == stretches.begin()) {
      // Used before any description of the queue on record: that description is missing.
      stretches.insert(stretches.begin(), {0, sequence, sequence, 1, false});
      return;
    }
    --stretch;
    ++stretch->seen;
    stretch->highest = std::max(stretch->highest, sequence);
    stretch->lowest = stretch->lowest == 0 ? sequence : std::min(stretch->lowest, sequence);
  }
  std::uint64_t sequences() const {
    std::uint64_t used = 0;
    for (const Stretch& stretch : stretches) used += stretch.highest > stretch.before ? stretch.highest - stretch.before : 0;
    return used;
  }
  // Of a part of a program: what was being submitted when it began may have any number from before, so a stretch begins with the first
  // number that was seen, and from before there is what was seen.
  std::uint64_t sequences_of_part() const {
    std::uint64_t used = 0;
    for (const Stretch& stretch : stretches) {
      if (stretch.lowest != 0) used += stretch.is_described ? stretch.highest - stretch.lowest + 1 : stretch.seen;
    }
    return std::max(used, on_record + submissions_lost);
  }
};

using QueueKey = std::pair<std::size_t, std::uint32_t>;  // process, queue: a forked child's queues have the numbers of its parent's

struct QueueKeyHash {
  std::size_t operator()(const QueueKey& key) const noexcept { return (key.first << 32 ^ key.second) * 0x9e3779b97f4a7c15u >> 3; }
};

template <typename Record>
const Record& as(const RecordHeader& header) {
  return reinterpret_cast<const Record&>(header);
}

/// What is known of each queue, and the figures that come of it.
class Books {
 public:
  explicit Books(bool part_of_a_program) : part_of_a_program_(part_of_a_program) {}

  QueueState& queue(std::size_t process, std::uint32_t id) {
    const QueueKey key{process, id};
    if (last_queue_ == nullptr || last_key_ != key) {
      last_queue_ = &queues_[key];  // references into an unordered_map stay valid
      last_key_ = key;
    }
    return *last_queue_;
  }
  template <typename Visit>
  void for_each_queue(Visit&& visit) {
    for (auto& [key, state] : queues_) visit(state);
  }

  static bool refused(const OperationSubmittedRecord& record) {
    return (record.header.flags & kFlagFailed) != 0 && record.queue_sequence == 0;
  }
  void submitted(QueueState& state, const OperationSubmittedRecord& record) {
    state.saw_sequence(record.queue_sequence);
    ++state.on_record;
  }
  static void count_recorded(QueueState& state, std::uint8_t bits) {
    ++state.recorded;
    if ((bits & OperationSet::kFailed) != 0) ++state.failed;
    if ((bits & OperationSet::kUntimed) != 0) ++state.untimed;
  }
  static std::uint8_t bits_of(std::uint32_t completion_flags) {
    std::uint8_t bits = OperationSet::kCompleted;
    if ((completion_flags & kFlagFailed) != 0) bits |= OperationSet::kFailed;
    if ((completion_flags & kFlagUntimed) != 0) bits |= OperationSet::kUntimed;
    return bits;
  }
  /// Returns whether an operation's completion was dropped.
  bool lost(std::size_t process, const LossRecord& record) {
    if ((record.header.flags & kFlagNotOperation) != 0) {
      result.other_records_lost += record.count;
      return false;
    }
    if (record.count == 0) return false;
    losses_[{process, record.queue, record.cause}] += record.count;
    const bool completion = (record.header.flags & kFlagCompletionLost) != 0;
    QueueState& state = queue(process, record.queue);
    if (record.queue != 0) state.saw_sequence(record.last_sequence);
    (completion ? state.completions_lost : state.submissions_lost) += record.count;
    return completion;
  }

  /// Once, after everything was added.
  void close(const std::vector<ProcessInfo>& processes) {
    std::vector<std::pair<QueueKey, const QueueState*>> sorted;
    for (const auto& [key, state] : queues_) sorted.emplace_back(key, &state);
    std::sort(sorted.begin(), sorted.end());

    auto next = sorted.begin();
    for (std::size_t process = 0; process < processes.size(); ++process) {
      auto end = next;
      while (end != sorted.end() && end->first.first == process) ++end;
      close_process(process, processes[process], std::span(next, end));
      next = end;
    }
    for (const QueueBooks& books : result.queues) {
      result.total.submitted += books.submitted;
      result.total.recorded += books.recorded;
      result.total.lost += books.lost;
      result.total.pending += books.pending;
      result.total.untimed += books.untimed;
      result.total.failed += books.failed;
    }
    result.total.unexplained = unexplained(result.total);
    for (const auto& [key, count] : losses_) result.losses.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  }

  Conservation result;

 private:
  static std::int64_t unexplained(const QueueBooks& books) {
    return static_cast<std::int64_t>(books.submitted - books.recorded - books.lost - books.pending);
  }
  static std::uint64_t excess(std::uint64_t left, std::uint64_t right) { return left > right ? left - right : 0; }

  void close_process(std::size_t process, const ProcessInfo& info, std::span<const std::pair<QueueKey, const QueueState*>> states) {
    result.filtered += info.filtered;
    result.lost_before_any_chunk += info.lost_before_any_chunk;
    if (info.lost_before_any_chunk != 0)
      losses_[{process, 0, static_cast<std::uint32_t>(probe::LossCause::no_chunk)}] += info.lost_before_any_chunk;

    // Losses whose queue nobody knows; they explain gaps before anything else does, because they are certain.
    std::uint64_t lost_somewhere = info.lost_before_any_chunk, completions_lost_somewhere = 0;
    // Every thread of a process that died may have been in the driver, or between it and the record, with a sequence number in its hand.
    std::uint64_t in_the_driver = info.state == SegmentState::closed ? 0 : info.writer_count;
    if (!states.empty() && states.front().first.second == 0) {
      const QueueState& nowhere = *states.front().second;
      lost_somewhere += nowhere.submissions_lost;
      completions_lost_somewhere += nowhere.completions_lost;
    }

    for (const auto& [key, state] : states) {
      if (key.second == 0 && state->on_record == 0 && state->completions == 0) continue;
      QueueBooks books;
      books.process = process;
      books.queue = key.second;
      books.recorded = state->recorded;
      books.untimed = state->untimed;
      books.failed = state->failed;
      if (key.second != 0) books.lost = state->submissions_lost + state->completions_lost;

      const std::uint64_t sequences = part_of_a_program_ ? state->sequences_of_part() : state->sequences();
      const std::uint64_t gaps = excess(sequences, state->on_record + (key.second != 0 ? state->submissions_lost : 0));
      const std::uint64_t orphans = part_of_a_program_ ? 0 : state->completions - state->recorded;
      // A completion proves a submission, also of the queue's last command, whose number nobody else tells.
      books.submitted = sequences + excess(orphans, gaps);
      std::uint64_t open_gaps = excess(gaps, orphans);

      std::uint64_t open = excess(state->on_record, state->recorded + (key.second != 0 ? state->completions_lost : 0));
      std::uint64_t lost_here = std::min(open, completions_lost_somewhere);
      completions_lost_somewhere -= lost_here;
      open -= lost_here;
      const std::uint64_t gaps_lost = std::min(open_gaps, lost_somewhere);
      lost_somewhere -= gaps_lost;
      open_gaps -= gaps_lost;
      if (info.state == SegmentState::closed) {
        // What was dropped without a queue may have been completions; a process that ended in good order leaves nothing else open.
        const std::uint64_t open_lost = std::min(open, lost_somewhere);
        lost_somewhere -= open_lost;
        open -= open_lost;
        lost_here += open_lost;
      }
      const std::uint64_t gaps_pending = std::min(open_gaps, in_the_driver);
      in_the_driver -= gaps_pending;

      books.lost += lost_here + gaps_lost;
      books.pending = open;
      if (part_of_a_program_) {
        books.submitted -= gaps_pending;  // each thread may have been submitting when the part began, and that is none of it
      } else {
        books.pending += gaps_pending;
      }
      books.unexplained = unexplained(books);
      result.queues.push_back(books);
    }
    result.total.lost += lost_somewhere + completions_lost_somewhere;
    result.total.submitted += lost_somewhere + completions_lost_somewhere;
  }

  const bool part_of_a_program_;
  std::unordered_map<QueueKey, QueueState, QueueKeyHash> queues_;
  QueueKey last_key_{};
  QueueState* last_queue_ = nullptr;
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint32_t>, std::uint64_t> losses_;  // by process, queue, cause
};

class Bookkeeper {
 public:
  Bookkeeper(const std::vector<ProcessInfo>& processes, const ReadBatches& read_batches, bool part_of_a_program)
      : process_infos_(processes), read_batches_(read_batches), books_(part_of_a_program) {}

  Result<Conservation> run() {
    XPU_TRY(read_queues());
    XPU_TRY(read_operations());
    books_.close(process_infos_);
    if (books_.result.total.pending != 0) XPU_TRY(list_pending());
    return std::move(books_.result);
  }

 private:
  // First, because a sequence number means nothing before it is known where the queue's count began.
  Result<> read_queues() {
    const RecordKind kinds[] = {RecordKind::queue};
    XPU_TRY(read_batches_(kinds, [&](std::size_t process, std::span<const std::byte> records) {
      for_each_record(records, [&](const RecordHeader& header) {
        if (header.kind != static_cast<std::uint16_t>(RecordKind::queue)) return;
        const auto& record = as<QueueRecord>(header);
        books_.queue(process, record.queue).stretches.push_back({record.published_before});
      });
    }));
    books_.for_each_queue([](QueueState& state) {
      auto& stretches = state.stretches;
      std::sort(stretches.begin(), stretches.end(), [](const Stretch& left, const Stretch& right) { return left.before < right.before; });
      const auto same = [](const Stretch& left, const Stretch& right) { return left.before == right.before; };
      stretches.erase(std::unique(stretches.begin(), stretches.end(), same), stretches.end());
    });
    return {};
  }

  Result<> read_operations() {
    const RecordKind kinds[] = {RecordKind::operation_submitted, RecordKind::operation_completed, RecordKind::loss};
    return read_batches_(kinds, [&](std::size_t process, std::span<const std::byte> records) {
      for_each_record(records, [&](const RecordHeader& header) {
        switch (static_cast<RecordKind>(header.kind)) {
          case RecordKind::operation_submitted: submitted(process, as<OperationSubmittedRecord>(header)); break;
          case RecordKind::operation_completed: completed(process, as<OperationCompletedRecord>(header)); break;
          case RecordKind::loss: lost(process, as<LossRecord>(header)); break;
          default: break;
        }
      });
    });
  }

  // Submission and completion of an operation may come in either order; whichever comes second knows that both are there.
  void submitted(std::size_t process, const OperationSubmittedRecord& record) {
    if (Books::refused(record)) {
      ++books_.result.refused_calls;
      return;
    }
    const std::uint8_t before = operations_.set(process, record.operation, OperationSet::kSubmitted);
    if ((before & OperationSet::kSubmitted) != 0) return;
    QueueState& state = books_.queue(process, record.queue);
    books_.submitted(state, record);
    if ((before & OperationSet::kCompleted) != 0) Books::count_recorded(state, before);
  }

  void completed(std::size_t process, const OperationCompletedRecord& record) {
    const std::uint8_t bits = Books::bits_of(record.header.flags);
    if ((operations_.get(process, record.operation) & OperationSet::kCompleted) != 0) return;
    const std::uint8_t before = operations_.set(process, record.operation, bits);
    QueueState& state = books_.queue(process, record.queue);
    ++state.completions;
    if ((before & OperationSet::kSubmitted) != 0) Books::count_recorded(state, bits);
  }

  void lost(std::size_t process, const LossRecord& record) {
    if (books_.lost(process, record))
      books_.queue(process, record.queue).lost_ranges.push_back({record.first_operation, record.last_operation});
  }

  Result<> list_pending() {
    books_.for_each_queue([](QueueState& state) {
      // Sorted, with `last` the highest so far: then one look tells whether any range covers an operation.
      std::sort(state.lost_ranges.begin(), state.lost_ranges.end(),
                [](const LostRange& left, const LostRange& right) { return left.first < right.first; });
      std::uint64_t highest = 0;
      for (LostRange& range : state.lost_ranges) range.last = highest = std::max(highest, range.last);
    });
    const auto was_lost = [&](const QueueState& state, std::uint64_t operation) {
      const auto after = std::upper_bound(state.lost_ranges.begin(), state.lost_ranges.end(), operation,
                                          [](std::uint64_t left, const LostRange& right) { return left < right.first; });
      return after != state.lost_ranges.begin() && operation <= (after - 1)->last;
    };

    const auto older = [](const PendingOperation& left, const PendingOperation& right) { return left.enter_ns < right.enter_ns; };
    std::priority_queue<PendingOperation, std::vector<PendingOperation>, decltype(older)> oldest(older);
    const RecordKind kinds[] = {RecordKind::operation_submitted};
    XPU_TRY(read_batches_(kinds, [&](std::size_t process, std::span<const std::byte> records) {
      for_each_record(records, [&](const RecordHeader& header) {
        if (header.kind != static_cast<std::uint16_t>(RecordKind::operation_submitted)) return;
        const auto& record = as<OperationSubmittedRecord>(header);
        if (Books::refused(record) || (operations_.get(process, record.operation) & OperationSet::kCompleted) != 0) return;
        if (was_lost(books_.queue(process, record.queue), record.operation) || was_lost(books_.queue(process, 0), record.operation)) return;
        oldest.push({process, record.queue, record.what, record.api, record.header.flags, record.operation, record.enter_ns});
        if (oldest.size() > kMaxListedPending) oldest.pop();
      });
    }));
    std::vector<PendingOperation>& pending = books_.result.pending;
    pending.resize(oldest.size());
    for (std::size_t index = pending.size(); index-- > 0; oldest.pop()) pending[index] = oldest.top();
    return {};
  }

  const std::vector<ProcessInfo>& process_infos_;
  const ReadBatches& read_batches_;
  Books books_;
  OperationSet operations_;
};

}  // namespace

Result<Conservation> check_conservation_of_part(const std::vector<ProcessInfo>& processes, const ReadBatches& read_batches) {
  return Bookkeeper(processes, read_batches, true).run();
}

struct RunningBooks::Impl {
  Books books{true};
};

RunningBooks::RunningBooks() : impl_(std::make_unique<Impl>()) {}
RunningBooks::~RunningBooks() = default;
RunningBooks::RunningBooks(RunningBooks&&) noexcept = default;
RunningBooks& RunningBooks::operator=(RunningBooks&&) noexcept = default;

void RunningBooks::add(const QueueRecord& record) {
  std::vector<Stretch>& stretches = impl_->books.queue(0, record.queue).stretches;
  const auto place = std::lower_bound(stretches.begin(), stretches.end(), record.published_before,
                                      [](const Stretch& left, std::uint32_t right) { return left.before < right; });
  if (place == stretches.end() || place->before != record.published_before) stretches.insert(place, Stretch{record.published_before});
}

void RunningBooks::add(const OperationSubmittedRecord& record) {
  if (Books::refused(record)) {
    ++impl_->books.result.refused_calls;
    return;
  }
  impl_->books.submitted(impl_->books.queue(0, record.queue), record);
}

void RunningBooks::add_recorded(std::uint32_t queue, std::uint32_t completion_flags) {
  QueueState& state = impl_->books.queue(0, queue);
  ++state.completions;
  Books::count_recorded(state, Books::bits_of(completion_flags));
}

void RunningBooks::add(const LossRecord& record) { impl_->books.lost(0, record); }

Conservation RunningBooks::close(const ProcessInfo& process, std::vector<PendingOperation> pending) && {
  const auto older = [](const PendingOperation& left, const PendingOperation& right) { return left.enter_ns < right.enter_ns; };
  std::sort(pending.begin(), pending.end(), older);
  if (pending.size() > kMaxListedPending) pending.resize(kMaxListedPending);
  impl_->books.close({process});
  impl_->books.result.pending = std::move(pending);
  return std::move(impl_->books.result);
}

Result<Conservation> check_conservation(const Recording& recording) {
  const ReadBatches read_batches = [&](std::span<const RecordKind> kinds, const Recording::Visitor& visit) {
    return recording.for_each_batch(kinds, visit);
  };
  return Bookkeeper(recording.processes(), read_batches, false).run();
}

const char* loss_cause_name(std::uint32_t cause) noexcept {
  switch (static_cast<probe::LossCause>(cause)) {
    case probe::LossCause::no_chunk: return "no_chunk";
    case probe::LossCause::ring_full: return "ring_full";
    case probe::LossCause::driver_refused_event: return "driver_refused_event";
    case probe::LossCause::driver_lost_times: return "driver_lost_times";
    case probe::LossCause::layer_off: return "layer_off";
    case probe::LossCause::fork: return "fork";
  }
  return "unknown";
}

}  // namespace xpu::trace
