#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/external_correlation.hpp"
#include "base/probe.hpp"
#include "xpu/trace/records.hpp"

/// Records filled in from what publishers say of operations, in place: no state here.
namespace xpu::trace {

constexpr std::uint32_t flag_if(bool condition, std::uint32_t flag) { return condition ? flag : 0; }

template <typename Record>
RecordHeader header_of(RecordKind kind, std::uint32_t flags = 0) {
  return {static_cast<std::uint16_t>(kind), static_cast<std::uint16_t>(sizeof(Record)), flags};
}

inline void fill_submitted(OperationSubmittedRecord& record, probe::OperationId id, const probe::Operation& operation,
                           const probe::Submission& submission, std::uint32_t geometry, std::uint32_t thread) noexcept {
  constexpr std::uint32_t kPassedOn = std::uint32_t{probe::kOutOfOrderQueue} | probe::kUserEvent | probe::kInsideCommandBuffer;
  static_assert(kPassedOn == (std::uint32_t{kFlagOutOfOrderQueue} | kFlagUserEvent | kFlagInsideCommandBuffer));
  const std::uint32_t flags = (operation.flags & kPassedOn) | flag_if(submission.result != 0, kFlagFailed) |
                              flag_if(submission.exit_ns == 0, kFlagExitUnknown) |
                              static_cast<std::uint32_t>(operation.command) << kCommandShift;
  record.header = header_of<OperationSubmittedRecord>(RecordKind::operation_submitted, flags);
  record.operation = id;
  record.enter_ns = operation.enter_ns;
  record.exit_ns = submission.exit_ns;
  record.queue = operation.queue;
  record.queue_sequence = submission.queue_sequence;
  record.what = operation.kernel;  // 0 for everything else
  record.geometry = geometry;
  record.thread = thread;
  record.api = operation.api;
  record.result = submission.result;
  record.stack = 0;
}

inline void fill_geometry(GeometryRecord& record, std::uint32_t id, const probe::Geometry& geometry) noexcept {
  record.header = header_of<GeometryRecord>(RecordKind::geometry);
  record.geometry = id;
  record.dimensions = geometry.dimensions;
  std::memcpy(record.offset, geometry.offset, sizeof record.offset);
  std::memcpy(record.global, geometry.global, sizeof record.global);
  std::memcpy(record.local, geometry.local, sizeof record.local);
}

/// Returns where the next record goes.
inline std::byte* fill_correlations(std::byte* place, probe::OperationId id, std::uint32_t thread) noexcept {
  const probe::TopCorrelations top = probe::top_correlations();
  for (std::size_t index = 0; index < top.count; ++index) {
    auto& record = *reinterpret_cast<ExternalCorrelationRecord*>(place);
    record.header = header_of<ExternalCorrelationRecord>(RecordKind::external_correlation);
    record.operation = id;
    record.external_id = top.all[index].id;
    record.family = static_cast<std::uint32_t>(top.all[index].family);
    record.thread = thread;
    place += sizeof(ExternalCorrelationRecord);
  }
  return place;
}

inline void fill_graph_node(GraphNodeRecord& record, probe::OperationId id, const probe::GraphNode& node) noexcept {
  record.header = header_of<GraphNodeRecord>(RecordKind::graph_node);
  record.operation = id;
  record.graph = node.graph;
  record.node = node.node;
}

inline void fill_copy(CopyDetailRecord& record, probe::OperationId id, const probe::CopyDetail& copy, std::uint32_t rectangle,
                      probe::Id long_pattern) noexcept {
  record = CopyDetailRecord{};
  record.header = header_of<CopyDetailRecord>(RecordKind::copy_detail);
  record.operation = id;
  record.bytes = copy.bytes;
  record.source = copy.source;
  record.destination = copy.destination;
  record.source_type = static_cast<std::uint8_t>(copy.source_type);
  record.destination_type = static_cast<std::uint8_t>(copy.destination_type);
  record.direction = static_cast<std::uint8_t>(copy.direction);
  record.form = static_cast<std::uint8_t>(copy.form);
  record.peer_device = copy.peer_device;
  record.rectangle = rectangle;
  record.pattern_bytes = copy.pattern == nullptr ? 0 : copy.pattern_bytes;
  record.pattern = long_pattern;
  if (record.pattern_bytes != 0 && record.pattern_bytes <= sizeof record.pattern) {
    std::memcpy(&record.pattern, copy.pattern, record.pattern_bytes);
  }
}

inline void fill_rectangle(RectangleRecord& record, std::uint32_t id, probe::CopyForm form, const probe::Rectangle& rectangle) noexcept {
  record.header = header_of<RectangleRecord>(RecordKind::rectangle);
  record.id = id;
  record.form = static_cast<std::uint32_t>(form);
  std::memcpy(record.origins, rectangle.origins, sizeof record.origins);
  std::memcpy(record.region, rectangle.region, sizeof record.region);
  std::memcpy(record.pitches, rectangle.pitches, sizeof record.pitches);
}

inline void fill_completed(OperationCompletedRecord& record, probe::OperationId id, const probe::Completion& completion) noexcept {
  static_assert(static_cast<int>(probe::CompletionStatus::unfinished) == 3);
  static constexpr std::uint32_t kFlagOfStatus[] = {0, kFlagFailed, kFlagUntimed, kFlagUnfinishedAtExit};
  const std::uint32_t flags = kFlagOfStatus[static_cast<std::size_t>(completion.status) & 3] | flag_if(completion.clamped, kFlagClamped);
  record.header = header_of<OperationCompletedRecord>(RecordKind::operation_completed, flags);
  record.operation = id;
  record.queued = completion.ticks.queued;
  record.submit = completion.ticks.submit;
  record.start = completion.ticks.start;
  record.end = completion.ticks.end;
  record.queue = completion.queue;
  record.status = completion.native_status;
}

}  // namespace xpu::trace
