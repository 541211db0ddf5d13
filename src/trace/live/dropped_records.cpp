#include "trace/live/dropped_records.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/probe.hpp"
#include "xpu/trace/recording/recording.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace {

std::vector<std::byte> DroppedRecords::drop(std::span<const std::byte> records) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, LossRecord> losses;  // by queue and flags
  const auto count = [&](std::uint32_t queue, std::uint32_t flags, std::uint64_t operation, std::uint64_t number) -> LossRecord& {
    const auto [entry, is_new] = losses.try_emplace({queue, flags});
    LossRecord& loss = entry->second;
    if (is_new) {
      loss = LossRecord{};
      loss.header = {static_cast<std::uint16_t>(RecordKind::loss), sizeof loss, flags};
      loss.queue = queue;
      loss.cause = static_cast<std::uint32_t>(probe::LossCause::no_chunk);
      loss.first_operation = operation;
    }
    loss.last_operation = operation;
    loss.count += number;
    return loss;
  };
  for_each_record(records, [&](const RecordHeader& header) {
    switch (static_cast<RecordKind>(header.kind)) {
      case RecordKind::operation_submitted: {
        const auto& record = reinterpret_cast<const OperationSubmittedRecord&>(header);
        if (record.queue_sequence == 0) {  // the driver refused it
          count(0, kFlagNotOperation, 0, 1);
          return;
        }
        operations_.insert(record.operation);
        LossRecord& loss = count(record.queue, 0, record.operation, 1);
        loss.last_sequence = std::max(loss.last_sequence, record.queue_sequence);
        loss.time_ns = std::max(loss.time_ns, record.enter_ns);
        return;
      }
      case RecordKind::operation_completed: {
        const auto& record = reinterpret_cast<const OperationCompletedRecord&>(header);
        if (operations_.erase(record.operation) == 0) count(record.queue, kFlagCompletionLost, record.operation, 1);
        return;
      }
      case RecordKind::loss: {
        const auto& record = reinterpret_cast<const LossRecord&>(header);
        LossRecord& loss = count(record.queue, header.flags, record.last_operation, record.count);
        loss.last_sequence = std::max(loss.last_sequence, record.last_sequence);
        return;
      }
      // With its operation.
      case RecordKind::copy_detail:
      case RecordKind::rectangle:
      case RecordKind::graph_node:
      case RecordKind::external_correlation: return;
      default:
        if (!describes(header)) count(0, kFlagNotOperation, 0, 1);
    }
  });
  std::vector<std::byte> told;
  for (const auto& [key, loss] : losses) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&loss);
    told.insert(told.end(), bytes, bytes + sizeof loss);
  }
  // Descriptions are needed for what is kept.
  for_each_record(records, [&](const RecordHeader& header) {
    if (!describes(header)) return;
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    told.insert(told.end(), bytes, bytes + header.size);
  });
  return told;
}

}  // namespace xpu::trace
