#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/link/definition_table.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// What a framework recorded of itself, in order, with the arrows between its operations, found by external id. One owner at a time.
class CpuOperations {
 public:
  /// Once; `definitions` must be finished and, as `traces`, outlive it. `window_end_ns`: where those end that had not ended.
  void add(std::span<const CpuTrace> traces, ActivityKinds kinds, std::int64_t window_end_ns, DefinitionTable& definitions);

  bool is_empty() const noexcept { return activities_.empty(); }
  /// The first start of those that are handed out, or INT64_MAX.
  std::int64_t earliest_ns() const noexcept;
  /// Of several with the same id the one that began first; null when there is none.
  const CpuOperationActivity* find(const ExternalId& id) const noexcept;
  /// Sets `operation` and `annotation` by the external ids.
  void link(DeviceActivity& activity) const noexcept;
  /// Those of the kinds that are wanted.
  void hand_over(Sink& sink, LinkSummary& summary) const;

 private:
  struct HashOfId {
    std::size_t operator()(const ExternalId& id) const noexcept { return id.id * 0x9e3779b97f4a7c15u + id.family; }
  };
  struct Arrow {
    CpuOperationActivity* start = nullptr;
    std::vector<CpuOperationActivity*> ends;
  };
  /// Rows that are no threads of the program.
  struct RowGroup {
    ProcessDefinition process;
    std::map<std::uint32_t, ThreadDefinition*> rows;
  };
  ThreadDefinition& row_of(const CpuTrace& trace, std::uint32_t number, DefinitionTable& definitions);
  void find_annotations();
  void check_arrows();

  ActivityKinds kinds_;
  std::map<std::string, RowGroup> groups_;
  std::vector<CpuOperationActivity> activities_;  // by thread, then start, the outer one first
  std::unordered_map<ExternalId, const CpuOperationActivity*, HashOfId> by_id_;
  std::uint64_t dangling_flow_ends_ = 0;
};

}  // namespace xpu::profiler
