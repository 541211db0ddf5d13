#include "xpu/memory/statistics.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace xpu::memory {

void DeviceStatistics::for_each(const std::function<void(std::string_view key, std::int64_t value)>& visit) const {
  std::vector<std::pair<std::string, std::int64_t>> entries;
  const auto add_counter = [&](const std::string& name, const StatisticsCounter& counter) {
    entries.emplace_back(name + ".current", counter.current);
    entries.emplace_back(name + ".peak", counter.peak);
    entries.emplace_back(name + ".allocated", counter.allocated);
    entries.emplace_back(name + ".freed", counter.freed);
  };
  const auto add = [&](const std::string& name, const StatisticsByPool& pools) {
    add_counter(name + ".all", pools.all);
    add_counter(name + ".small_pool", pools.small_pool);
    add_counter(name + ".large_pool", pools.large_pool);
  };
  add("allocation", allocation);
  add("segment", segment);
  add("active", active);
  add("inactive_split", inactive_split);
  add("allocated_bytes", allocated_bytes);
  add("reserved_bytes", reserved_bytes);
  add("active_bytes", active_bytes);
  add("inactive_split_bytes", inactive_split_bytes);
  add("requested_bytes", requested_bytes);
  add_counter("oversize_allocations", oversize_allocations);
  add_counter("oversize_segments", oversize_segments);
  entries.emplace_back("num_alloc_retries", num_alloc_retries);
  entries.emplace_back("num_ooms", num_ooms);
  entries.emplace_back("num_sync_all_streams", num_sync_all_streams);
  entries.emplace_back("num_device_alloc", num_device_alloc);
  entries.emplace_back("num_device_free", num_device_free);
  entries.emplace_back("max_split_size", max_split_size);
  std::sort(entries.begin(), entries.end());
  for (const auto& [key, value] : entries) visit(key, value);
}

}  // namespace xpu::memory
