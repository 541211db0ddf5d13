#include "profiler/sinks/chrome_text.hpp"

#include "profiler/sinks/json_text.hpp"

namespace xpu::profiler {
namespace {

using std::to_string;

std::string_view short_direction(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::host_to_device: return " HtoD";
    case CopyDirection::device_to_host: return " DtoH";
    case CopyDirection::device_to_device: return " DtoD";
    case CopyDirection::host_to_host: return " HtoH";
    case CopyDirection::peer: return " PtoP";
    case CopyDirection::unknown: break;
  }
  return "";
}

std::string capitalized(std::string_view word) {
  std::string text(word);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string triple(const std::uint64_t (&values)[3]) {
  return '[' + to_string(values[0]) + ',' + to_string(values[1]) + ',' + to_string(values[2]) + ']';
}

}  // namespace

std::string place_name(MemoryType type, bool device_side) {
  if (type != MemoryType::unknown) return capitalized(to_string(type));
  return device_side ? "Device" : "Host";
}

std::string copy_name(const MemcpyActivity& copy) {
  std::string name = "Memcpy";
  if (copy.command == Command::map || copy.command == Command::unmap || copy.command == Command::migrate) {
    name += ' ' + capitalized(to_string(copy.command));
  } else {
    name += short_direction(copy.direction);
  }
  const CopyDirection direction = copy.direction;
  if (direction == CopyDirection::unknown && copy.source == MemoryType::unknown && copy.destination == MemoryType::unknown) return name;
  const bool from_device =
      direction == CopyDirection::device_to_host || direction == CopyDirection::device_to_device || direction == CopyDirection::peer;
  const bool to_device =
      direction == CopyDirection::host_to_device || direction == CopyDirection::device_to_device || direction == CopyDirection::peer;
  return name + " (" + place_name(copy.source, from_device) + " -> " + place_name(copy.destination, to_device) + ')';
}

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
  if (kernel.local_bytes != 0) args += ",\"shared memory\":" + to_string(kernel.local_bytes);
  if (kernel.private_bytes != 0) args += ",\"private memory\":" + to_string(kernel.private_bytes);
  if (kernel.sub_group != 0) args += ",\"sub-group size\":" + to_string(kernel.sub_group);
  if (kernel.raw_name != kernel.name) args += ",\"raw name\":" + json_string(kernel.raw_name);
  return args;
}

std::string metadata(std::string_view pid, std::string_view tid, std::string_view name, std::string_view argument) {
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

std::string sort_argument(std::uint64_t index) { return "\"sort_index\":" + to_string(index); }

}  // namespace xpu::profiler
