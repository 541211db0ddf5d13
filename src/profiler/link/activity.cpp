#include "xpu/profiler/activity.hpp"

namespace xpu::profiler {

std::string_view to_string(Command command) noexcept {
  switch (command) {
    case Command::other: break;
    case Command::ndrange_kernel: return "ndrange_kernel";
    case Command::task_kernel: return "task_kernel";
    case Command::native_kernel: return "native_kernel";
    case Command::read: return "read";
    case Command::write: return "write";
    case Command::copy: return "copy";
    case Command::fill: return "fill";
    case Command::map: return "map";
    case Command::unmap: return "unmap";
    case Command::migrate: return "migrate";
    case Command::marker: return "marker";
    case Command::barrier: return "barrier";
    case Command::shared_free: return "shared_free";
    case Command::command_buffer: return "command_buffer";
    case Command::acquire_external: return "acquire_external";
    case Command::release_external: return "release_external";
  }
  return "other";
}

std::string_view to_string(MemoryType type) noexcept {
  switch (type) {
    case MemoryType::unknown: break;
    case MemoryType::host: return "host";
    case MemoryType::device: return "device";
    case MemoryType::shared: return "shared";
    case MemoryType::pinned: return "pinned";
    case MemoryType::image: return "image";
  }
  return "unknown";
}

std::string_view to_string(WaitType type) noexcept {
  switch (type) {
    case WaitType::unknown: break;
    case WaitType::queue: return "queue";
    case WaitType::events: return "events";
    case WaitType::blocking_call: return "blocking_call";
    case WaitType::device: return "device";
    case WaitType::stream_on_event: return "stream_on_event";
  }
  return "unknown";
}

std::string_view to_string(OverheadType type) noexcept {
  switch (type) {
    case OverheadType::time: return "recording";
    case OverheadType::unknown: break;
    case OverheadType::resource: return "memory for records";
    case OverheadType::buffer_flush: return "handing records over";
    case OverheadType::driver: return "times from the driver";
  }
  return "unknown";
}

}  // namespace xpu::profiler
