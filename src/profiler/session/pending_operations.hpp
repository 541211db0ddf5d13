#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// Operations that were submitted and have not ended, out of records that come a little at a time and for ever.
///
/// Records of different threads come in any order, so the end of an operation may be read before its submission: it is remembered for a
/// second or two. Memory is bounded: at most `kMostTracked` operations are known one by one, the rest is counted. One owner at a time.
class PendingOperations {
 public:
  static constexpr std::size_t kMostTracked = 65'536;

  struct Pending {
    trace::OperationSubmittedRecord submission;
    std::uint64_t slice = 0;  ///< Of the ring, where the submission was put.
  };
  struct Queue {
    std::uint64_t pending = 0;
    std::uint64_t ended = 0;
    std::uint64_t last_end_ns = 0;  ///< When the newest end was read; 0 = none was.
    const Pending* oldest = nullptr;
  };

  void begin_batch(std::uint64_t now_ns);
  void add(const trace::OperationSubmittedRecord& record, std::uint64_t slice);
  /// The operation that ended, when it is known.
  std::optional<Pending> remove(const trace::OperationCompletedRecord& record);
  /// Whose end was dropped: whether it ended is not known, and nobody is to wait for it.
  void remove_lost(const trace::LossRecord& record);
  /// The queue is gone; does nothing while something is pending in it.
  void forget_queue(std::uint32_t queue);

  /// By id, every queue that anything was heard of.
  std::map<std::uint32_t, Queue> queues() const;
  bool refers_to_kernel(std::uint32_t kernel) const noexcept;
  bool refers_to_queue(std::uint32_t queue) const noexcept;
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [id, pending] : operations_) visit(pending);
  }
  std::size_t size() const noexcept { return operations_.size(); }
  /// Submissions that were not followed, because too many were pending.
  std::uint64_t untracked() const noexcept { return untracked_; }

 private:
  struct Ends {
    std::uint64_t count = 0, last_ns = 0;
  };
  bool is_lost(const trace::OperationSubmittedRecord& record) const;

  std::unordered_map<std::uint64_t, Pending> operations_;
  std::unordered_set<std::uint64_t> ended_early_, ended_early_before_;
  std::map<std::uint32_t, Ends> ends_;  // by queue
  /// The newest range of dropped ends of each writer and queue (0 = any).
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> lost_;
  std::uint64_t now_ns_ = 0, forgot_ns_ = 0, untracked_ = 0;
};

}  // namespace xpu::profiler
