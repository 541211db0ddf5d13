#include "hal/source_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace xpu::hal {
namespace {

constexpr std::size_t kHashDigits = 32;
constexpr std::string_view kWorkFolderPrefix = "work.";
// A kernel of ordinary size with what compilers leave beside it meanwhile, many times over.
constexpr std::uintmax_t kLeastRoomBytes = std::uintmax_t{16} << 20;
// No compilation runs as long; what is older belongs to a process that was killed.
constexpr auto kOldestWorkFolder = std::chrono::hours(1);

/// The last bytes of a cached file. In front of it: library, key, inputs (one a line).
struct CacheTail {
  char hash[kHashDigits];  ///< Of everything in front of the tail.
  std::uint64_t key_bytes;
  std::uint64_t inputs_bytes;
  char magic[8];
};
constexpr char kCacheMagic[8] = {'x', 'p', 'u', ' ', 'k', 'e', 'r', '1'};

/// 128-bit FNV-1a as hexadecimal digits.
class CacheHash {
 public:
  void add(std::string_view bytes) noexcept {
    for (const char byte : bytes) state_ = (state_ ^ static_cast<unsigned char>(byte)) * kPrime;
  }
  std::string digits() const {
    return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(state_ >> 64), static_cast<std::uint64_t>(state_));
  }

 private:
  using Word = unsigned __int128;
  static constexpr Word kPrime = (Word{1} << 88) + 0x13b;
  Word state_ = Word{0x6c62272e07bb0142} << 64 | Word{0x62b821756295c58d};
};

class CacheFile {
 public:
  CacheFile(const std::string& path, int flags) noexcept : descriptor_(open(path.c_str(), flags | O_CLOEXEC)) {}
  ~CacheFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  bool is_open() const noexcept { return descriptor_ >= 0; }
  bool is_trusted() const noexcept {
    struct stat status{};
    return fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && (status.st_uid == geteuid() || status.st_uid == 0);
  }
  std::optional<std::string> read_all() const {
    std::string text;
    char buffer[65536];
    while (true) {
      const ssize_t bytes = read(descriptor_, buffer, sizeof buffer);
      if (bytes == 0) return text;
      if (bytes < 0 && errno != EINTR) return std::nullopt;
      if (bytes > 0) text.append(buffer, static_cast<std::size_t>(bytes));
    }
  }
  bool write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

 private:
  const int descriptor_;
};

std::string text_of_inputs(const std::vector<SourceInput>& inputs) {
  std::string text;
  for (const SourceInput& input : inputs) text += fmt::format("{} {} {}\n", input.size_bytes, input.modified_ns, input.path);
  return text;
}

/// Whether every file is as it was. A line that is not understood is a file that changed.
bool are_unchanged(std::string_view inputs) {
  while (!inputs.empty()) {
    const std::string_view line = inputs.substr(0, inputs.find('\n'));
    const std::size_t path_begin = line.find(' ', line.find(' ') + 1) + 1;
    const std::optional<SourceInput> state = state_of_input(std::string(line.substr(path_begin)));
    if (!state || text_of_inputs({*state}) != std::string(line) + '\n') return false;
    inputs.remove_prefix(line.size() + 1);
  }
  return true;
}

/// Whether the file is whole, has this key and still fits the files that went in.
bool is_current(std::string_view file, std::string_view key) {
  CacheTail tail;
  if (file.size() < sizeof tail) return false;
  std::memcpy(&tail, file.data() + file.size() - sizeof tail, sizeof tail);
  file.remove_suffix(sizeof tail);
  if (std::memcmp(tail.magic, kCacheMagic, sizeof kCacheMagic) != 0) return false;
  CacheHash hash;
  hash.add(file);
  if (hash.digits() != std::string_view(tail.hash, kHashDigits)) return false;
  if (tail.inputs_bytes > file.size() || tail.key_bytes > file.size() - tail.inputs_bytes) return false;
  const std::string_view inputs = file.substr(file.size() - tail.inputs_bytes);
  file.remove_suffix(tail.inputs_bytes);
  return file.substr(file.size() - tail.key_bytes) == key && are_unchanged(inputs);
}

/// Folders of this user alone, as the XDG specification wants them; those that exist stay as they are.
void make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0700);
    if (end == std::string::npos) return;
  }
}

void remove_old_work_folders(const std::string& folder) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code ignored;
    if (!entry->path().filename().native().starts_with(kWorkFolderPrefix)) continue;
    const auto modified = std::filesystem::last_write_time(entry->path(), ignored);
    if (!ignored && modified < std::filesystem::file_time_type::clock::now() - kOldestWorkFolder) {
      std::filesystem::remove_all(entry->path(), ignored);
    }
  }
}

/// Where it is not known, there is.
bool has_room(const std::string& folder) {
  std::error_code failed;
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  return failed || space.available >= kLeastRoomBytes;
}

/// Empty when that is not possible, with errno.
std::string make_unique_folder(std::string prefix) {
  prefix += "XXXXXX";
  return mkdtemp(prefix.data()) != nullptr ? prefix : std::string();
}

}  // namespace

std::optional<SourceInput> state_of_input(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return SourceInput{path, status.st_size, status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
}

std::vector<std::string> inputs_of_rule(std::string_view rule) {
  std::vector<std::string> paths;
  std::string path;
  rule.remove_prefix(std::min(rule.find(": "), rule.size()));
  for (std::size_t i = std::min<std::size_t>(1, rule.size()); i < rule.size(); ++i) {
    const char next = i + 1 < rule.size() ? rule[i + 1] : '\0';
    if ((rule[i] == '\\' && (next == ' ' || next == '#')) || (rule[i] == '$' && next == '$')) {
      path += next;
      ++i;
    } else if (rule[i] == ' ' || rule[i] == '\n' || (rule[i] == '\\' && next == '\n')) {
      if (!path.empty()) paths.push_back(std::exchange(path, {}));
    } else {
      path += rule[i];
    }
  }
  if (!path.empty()) paths.push_back(path);
  return paths;
}

std::string SourceCache::path_of(std::string_view key) const {
  CacheHash hash;
  hash.add(key);
  return fmt::format("{}/{}.so", folder_, hash.digits());
}

std::optional<std::string> SourceCache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::string path = path_of(key);
  const CacheFile file(path, O_RDONLY);
  if (!file.is_open() || !file.is_trusted()) return std::nullopt;
  const std::optional<std::string> text = file.read_all();
  if (!text || !is_current(*text, key)) return std::nullopt;
  return path;
}

bool SourceCache::add(std::string_view key, const std::vector<SourceInput>& inputs, const std::string& path) const {
  if (folder_.empty()) return false;
  const CacheFile file(path, O_RDWR | O_APPEND);
  if (!file.is_open()) return false;
  const std::optional<std::string> library = file.read_all();
  if (!library) return false;
  const std::string inputs_text = text_of_inputs(inputs);
  CacheHash hash;
  for (const std::string_view part : {std::string_view(*library), key, std::string_view(inputs_text)}) hash.add(part);
  CacheTail tail{};
  std::memcpy(tail.hash, hash.digits().data(), kHashDigits);
  tail.key_bytes = key.size();
  tail.inputs_bytes = inputs_text.size();
  std::memcpy(tail.magic, kCacheMagic, sizeof kCacheMagic);
  return file.write_all(key) && file.write_all(inputs_text) && file.write_all({reinterpret_cast<const char*>(&tail), sizeof tail}) &&
         std::rename(path.c_str(), path_of(key).c_str()) == 0;
}

Result<std::string> SourceCache::make_work_folder(const std::string& temporary_folder) const {
  if (!folder_.empty()) {
    make_folders(folder_);
    remove_old_work_folders(folder_);
    std::string work = has_room(folder_) ? make_unique_folder(fmt::format("{}/{}", folder_, kWorkFolderPrefix)) : std::string();
    if (!work.empty()) return work;
  }
  std::string work = make_unique_folder(temporary_folder + "/xpu.");
  if (!work.empty()) return work;
  return Error{ErrorCode::unavailable,
               fmt::format("cannot make a folder to compile in, neither in the cache '{}' nor in '{}': {}", folder_, temporary_folder,
                           std::strerror(errno)),
               errno};
}

}  // namespace xpu::hal
