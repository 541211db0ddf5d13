#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/link/paged_index.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// Which operations are among those whose completions were dropped. Losses tell of ranges: an operation of a range that has a completion
/// was not meant. One owner at a time.
class LostCompletions {
 public:
  explicit LostCompletions(std::size_t processes) : processes_(processes) {}

  /// Only losses of completions count.
  void add(std::size_t process, const trace::LossRecord& record);
  /// After `add`, before `covers`: ranges that touch become one.
  void sort();
  /// True when a loss covers this operation of this queue, for one that has no completion.
  bool covers(std::size_t process, std::uint32_t queue, std::uint64_t operation) const noexcept;

  /// Forgets what was there at the last call already and covers none of these operations, which are sorted; of process 0, the only one.
  void forget_all_but(std::span<const std::uint64_t> operations);
  bool is_empty() const noexcept { return count_ == 0; }

 private:
  struct Range {
    std::uint64_t first = 0, last = 0;
    bool is_old = false;
  };
  using Queues = PagedIndex<std::vector<Range>, 8>;

  std::vector<Queues> processes_;
  std::size_t count_ = 0;
};

}  // namespace xpu::profiler
