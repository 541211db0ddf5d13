#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "xpu/profiler/activity.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// Which operations are nodes of graphs, found by process and operation. One owner at a time.
class GraphNodes {
 public:
  explicit GraphNodes(std::size_t processes) : processes_(processes) {}

  void add(std::size_t process, const trace::GraphNodeRecord& record) {
    if (process < processes_.size()) processes_[process].insert_or_assign(record.operation, GraphNode{record.graph, record.node});
  }
  std::optional<GraphNode> find(std::size_t process, std::uint64_t operation) const {
    if (process >= processes_.size() || processes_[process].empty()) return std::nullopt;
    const auto found = processes_[process].find(operation);
    return found == processes_[process].end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::vector<std::unordered_map<std::uint64_t, GraphNode>> processes_;
};

}  // namespace xpu::profiler
