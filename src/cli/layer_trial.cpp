#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cli/diagnose.hpp"
#include "cli/environment.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::cli {
namespace {

constexpr std::uint64_t kPatienceNs = 10'000'000'000;
constexpr std::size_t kLongestText = 2'000;

/// A layer is linked against the libraries that the program has already: an older C++ library is the usual reason why one does not load.
std::string preload_of(const ImageSight& image) {
  std::string list;
  for (const std::string& file : image.files) {
    const std::string name = std::filesystem::path(file).filename().string();
    if (!name.starts_with("libstdc++.so") && !name.starts_with("libgcc_s.so")) continue;
    if (!file_contains("/proc/self/maps", file)) list += (list.empty() ? "" : ":") + file;
  }
  return list;
}

std::string read_until_closed(int descriptor) {
  const std::uint64_t deadline = now_ns() + kPatienceNs;
  std::string text;
  char block[512];
  for (;;) {
    const std::uint64_t now = now_ns();
    pollfd entry{descriptor, POLLIN, 0};
    if (now >= deadline || poll(&entry, 1, static_cast<int>((deadline - now) / 1'000'000) + 1) <= 0) return text;
    const ssize_t got = read(descriptor, block, sizeof block);
    if (got <= 0) return text;
    if (text.size() < kLongestText) text.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::optional<std::string> try_layer_in_child(const ImageSight& image, const std::string& layer_path,
                                              const std::vector<std::string>& environment) {
  // Without XPU_RECORD: what is tried here must not become part of the recording.
  std::vector<std::string> variables;
  for (const std::string& variable : environment) {
    if (!variable.starts_with("XPU_RECORD=") && !variable.starts_with("LD_PRELOAD=")) variables.push_back(variable);
  }
  if (const std::string preload = preload_of(image); !preload.empty()) variables.push_back("LD_PRELOAD=" + preload);
  std::vector<char*> pointers;
  for (std::string& variable : variables) pointers.push_back(variable.data());
  pointers.push_back(nullptr);
  std::string program = "xpu";
  std::string argument = kTryLayerArgument;
  std::string path = layer_path;
  char* const arguments[] = {program.data(), argument.data(), path.data(), nullptr};

  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t pid = fork();
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(output[1], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    execve("/proc/self/exe", arguments, pointers.data());
    _exit(0);
  }
  close(output[1]);
  if (pid < 0) {
    close(output[0]);
    return std::nullopt;
  }
  std::string text = read_until_closed(output[0]);
  close(output[0]);
  kill(pid, SIGKILL);  // It has ended, or it hangs.
  int status = 0;
  waitpid(pid, &status, 0);
  while (text.ends_with('\n')) text.pop_back();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  if (WIFSIGNALED(status) && text.empty()) return fmt::format("loading {} ended with signal {}", layer_path, WTERMSIG(status));
  return text;
}

int run_layer_trial(const char* layer_path) {
  if (dlopen(layer_path, RTLD_NOW | RTLD_LOCAL) != nullptr) return 0;
  const std::string text = fmt::format("{}\n", dlerror());
  static_cast<void>(!write(STDOUT_FILENO, text.data(), text.size()));
  return 1;
}

}  // namespace xpu::cli
