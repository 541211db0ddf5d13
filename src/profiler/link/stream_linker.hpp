#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/link/linking.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/profiler/sink.hpp"
#include "xpu/trace/conservation.hpp"
#include "xpu/trace/live_capture.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// Joins records of this process that come little by little and are not kept: each round hands over what is complete, copies the records of
/// what is not, and forgets the rest. Sinks see one `begin`, a `flush` after each round and one `end`; all rounds together hand over what
/// `Linker` would have made of all records at once, in another order.
///
/// Threads write on while they are looked at one after the other, so what was written last may refer to what was not seen yet. A round
/// therefore has records that are settled, and young ones, which were taken right behind them: whatever was written before a settled record
/// is among both. Only the settled ones are linked, with the help of the young ones, which have their turn in the next round.
///
/// Memory between rounds: operations that are not over (64 bytes, and their details), ranges that are open, what describes things, and
/// 1,024 readings of each clock. One owner at a time.
class StreamLinker {
 public:
  struct Round {
    const trace::RecordBuffer& texts;  ///< All of them, every time.
    std::span<const trace::RecordBuffer> settled, young;
  };
  struct Carried {
    std::uint64_t operations = 0, bytes = 0, open_ranges = 0;
  };

  /// `process` tells of the process and the machine only, and must outlive it.
  explicit StreamLinker(const RecordSource& process) : linking_(process, kMostReadings) {}

  /// Errors: those of `Sink::flush`.
  Result<> advance(const Round& round, Sink& sink);
  /// The last round: what is not over now is pending, or lost. Errors: those of `Sink::end`.
  Result<LinkSummary> finish(const Round& round, Sink& sink);
  /// After `finish`, once.
  trace::Conservation close_books();

  Carried carried() const noexcept;
  const LinkSummary& summary() const noexcept { return linking_.summary; }
  const Definitions& definitions() const noexcept { return linking_.definitions.definitions(); }

 private:
  static constexpr std::size_t kMostReadings = 1'024;
  using Bytes = std::vector<std::byte>;
  /// Whole records, as copies.
  struct Rest {
    Bytes unfinished;  ///< Of operations that are not over, and completions that are not in their place yet.
    Bytes unclaimed;   ///< Details that came before their submission.
    Bytes young;       ///< Their turn is next.
  };

  void link(const Round& round, Sink& sink, bool is_last);
  /// What was young the last time, and what is settled now.
  template <typename Visit>
  void for_each_new(const Round& round, Visit&& visit) const;
  template <typename Visit>
  static void for_each_young(const Round& round, Visit&& visit);
  void first_pass(const Round& round, bool is_last);
  void second_pass(const Round& round, Sink& sink, bool is_last);
  void settle_new(const trace::OperationSubmittedRecord& record, Sink& sink, bool is_last);
  void settle(const trace::OperationSubmittedRecord& record, Sink& sink, bool is_last);
  bool is_ready(std::uint64_t operation);
  bool is_surely_lost(const trace::OperationSubmittedRecord& record);
  void hand_over(const trace::OperationSubmittedRecord& record, Sink& sink);
  void keep_rest(const Round& round);
  void keep_completion(const trace::RecordHeader& header);
  void keep_detail(const trace::RecordHeader& header, bool is_new);
  void keep_young(const trace::RecordHeader& header);

  Linking linking_;
  PlacingState placing_;
  trace::RunningBooks books_;
  bool has_begun_ = false;
  Rest rest_, next_rest_;
  std::vector<std::uint64_t> unfinished_;           // operations, sorted
  std::vector<std::uint32_t> ended_, newly_ended_;  // by queue: the newest command that was handed over, until this round and in it
  std::vector<trace::PendingOperation> pending_;
};

}  // namespace xpu::profiler
