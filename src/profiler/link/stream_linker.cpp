#include "profiler/link/stream_linker.hpp"

#include <algorithm>
#include <utility>

#include "profiler/link/record_cast.hpp"

namespace xpu::profiler {
namespace {

using trace::RecordKind;

constexpr std::size_t kThisProcess = 0;

void append_record(std::vector<std::byte>& to, const trace::RecordHeader& header) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  to.insert(to.end(), bytes, bytes + header.size);
}

/// Of a record that is of one; 0 of any other.
std::uint64_t operation_of(const trace::RecordHeader& header) {
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::operation_submitted:
    case RecordKind::operation_completed:
    case RecordKind::copy_detail:
    case RecordKind::graph_node:
    case RecordKind::external_correlation: {
      struct OfOperation {
        trace::RecordHeader header;
        std::uint64_t operation;
      };
      const auto* record = record_cast<OfOperation>(header);
      return record == nullptr ? 0 : record->operation;
    }
    default: return 0;
  }
}

/// Numbers of a queue count up and wrap.
bool is_later(std::uint32_t sequence, std::uint32_t than) { return static_cast<std::int32_t>(sequence - than) > 0; }

std::uint32_t& at(std::vector<std::uint32_t>& values, std::size_t index) {
  if (index >= values.size()) values.resize(index + 1);
  return values[index];
}

}  // namespace

Result<> StreamLinker::advance(const Round& round, Sink& sink) {
  link(round, sink, false);
  linking_.annotations.hand_over(sink);
  CompletionIndex::set_errors(linking_.definitions, placing_);
  XPU_TRY(sink.flush(linking_.summary));
  return {};
}

Result<LinkSummary> StreamLinker::finish(const Round& round, Sink& sink) {
  link(round, sink, true);
  linking_.hand_over_hung_calls(sink);
  linking_.annotations.hand_over_all(sink);
  CompletionIndex::set_errors(linking_.definitions, placing_);
  trace::for_each_record(rest_.unclaimed, [&](const trace::RecordHeader& header) {
    if (static_cast<RecordKind>(header.kind) == RecordKind::external_correlation) ++linking_.summary.errors.unused_external_ids;
  });
  linking_.finish_summary();
  XPU_TRY(sink.end(linking_.summary));
  return linking_.summary;
}

trace::Conservation StreamLinker::close_books() {
  return std::move(books_).close(linking_.source.processes()[kThisProcess], std::move(pending_));
}

StreamLinker::Carried StreamLinker::carried() const noexcept {
  return {unfinished_.size(), rest_.unfinished.size() + rest_.unclaimed.size() + rest_.young.size(), linking_.annotations.open()};
}

template <typename Visit>
void StreamLinker::for_each_new(const Round& round, Visit&& visit) const {
  trace::for_each_record(rest_.young, visit);
  for (const trace::RecordBuffer& buffer : round.settled) trace::for_each_record(buffer.records(), visit);
}

template <typename Visit>
void StreamLinker::for_each_young(const Round& round, Visit&& visit) {
  for (const trace::RecordBuffer& buffer : round.young) trace::for_each_record(buffer.records(), visit);
}

void StreamLinker::link(const Round& round, Sink& sink, bool is_last) {
  linking_.completions = CompletionIndex(linking_.processes());
  linking_.external_ids = ExternalIds(linking_.processes());
  linking_.graph_nodes = GraphNodes(linking_.processes());
  next_rest_ = {};
  unfinished_.clear();
  first_pass(round, is_last);
  if (!std::exchange(has_begun_, true)) {
    SessionInfo info = linking_.info();
    info.goes_on = true;
    sink.begin(info);
  }
  second_pass(round, sink, is_last);
  keep_rest(round);
  linking_.summary.duplicates += linking_.completions.duplicates();
  linking_.lost.forget_all_but(unfinished_);
  rest_ = std::move(next_rest_);
  ended_ = newly_ended_;
}

void StreamLinker::first_pass(const Round& round, bool is_last) {
  const auto read = [&](std::span<const std::byte> records, CompletionAge age) {
    trace::for_each_record(records, [&](const trace::RecordHeader& header) { linking_.read(kThisProcess, header, age); });
  };
  read(round.texts.records(), 0);
  read(rest_.unfinished, Completion::kCarried);
  read(rest_.unclaimed, 0);
  const auto add_to_books = [&](const trace::RecordHeader& header) {
    if (static_cast<RecordKind>(header.kind) != RecordKind::queue) return;
    if (const auto* queue = record_cast<trace::QueueRecord>(header)) books_.add(*queue);
  };
  for_each_new(round, [&](const trace::RecordHeader& header) {
    linking_.read(kThisProcess, header);
    add_to_books(header);
  });
  for_each_young(round, [&](const trace::RecordHeader& header) {
    if (static_cast<RecordKind>(header.kind) == RecordKind::loss) return;
    linking_.read(kThisProcess, header, Completion::kYoung);
    add_to_books(header);
  });
  linking_.definitions.finish();
  linking_.external_ids.sort();
  linking_.lost.sort();
  if (linking_.completions.needs_host_hints(linking_.definitions)) {
    const auto read_hint = [&](const trace::RecordHeader& header) { linking_.read_host_hint(kThisProcess, header); };
    trace::for_each_record(rest_.unfinished, read_hint);
    for_each_new(round, read_hint);
    for_each_young(round, read_hint);
  }
  linking_.completions.place_ready(linking_.definitions, placing_, is_last);
}

void StreamLinker::second_pass(const Round& round, Sink& sink, bool is_last) {
  trace::for_each_record(rest_.unfinished, [&](const trace::RecordHeader& header) {
    if (static_cast<RecordKind>(header.kind) == RecordKind::operation_submitted)
      settle(reinterpret_cast<const trace::OperationSubmittedRecord&>(header), sink, is_last);
  });
  for_each_new(round, [&](const trace::RecordHeader& header) {
    if (static_cast<RecordKind>(header.kind) == RecordKind::operation_submitted) {
      if (const auto* record = record_cast<trace::OperationSubmittedRecord>(header)) settle_new(*record, sink, is_last);
      return;
    }
    linking_.hand_over(kThisProcess, header, sink);
    if (static_cast<RecordKind>(header.kind) != RecordKind::loss) return;
    if (const auto* loss = record_cast<trace::LossRecord>(header)) books_.add(*loss);
  });
  for_each_young(round, [&](const trace::RecordHeader& header) {
    if (static_cast<RecordKind>(header.kind) != RecordKind::operation_submitted) return;
    const auto* record = record_cast<trace::OperationSubmittedRecord>(header);
    if (record != nullptr && is_ready(record->operation)) settle_new(*record, sink, is_last);
  });
  std::sort(unfinished_.begin(), unfinished_.end());
}

bool StreamLinker::is_ready(std::uint64_t operation) {
  const Completion* completion = linking_.completions.find(kThisProcess, operation);
  return completion != nullptr && completion->has(Completion::kReady);
}

void StreamLinker::settle_new(const trace::OperationSubmittedRecord& record, Sink& sink, bool is_last) {
  books_.add(record);
  settle(record, sink, is_last);
}

/// Hands a submission over when all that belongs to it is there, or will never be.
void StreamLinker::settle(const trace::OperationSubmittedRecord& record, Sink& sink, bool is_last) {
  if (Linking::is_refused(record)) return hand_over(record, sink);
  const Completion* completion = linking_.completions.find(kThisProcess, record.operation);
  if (is_ready(record.operation)) {
    const std::uint32_t flags = (completion->has(Completion::kFailed) ? trace::kFlagFailed : 0u) |
                                (completion->has(Completion::kUntimed) ? trace::kFlagUntimed : 0u);
    if (!completion->has(Completion::kLinked)) books_.add_recorded(record.queue, flags);
    std::uint32_t& ended = at(newly_ended_, linking_.definitions.queue(kThisProcess, record.queue).index);
    if (ended == 0 || is_later(record.queue_sequence, ended)) ended = record.queue_sequence;
    return hand_over(record, sink);
  }
  if (completion == nullptr && (is_last || is_surely_lost(record))) {
    if (!linking_.lost.covers(kThisProcess, record.queue, record.operation)) {
      pending_.push_back({kThisProcess, record.queue, record.what, record.api, record.header.flags, record.operation, record.enter_ns});
    }
    return hand_over(record, sink);
  }
  unfinished_.push_back(record.operation);
  append_record(next_rest_.unfinished, record.header);
}

/// It is among those of which some lost their completion, and a later command of its queue has ended before this round began, so its own
/// would be there. Where commands may end in any order, that is not known before the end.
bool StreamLinker::is_surely_lost(const trace::OperationSubmittedRecord& record) {
  if (linking_.lost.is_empty() || !linking_.lost.covers(kThisProcess, record.queue, record.operation)) return false;
  const QueueDefinition& queue = linking_.definitions.queue(kThisProcess, record.queue);
  return !queue.out_of_order && queue.index < ended_.size() && ended_[queue.index] != 0 &&
         is_later(ended_[queue.index], record.queue_sequence);
}

void StreamLinker::hand_over(const trace::OperationSubmittedRecord& record, Sink& sink) { linking_.hand_over(kThisProcess, record, sink); }

void StreamLinker::keep_rest(const Round& round) {
  trace::for_each_record(rest_.unfinished, [&](const trace::RecordHeader& header) {
    keep_completion(header);
    keep_detail(header, false);
  });
  trace::for_each_record(rest_.unclaimed, [&](const trace::RecordHeader& header) { keep_detail(header, false); });
  for_each_new(round, [&](const trace::RecordHeader& header) {
    keep_completion(header);
    keep_detail(header, true);
  });
  for_each_young(round, [&](const trace::RecordHeader& header) { keep_young(header); });
}

/// All but what was needed already: descriptions, and commands that come before one that is settled.
void StreamLinker::keep_young(const trace::RecordHeader& header) {
  if (trace::describes(header)) return;
  const std::uint64_t operation = operation_of(header);
  const Completion* completion = operation == 0 ? nullptr : linking_.completions.find(kThisProcess, operation);
  if (completion == nullptr || !completion->has(Completion::kLinked)) append_record(next_rest_.young, header);
}

void StreamLinker::keep_completion(const trace::RecordHeader& header) {
  if (static_cast<RecordKind>(header.kind) != RecordKind::operation_completed) return;
  Completion* completion = linking_.completions.find(kThisProcess, operation_of(header));
  if (completion == nullptr || completion->has(Completion::kLinked)) return;
  if (!completion->has(Completion::kReady)) return append_record(next_rest_.unfinished, header);
  ++linking_.summary.orphans;
  completion->flags |= Completion::kLinked;  // a second record of it is none
}

/// Details stand right before their submission, which may be the first record of the next round.
void StreamLinker::keep_detail(const trace::RecordHeader& header, bool is_new) {
  const auto kind = static_cast<RecordKind>(header.kind);
  if (kind == RecordKind::operation_submitted || kind == RecordKind::operation_completed) return;
  const std::uint64_t operation = operation_of(header);
  if (operation == 0) return;
  if (std::binary_search(unfinished_.begin(), unfinished_.end(), operation)) return append_record(next_rest_.unfinished, header);
  if (!is_new) return;
  const Completion* completion = linking_.completions.find(kThisProcess, operation);
  if (completion == nullptr || !completion->has(Completion::kLinked)) append_record(next_rest_.unclaimed, header);
}

}  // namespace xpu::profiler
