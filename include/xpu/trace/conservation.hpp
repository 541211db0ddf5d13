#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {

/// The books of one queue (docs/formats.md section 3). The figures come from four different places and must add up.
struct QueueBooks {
  std::size_t process = 0;
  std::uint32_t queue = 0;
  std::uint64_t submitted = 0;  ///< From the queue's own sequence numbers.
  std::uint64_t recorded = 0;   ///< Completions whose submission is on record, failed and untimed ones included.
  std::uint64_t lost = 0;       ///< From loss records.
  std::uint64_t pending = 0;    ///< Submitted, and neither completed nor lost.
  std::uint64_t untimed = 0;    ///< Of `recorded`.
  std::uint64_t failed = 0;     ///< Of `recorded`.
  std::int64_t unexplained = 0; ///< submitted - recorded - lost - pending: must be 0.
};

struct LossSummary {
  std::size_t process = 0;
  std::uint32_t queue = 0;
  std::uint32_t cause = 0;  ///< probe::LossCause.
  std::uint64_t count = 0;
};

/// A submitted command with neither completion nor loss: what the device was doing when the program ended.
struct PendingOperation {
  std::size_t process = 0;
  std::uint32_t queue = 0, what = 0, api = 0;
  std::uint64_t operation = 0, enter_ns = 0;
};

struct Conservation {
  QueueBooks total;  ///< Sums; `process` and `queue` are 0.
  std::uint64_t filtered = 0;
  std::uint64_t refused_calls = 0;  ///< Submitting calls that the driver refused.
  std::uint64_t lost_before_any_chunk = 0;  ///< Records of threads that never found a chunk; also counted in total.lost.
  std::vector<QueueBooks> queues;
  std::vector<LossSummary> losses;
  std::vector<PendingOperation> pending;  ///< At most 1,000, the oldest first.
};

/// Reads the whole recording once.
XPU_EXPORT Result<Conservation> check_conservation(const Recording& recording);

/// Name of a loss cause: "no_chunk", "ring_full", …
XPU_EXPORT const char* loss_cause_name(std::uint32_t cause) noexcept;

}  // namespace xpu::trace
