#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/cpu_trace.hpp"

/// What a framework would say and push, for tests.
namespace xpu::profiler::test_support {

inline ExternalId operation_id(std::uint64_t id) { return {id, static_cast<std::uint32_t>(kOperationFamily)}; }
inline ExternalId annotation_id(std::uint64_t id) { return {id, static_cast<std::uint32_t>(kUserAnnotationFamily)}; }

/// An operation of thread 100 that has ended.
inline CpuOperation cpu_operation(std::string name, std::int64_t start_ns, std::int64_t end_ns, std::optional<ExternalId> id = {},
                                  ActivityKind kind = ActivityKind::cpu_op) {
  CpuOperation operation;
  operation.name = std::move(name);
  operation.kind = kind;
  operation.start_ns = start_ns;
  operation.end_ns = end_ns;
  operation.thread = 100;
  operation.external_id = id;
  return operation;
}
inline CpuOperation user_annotation(std::string name, std::int64_t start_ns, std::int64_t end_ns, std::optional<ExternalId> id = {}) {
  return cpu_operation(std::move(name), start_ns, end_ns, id, ActivityKind::user_annotation);
}
inline CpuOperation with_flow(CpuOperation operation, std::uint64_t id, bool is_start) {
  operation.flow = CpuFlow{id, CpuFlowKind::forward_backward, is_start};
  return operation;
}

/// A command in whose submission these numbers were pushed.
inline void add_command_with_ids(ScriptedSource& source, const ScriptedCommand& command, std::initializer_list<ExternalId> ids) {
  const std::uint64_t operation = source.add_command(command);
  for (const ExternalId& id : ids) {
    trace::ExternalCorrelationRecord record{};
    record.operation = operation;
    record.external_id = id.id;
    record.family = id.family;
    record.thread = command.writer;
    source.add(trace::RecordKind::external_correlation, record);
  }
}

}  // namespace xpu::profiler::test_support
