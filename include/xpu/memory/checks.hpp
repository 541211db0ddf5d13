#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/memory/history.hpp"
#include "xpu/memory/pool.hpp"

namespace xpu::memory {

/// How misuse of memory is looked for. Each call of the allocator costs a lock and a look-up more then, and a stack where these are wanted.
struct CheckOptions {
  /// For allocations and frees; null: no stacks are recorded.
  std::shared_ptr<StackRecorder> stacks = nullptr;
  /// Gets each finding: a sentence, and lines with the stacks where they are known. Called by the thread that came upon it, with no lock
  /// held; must not throw. Empty: findings are logged as errors.
  std::function<void(const std::string& finding)> on_misuse = nullptr;
  /// So many blocks that were freed are remembered, the last ones. At least 1.
  std::size_t max_freed_blocks = 65'536;
};

/// What is allocated and was not freed: the leaks, where nothing should be live any more.
struct LiveBlockReport {
  /// The blocks of one stack, stream and pool.
  struct Row {
    std::uint64_t blocks = 0, requested_bytes = 0;
    std::int64_t stream = 0;
    PoolId pool;
    std::uint64_t oldest_age_ns = 0;          ///< 0: not known.
    std::vector<StackRecorder::Frame> stack;  ///< Of the allocations; empty: not known.
    bool operator==(const Row&) const = default;
  };

  std::vector<Row> rows;                                         ///< Those with the most bytes, these first.
  std::uint64_t more_rows = 0, more_blocks = 0, more_bytes = 0;  ///< What is not in them.
};
/// A line of sums, and for each row one with its stack below it; empty when nothing is live.
XPU_EXPORT std::string to_string(const LiveBlockReport& report);

}  // namespace xpu::memory
