#include "profiler/session/pending_operations.hpp"

#include <algorithm>

namespace xpu::profiler {
namespace {

/// Records of one moment are read within two takes of a capture, which are 50 ms apart unless the machine is very busy.
constexpr std::uint64_t kRememberEndsNs = 1'000'000'000;

}  // namespace

void PendingOperations::begin_batch(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  if (now_ns < forgot_ns_ + kRememberEndsNs) return;
  forgot_ns_ = now_ns;
  ended_early_before_ = std::exchange(ended_early_, {});
}

void PendingOperations::add(const trace::OperationSubmittedRecord& record, std::uint64_t slice) {
  if (record.queue_sequence == 0) return;  // the driver refused it
  ends_.try_emplace(record.queue);
  if (ended_early_.erase(record.operation) != 0 || ended_early_before_.erase(record.operation) != 0 || is_lost(record)) return;
  if (operations_.size() >= kMostTracked) {
    ++untracked_;
    return;
  }
  Pending& pending = operations_[record.operation];
  pending.submission = record;
  pending.submission.header.size = sizeof record;
  pending.slice = slice;
}

std::optional<PendingOperations::Pending> PendingOperations::remove(const trace::OperationCompletedRecord& record) {
  Ends& ends = ends_[record.queue];
  ++ends.count;
  ends.last_ns = now_ns_;
  const auto found = operations_.find(record.operation);
  if (found == operations_.end()) {
    if (ended_early_.size() < kMostTracked) ended_early_.insert(record.operation);
    return std::nullopt;
  }
  const Pending pending = found->second;
  operations_.erase(found);
  return pending;
}

void PendingOperations::remove_lost(const trace::LossRecord& record) {
  lost_[{trace::operation_writer(record.first_operation), record.queue}] = {record.first_operation, record.last_operation};
  std::erase_if(operations_, [&](const auto& entry) { return is_lost(entry.second.submission); });
}

bool PendingOperations::is_lost(const trace::OperationSubmittedRecord& record) const {
  if (lost_.empty()) return false;
  for (const std::uint32_t queue : {record.queue, std::uint32_t{0}}) {
    const auto found = lost_.find({trace::operation_writer(record.operation), queue});
    if (found == lost_.end()) continue;
    if (record.operation >= found->second.first && record.operation <= found->second.second) return true;
  }
  return false;
}

std::map<std::uint32_t, PendingOperations::Queue> PendingOperations::queues() const {
  std::map<std::uint32_t, Queue> queues;
  for (const auto& [id, ends] : ends_) {
    queues[id].ended = ends.count;
    queues[id].last_end_ns = ends.last_ns;
  }
  for (const auto& [id, pending] : operations_) {
    Queue& queue = queues[pending.submission.queue];
    ++queue.pending;

    if (queue.oldest == nullptr || pending.submission.enter_ns < queue.oldest->submission.enter_ns) queue.oldest = &pending;
  }
  return queues;
}

bool PendingOperations::refers_to_kernel(std::uint32_t kernel) const noexcept {
  return std::any_of(operations_.begin(), operations_.end(), [&](const auto& entry) { return entry.second.submission.what == kernel; });
}

bool PendingOperations::refers_to_queue(std::uint32_t queue) const noexcept {
  return std::any_of(operations_.begin(), operations_.end(), [&](const auto& entry) { return entry.second.submission.queue == queue; });
}

void PendingOperations::forget_queue(std::uint32_t queue) {
  if (!refers_to_queue(queue)) ends_.erase(queue);
}

}  // namespace xpu::profiler
