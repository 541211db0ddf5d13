#include "profiler/sinks/chrome_text.hpp"

#include "profiler/sinks/json_text.hpp"
#include "profiler/sinks/names.hpp"

namespace xpu::profiler {

std::string geometry_args(const GeometryDefinition& geometry) {
  std::string args;
  const std::uint64_t(&global)[3] = geometry.global;
  const std::uint64_t(&local)[3] = geometry.local;
  if (local[0] != 0 && local[1] != 0 && local[2] != 0) {
    std::uint64_t grid[3];
    bool divides = true;
    for (int i = 0; i < 3; ++i) {
      grid[i] = global[i] / local[i] + (global[i] % local[i] != 0);
      divides = divides && global[i] % local[i] == 0;
    }
    args = ",\"grid\":" + triple(grid) + ",\"block\":" + triple(local);
    if (!divides) args += ",\"global\":" + triple(global);
  } else {
    args = ",\"global\":" + triple(global);
  }
  if ((geometry.offset[0] | geometry.offset[1] | geometry.offset[2]) != 0) args += ",\"offset\":" + triple(geometry.offset);
  return args;
}

std::string kernel_args(const KernelDefinition& kernel) {
  std::string args;
  if (kernel.local_bytes != 0) args += ",\"shared memory\":" + std::to_string(kernel.local_bytes);
  if (kernel.private_bytes != 0) args += ",\"private memory\":" + std::to_string(kernel.private_bytes);
  if (kernel.sub_group != 0) args += ",\"sub-group size\":" + std::to_string(kernel.sub_group);
  if (kernel.raw_name != kernel.name) args += ",\"raw name\":" + json_string(kernel.raw_name);
  return args;
}

std::string metadata_event(std::string_view pid, std::string_view tid, std::string_view name, std::string_view argument) {
  std::string event = ",\n{\"ph\":\"M\",\"name\":\"";
  event.append(name)
      .append("\",\"pid\":")
      .append(pid)
      .append(",\"tid\":")
      .append(tid)
      .append(",\"ts\":0,\"args\":{")
      .append(argument)
      .append("}}");
  return event;
}

std::string name_argument(std::string_view name) { return "\"name\":" + json_string(name); }

std::string sort_argument(std::uint64_t index) { return "\"sort_index\":" + std::to_string(index); }

}  // namespace xpu::profiler
