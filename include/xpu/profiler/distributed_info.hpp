#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace xpu::profiler {

/// A group of processes that work together; every text is written as it was given.
struct ProcessGroup {
  std::string name, description;
  std::string backend;  ///< "xpu:xccl", ...
  std::uint64_t size = 0;
  std::vector<std::int64_t> ranks = {};
};

/// Which part of a distributed program this process is; for `Session::set_distributed_info`.
struct DistributedInfo {
  std::string backend;  ///< "xccl", "gloo", ...; nothing is made of it.
  std::int64_t rank = 0, world_size = 1;
  std::vector<ProcessGroup> groups = {};
  std::optional<std::uint64_t> group_count = {};  ///< Where `groups` are not all.
  /// Further facts, such as "nccl_version".
  std::vector<std::pair<std::string, std::string>> facts = {};
};

}  // namespace xpu::profiler
