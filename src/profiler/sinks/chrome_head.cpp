#include "profiler/sinks/chrome_head.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "profiler/sinks/argument_text.hpp"

namespace xpu::profiler {
namespace {

int known_rank(const Definitions& definitions) {
  for (const ProcessDefinition& process : definitions.processes) {
    if (process.rank) return *process.rank;
  }
  return 0;
}

void write_group(JsonWriter& out, const ProcessGroup& group) {
  out.begin_object();
  out.member("pg_name", group.name);
  out.member("pg_desc", group.description);
  out.member("backend_config", group.backend);
  out.member("pg_size", group.size);
  out.key("ranks");
  out.begin_array();
  for (const std::int64_t rank : group.ranks) out.value(rank);
  out.end_array();
  out.end_object();
}

/// Kineto's keys, then ours. What nobody told is not there.
void write_device(JsonWriter& out, const Definitions& definitions, const DeviceDefinition& device) {
  const auto text = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out.member(key, value);
  };
  const auto number = [&](std::string_view key, const std::optional<std::uint64_t>& value) {
    if (value) out.member(key, *value);
  };
  out.begin_object();
  out.member("id", device.index);
  out.member("name", device.name);
  number("totalGlobalMem", device.total_memory_bytes);
  number("maxComputeUnits", device.compute_units);
  number("maxWorkGroupSize", device.max_work_group_size);
  number("maxClockFrequency", device.max_clock_mhz);
  number("maxMemAllocSize", device.max_allocation_bytes);
  number("localMemSize", device.local_memory_bytes);
  text("vendor", device.vendor);
  text("driverVersion", device.driver_version);
  text("driver", device.driver);
  text("uuid", device.uuid);
  text("pci", device.pci_address);
  if (device.parent != nullptr) out.member("parent", device.parent->index);
  const auto is_part = [&](const DeviceDefinition& other) { return other.parent == &device; };
  if (std::any_of(definitions.devices.begin(), definitions.devices.end(), is_part)) {
    out.key("subDevices");
    out.begin_array();
    for (const DeviceDefinition& other : definitions.devices) {
      if (is_part(other)) out.value(std::uint64_t{other.index});
    }
    out.end_array();
  }
  out.end_object();
}

}  // namespace

// Readers search for "rank": with a blank behind the colon.
void write_distributed_info(JsonWriter& out, const SessionInfo& info) {
  out.key("distributedInfo");
  out.begin_object();
  if (info.distributed == nullptr) {
    out.member("backend", "");
    out.member("rank", known_rank(*info.definitions));
  } else {
    const DistributedInfo& distributed = *info.distributed;
    out.member("backend", distributed.backend);
    out.member("rank", distributed.rank);
    out.member("world_size", distributed.world_size);
    out.member("pg_count", distributed.group_count.value_or(distributed.groups.size()));
    out.key("pg_config");
    out.begin_array();
    for (const ProcessGroup& group : distributed.groups) write_group(out, group);
    out.end_array();
    for (const auto& [key, text] : distributed.facts) out.member(key, text);
  }
  out.end_object();
  out.raw("\n");
}

void write_participants(JsonWriter& out, std::span<const ParticipantReport> participants) {
  if (participants.empty()) return;
  out.key("childProfilers");
  out.begin_array();
  for (const ParticipantReport& participant : participants) {
    out.begin_object();
    out.member("name", participant.name);
    out.key("errors");
    out.begin_array();
    for (const std::string& error : participant.errors) out.value(error);
    out.end_array();
    out.key("metadata");
    out.begin_object();
    for (const auto& [key, text] : participant.metadata) out.member(key, text);
    out.end_object();
    out.key("deviceProperties");
    out.begin_array();
    for (const std::vector<CpuArgument>& device : participant.device_properties) {
      out.begin_object();
      for (const CpuArgument& fact : device) {
        out.key(fact.key);
        out.prepared_value(json_value(fact.value));
      }
      out.end_object();
    }
    out.end_array();
    out.end_object();
  }
  out.end_array();
  out.raw("\n");
}

void write_device_properties(JsonWriter& out, const Definitions& definitions) {
  out.key("deviceProperties");
  out.begin_array();
  for (const DeviceDefinition& device : definitions.devices) {
    out.raw("\n");
    write_device(out, definitions, device);
  }
  out.end_array();
  out.raw("\n");
}

/// Each driver once, by the name and version of its devices.
void write_drivers(JsonWriter& out, const Definitions& definitions) {
  std::set<std::pair<std::string, std::string>> drivers;
  for (const DeviceDefinition& device : definitions.devices) {
    if (!device.driver.empty()) drivers.emplace(device.driver, device.driver_version);
  }
  out.key("drivers");
  out.begin_array();
  for (const auto& [name, version] : drivers) {
    out.begin_object();
    out.member("name", name);
    if (!version.empty()) out.member("version", version);
    out.end_object();
  }
  out.end_array();
  out.raw("\n");
}

}  // namespace xpu::profiler
