#include "interceptors/opencl/program_threads.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace xpu::interceptors::opencl {
namespace {

/// A file of /proc/self/task/TID, as much as fits; empty when there is none.
std::string_view read_task_file(long thread, const char* name, char* buffer, std::size_t room) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%ld/%s", thread, name);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t bytes = read(file, buffer, room);
  close(file);
  return {buffer, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

/// The main thread stays, as a zombie, until all others have ended.
bool main_thread_has_ended() noexcept {
  char buffer[256];
  const std::string_view text = read_task_file(getpid(), "stat", buffer, sizeof buffer);
  const std::size_t name_end = text.rfind(") ");  // "PID (name) S …", and a name may hold anything
  return name_end != std::string_view::npos && name_end + 2 < text.size() && text[name_end + 2] == 'Z';
}

bool is_ours(long thread) noexcept {
  char buffer[32];
  return read_task_file(thread, "comm", buffer, sizeof buffer).substr(0, 4) == "xpu-";
}

}  // namespace

bool program_has_no_threads() noexcept {
  if (!main_thread_has_ended()) return false;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  bool found_one = false;
  while (const dirent* entry = readdir(tasks)) {
    const long thread = std::strtol(entry->d_name, nullptr, 10);
    if (thread != 0 && thread != getpid() && !is_ours(thread)) found_one = true;
  }
  closedir(tasks);
  return !found_one;
}

}  // namespace xpu::interceptors::opencl
