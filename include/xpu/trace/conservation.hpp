#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace {

/// The books of one queue (docs/formats.md section 3). The figures come from four different places and must add up.
struct QueueBooks {
  std::size_t process = 0;
  std::uint32_t queue = 0;
  std::uint64_t submitted = 0;   ///< From the queue's own sequence numbers.
  std::uint64_t recorded = 0;    ///< Completions whose submission is on record, failed and untimed ones included.
  std::uint64_t lost = 0;        ///< From loss records.
  std::uint64_t pending = 0;     ///< Submitted, and neither completed nor lost.
  std::uint64_t untimed = 0;     ///< Of `recorded`.
  std::uint64_t failed = 0;      ///< Of `recorded`.
  std::int64_t unexplained = 0;  ///< submitted - recorded - lost - pending: must be 0.
};

struct LossSummary {
  std::size_t process = 0;
  std::uint32_t queue = 0;  ///< 0 = not known.
  std::uint32_t cause = 0;  ///< probe::LossCause.
  std::uint64_t count = 0;
};

/// A submitted command with neither completion nor loss: what the device was doing when the program ended.
struct PendingOperation {
  std::size_t process = 0;
  std::uint32_t queue = 0, what = 0, api = 0;
  std::uint32_t flags = 0;  ///< Of the submission: the command is in the upper 8 bits.
  std::uint64_t operation = 0, enter_ns = 0;
};

struct Conservation {
  /// Sums; `process` and `queue` are 0. Losses whose queue is not known are counted here, in `lost` and, where no gap in a queue's
  /// sequence is left for them, in `submitted`.
  QueueBooks total;
  std::uint64_t filtered = 0;
  std::uint64_t refused_calls = 0;          ///< Submitting calls that the driver refused.
  std::uint64_t lost_before_any_chunk = 0;  ///< Records of threads that never found a chunk; also counted in total.lost and `losses`.
  std::uint64_t other_records_lost = 0;     ///< Records that are no operations (waits, calls, memory, …); in no other figure.
  std::vector<QueueBooks> queues;           ///< Sorted by process and queue.
  std::vector<LossSummary> losses;          ///< Sorted by process, queue and cause; together total.lost.
  std::vector<PendingOperation> pending;    ///< At most 1,000, the oldest first.
};

/// Reads what the books need: queues, submissions, completions and losses; the submissions a second time when commands are pending. Memory:
/// about half a byte per operation.
XPU_EXPORT Result<Conservation> check_conservation(const Recording& recording);

/// Reads all records of these kinds of any source of records: `Recording::for_each_batch`, or what does the same.
using ReadBatches = std::function<Result<>(std::span<const RecordKind> kinds, const Recording::Visitor& visit)>;
/// The same for records of a part of a program's life: what was submitted outside of it may end within, and is in no figure.
XPU_EXPORT Result<Conservation> check_conservation_of_part(const std::vector<ProcessInfo>& processes, const ReadBatches& read_batches);

/// The same for records of this process that come little by little and are not kept: whoever joins them says which completions belong to a
/// submission. Memory grows with queues and with how often they are described, not with operations. One owner at a time.
class XPU_EXPORT RunningBooks {
 public:
  RunningBooks();
  ~RunningBooks();
  RunningBooks(RunningBooks&&) noexcept;
  RunningBooks& operator=(RunningBooks&&) noexcept;

  /// Before the submissions that came together with it.
  void add(const QueueRecord& record);
  /// Once each, in any order.
  void add(const OperationSubmittedRecord& record);
  void add(const LossRecord& record);
  /// An operation that was submitted to this queue, and added, has its completion, which has these flags.
  void add_recorded(std::uint32_t queue, std::uint32_t completion_flags);

  /// Once. `pending`: those that have neither; the oldest are listed.
  Conservation close(const ProcessInfo& process, std::vector<PendingOperation> pending) &&;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Name of a loss cause: "no_chunk", "ring_full", …; "unknown" for other numbers.
XPU_EXPORT const char* loss_cause_name(std::uint32_t cause) noexcept;

}  // namespace xpu::trace
