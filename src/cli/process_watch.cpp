#include "cli/process_watch.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/environment.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::cli {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kBeginningNs = 100 * kMillisecond;
constexpr std::uint64_t kAllowanceNs = 30 * kMillisecond;
constexpr std::uint64_t kShare = 200;  // one part in
constexpr std::size_t kMostProcesses = 64;
constexpr std::size_t kMostImages = 256;

/// Of this thread. A look is paid in processor time: on a busy machine it takes far longer than it costs.
std::uint64_t cpu_time_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Nothing when it cannot be opened. Files of /proc have no size, so they are read to the end.
std::optional<std::string> read_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  std::string text;
  char block[16'384];
  ssize_t got = 0;
  while ((got = read(descriptor, block, sizeof block)) > 0) text.append(block, static_cast<std::size_t>(got));
  close(descriptor);
  if (got < 0) return std::nullopt;
  return text;
}

std::string executable_of(pid_t pid) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  return error ? std::string() : path.string();
}

std::string_view base_name(std::string_view path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// The distinct files of a memory map, in its order.
std::vector<std::string> mapped_files(std::string_view maps) {
  std::vector<std::string> files;
  while (!maps.empty()) {
    const auto end = std::min(maps.find('\n'), maps.size());
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    const auto slash = line.find('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view path = line.substr(slash);
    if (std::find(files.rbegin(), files.rend(), path) == files.rend()) files.emplace_back(path);
  }
  return files;
}

/// What exec handed a process beside its environment: where its image, its stack and its random bytes lie, so another exec of the same
/// file has another one. Empty while exec is at work, when the process is gone, or when its memory is closed to us.
std::string auxiliary_vector(pid_t pid) {
  std::string vector = read_file(fmt::format("/proc/{}/auxv", pid)).value_or(std::string());
  if (vector.size() <= sizeof(Elf64_auxv_t)) vector.clear();  // only its end mark: not filled in yet
  return vector;
}

/// The dynamic linker is there and nothing that it has to map.
bool is_still_linking(const std::vector<std::string>& files) {
  bool linker = false;
  for (const std::string& file : files) {
    const std::string_view name = base_name(file);
    if (name.starts_with("ld-") && !name.starts_with("ld-musl")) {
      linker = true;
    } else if (name != "ld.so.cache" && name.find(".so") != std::string_view::npos) {
      return false;
    }
  }
  return linker;
}

bool is_secure(std::string_view auxiliary_vector) {
  for (std::size_t at = 0; at + sizeof(Elf64_auxv_t) <= auxiliary_vector.size(); at += sizeof(Elf64_auxv_t)) {
    Elf64_auxv_t entry{};
    std::memcpy(&entry, auxiliary_vector.data() + at, sizeof entry);
    if (entry.a_type == AT_SECURE) return entry.a_un.a_val != 0;
  }
  return false;
}

/// Whether users, groups or capabilities differ from ours: then its memory is closed to us because of its privileges.
bool has_other_privileges(pid_t pid) {
  const auto theirs = read_file(fmt::format("/proc/{}/status", pid));
  const auto ours = read_file("/proc/self/status");
  if (!theirs || !ours) return false;
  const auto line = [](std::string_view status, std::string_view key) {
    const auto at = status.find(key);
    return at == std::string_view::npos ? std::string_view() : status.substr(at, status.find('\n', at + 1) - at);
  };
  for (const std::string_view key : {"\nUid:", "\nGid:", "\nCapPrm:"}) {
    if (line(*theirs, key) != line(*ours, key)) return true;
  }
  return false;
}

std::string foreign_machine(pid_t pid) {
  const int descriptor = open(fmt::format("/proc/{}/exe", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  Elf64_Ehdr header{};
  const ssize_t got = read(descriptor, &header, sizeof header);
  close(descriptor);
  if (got < static_cast<ssize_t>(sizeof(Elf32_Ehdr)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "a 32-bit program";
#if defined(__x86_64__)
  constexpr Elf64_Half kOurMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr Elf64_Half kOurMachine = EM_AARCH64;
#else
  const Elf64_Half kOurMachine = header.e_machine;
#endif
  return header.e_machine == kOurMachine ? std::string() : "a program for another processor";
}

}  // namespace

bool file_contains(const std::string& path, std::string_view text) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const auto contents = read_file(path);
  return contents && memmem(contents->data(), contents->size(), text.data(), text.size()) != nullptr;
}

ProcessWatch::ProcessWatch(pid_t program, std::string live_path, std::string layer_path, std::uint64_t start_ns)
    : program_(program), live_path_(std::move(live_path)), layer_path_(std::move(layer_path)), start_ns_(start_ns), next_ns_(start_ns) {}

void ProcessWatch::look() {
  const std::uint64_t cpu_before_ns = cpu_time_ns();
  std::vector<pid_t> processes{program_};
  for (std::size_t at = 0; at < processes.size() && processes.size() < kMostProcesses; ++at) add_children(processes[at], processes);
  for (const pid_t pid : processes) look_at(pid);

  last_ns_ = now_ns();
  spent_ns_ += cpu_time_ns() - cpu_before_ns;
  const std::uint64_t age_ns = last_ns_ - start_ns_;
  const std::uint64_t pause_ns = age_ns < kBeginningNs ? kMillisecond : std::min(age_ns / 20, 250 * kMillisecond);
  // When all that may be spent is spent, not before the program is old enough to allow it.
  const std::uint64_t over_ns = spent_ns_ > kAllowanceNs ? spent_ns_ - kAllowanceNs : 0;
  next_ns_ = std::max(last_ns_ + pause_ns, start_ns_ + kShare * over_ns);
}

void ProcessWatch::add_children(pid_t pid, std::vector<pid_t>& found) const {
  // A process is listed under the thread that made it.
  std::error_code error;
  std::filesystem::directory_iterator tasks(fmt::format("/proc/{}/task", pid), error);
  for (; !error && tasks != std::filesystem::directory_iterator(); tasks.increment(error)) {
    const auto list = read_file(tasks->path().string() + "/children");
    if (!list) continue;
    const char* at = list->data();
    const char* const end = at + list->size();
    pid_t child = 0;
    for (;;) {
      const auto [next, failure] = std::from_chars(at, end, child);
      if (failure != std::errc{} || found.size() >= kMostProcesses) break;
      found.push_back(child);
      at = next == end ? end : next + 1;
    }
  }
}

ImageSight* ProcessWatch::find_image(pid_t pid, const std::string& executable, const std::string& auxiliary_vector) {
  for (auto image = images_.rbegin(); image != images_.rend(); ++image) {
    if (image->pid == pid && image->executable == executable && image->auxiliary_vector == auxiliary_vector) return &*image;
  }
  return nullptr;
}

ImageSight& ProcessWatch::image_of(pid_t pid, const std::string& executable, const std::string& auxiliary_vector) {
  if (ImageSight* known = find_image(pid, executable, auxiliary_vector)) return *known;
  // A program that starts thousands of others is described by the latest ones.
  if (images_.size() == kMostImages) images_.erase(images_.begin());
  ImageSight image;
  image.pid = pid;
  image.executable = executable;
  image.auxiliary_vector = auxiliary_vector;
  images_.push_back(std::move(image));
  return images_.back();
}

bool ProcessWatch::loader_knows_layers(pid_t pid, const std::string& loader) {
  for (const auto& [path, knows] : loaders_) {
    if (path == loader) return knows;
  }
  // Its own root folder: the program may live in a container.
  const std::string inside = fmt::format("/proc/{}/root{}", pid, loader);
  const bool knows = file_contains(access(inside.c_str(), R_OK) == 0 ? inside : loader, kLayersVariable);
  loaders_.emplace_back(loader, knows);
  return knows;
}

void ProcessWatch::look_at(pid_t pid) {
  const std::string auxv = auxiliary_vector(pid);
  const std::string executable = executable_of(pid);
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid));
  if (!maps) {
    if (!has_other_privileges(pid)) return;
    image_of(pid, executable, {}).privileged = true;
    return;
  }
  std::vector<std::string> files = mapped_files(*maps);
  if (files.empty() || is_still_linking(files)) return;
  const ImageSight* known = find_image(pid, executable, auxv);
  // Judged once: programs write over this memory to change their title.
  std::optional<std::string> environment;
  if (known == nullptr || !known->environment_known) environment = read_file(fmt::format("/proc/{}/environ", pid));
  // A process may have ended, or executed another program, between two of these: then they are of no image, or of two.
  if (auxv.empty() || auxiliary_vector(pid) != auxv) return;

  ImageSight& image = image_of(pid, executable, auxv);
  if (++image.looks == 1) {
    image.privileged = is_secure(auxv);
    image.foreign_machine = foreign_machine(pid);
  }
  // At the very end of exec it is still empty. One that is empty at the next look as well was handed over so.
  if (environment && (!environment->empty() || image.looks > 1)) note_environment(image, *environment);
  // As it is now: the dynamic linker maps a layer for a moment before it finds that one of its libraries is missing.
  image.layer_mapped = std::find(files.begin(), files.end(), layer_path_) != files.end();
  for (const std::string& file : files) {
    if (base_name(file).starts_with("libOpenCL.so") && image.loader != file) {
      image.loader = file;
      image.loader_knows_layers = loader_knows_layers(pid, file);
    }
  }
  // A program may close the loader again before it ends.
  if (files.size() >= image.files.size()) image.files = std::move(files);
}

void ProcessWatch::note_environment(ImageSight& image, const std::string& environment) const {
  image.environment_known = true;
  std::vector<const char*> variables;
  for (std::size_t at = 0; at < environment.size(); at += std::strlen(environment.c_str() + at) + 1)
    variables.push_back(environment.c_str() + at);
  variables.push_back(nullptr);
  const char* record = find_variable(variables.data(), kRecordVariable);
  const char* layers = find_variable(variables.data(), kLayersVariable);
  image.has_record = record != nullptr && live_path_ == record;
  image.has_layers = layers != nullptr;
  image.layers = layers == nullptr ? "" : layers;
}

}  // namespace xpu::cli
