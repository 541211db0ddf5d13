#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace xpu::trace {

/// What somebody does not get whose memory is full, told as losses: records were written, and for others they are there. One owner at a
/// time.
class DroppedRecords {
 public:
  /// The loss records that stand for these, one for each queue and kind of loss, in the order of the queues; and behind them, unchanged,
  /// those that describe something.
  std::vector<std::byte> drop(std::span<const std::byte> records);

 private:
  std::unordered_set<std::uint64_t> operations_;  // dropped, and their end has not been seen
};

}  // namespace xpu::trace
