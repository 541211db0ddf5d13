#include "profiler/sinks/names.hpp"

#include "xpu/trace/conservation.hpp"

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

std::string fill_name(const MemsetActivity& fill) { return "Memset (" + place_name(fill.destination, true) + ')'; }

bool works(Command command) { return command == Command::command_buffer || command == Command::other; }

std::string row_name(const ProcessDefinition& process) { return process.name.empty() ? "process " + to_string(process.pid) : process.name; }

std::string row_name(const ThreadDefinition& thread, std::uint64_t tid) {
  return thread.name.empty() ? "thread " + to_string(tid) : thread.name;
}

std::string row_name(const QueueDefinition& queue, std::uint32_t lane, bool several_processes) {
  std::string name = "queue " + to_string(queue.id);
  if (!queue.name.empty()) name = queue.name + " (" + name + ')';
  if (several_processes) name += " of process " + to_string(queue.process->pid);
  if (lane != 0) name += " (overlap " + to_string(lane) + ')';
  return name;
}

std::string annotation_row_name(const QueueDefinition& queue, std::uint32_t lane, bool several_processes) {
  return row_name(queue, 0, several_processes) + " annotations" + (lane == 0 ? "" : " (overlap " + to_string(lane) + ')');
}

std::string row_name(const DeviceDefinition& device) { return device.name + (device.driver.empty() ? "" : " (" + device.driver + ')'); }

std::string memory_name(std::uint32_t context) { return "memory of context " + to_string(context); }

std::string loss_name(const LossActivity& loss) {
  return to_string(loss.count) + (loss.commands ? " commands lost (" : " records lost (") + trace::loss_cause_name(loss.cause) + ')';
}

std::string triple(const std::uint64_t (&values)[3]) {
  return '[' + to_string(values[0]) + ',' + to_string(values[1]) + ',' + to_string(values[2]) + ']';
}

}  // namespace xpu::profiler
