#include "profiler/sinks/chrome_head.hpp"

#include <string>

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

}  // namespace xpu::profiler
