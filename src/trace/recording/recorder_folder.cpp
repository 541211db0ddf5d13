#include "trace/recording/recorder_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "trace/recording/compact_file.hpp"
#include "trace/recording/manifest.hpp"

namespace xpu::trace {
namespace {

constexpr std::string_view kSuffix = ".xpu";

bool is_recorders_file(std::string_view name) noexcept {
  for (const std::string_view known : {std::string_view(kManifestName), std::string_view(kCompactedName), std::string_view(kOptionsName)}) {
    if (name.substr(0, known.size()) == known && (name.size() == known.size() || name.substr(known.size()) == ".new")) return true;
  }
  return name.ends_with(".seg") || (name.starts_with("spare-") && name.ends_with(".new"));
}

void remove_recorders_files(int folder) noexcept {
  const int listing = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listing < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(listing), ::closedir);
  if (entries == nullptr) {
    ::close(listing);
    return;
  }
  while (const dirent* entry = ::readdir(entries.get())) {
    if (is_recorders_file(entry->d_name)) ::unlinkat(folder, entry->d_name, 0);
  }
}

}  // namespace

Result<LiveFolder> LiveFolder::create(const std::string& path, bool overwrite) {
  LiveFolder folder;
  const std::size_t slash = path.rfind('/');
  folder.name_ = slash == std::string::npos ? "" : path.substr(slash + 1);
  if (path.empty() || path[0] != '/' || !folder.name_.ends_with(kSuffix) || folder.name_.size() == kSuffix.size() ||
      path.find('\0') != std::string::npos) {
    return Error{ErrorCode::invalid_argument, fmt::format("the recording's path is \"{}\", it must be absolute and end in NAME.xpu", path)};
  }
  folder.path_ = path;
  folder.live_path_ = path + ".live";
  folder.live_name_ = folder.name_ + ".live";
  const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
  folder.parent_.reset(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.parent_) return storage_error("open the folder", parent, errno);
  bool made = false;
  if (Result<> opened = folder.make(overwrite, made); !opened) {
    if (made) ::unlinkat(folder.parent_.get(), folder.live_name_.c_str(), AT_REMOVEDIR);
    return std::move(opened).error();
  }
  return folder;
}

Result<> LiveFolder::make(bool overwrite, bool& made) {
  struct stat status{};
  const bool finished_exists = ::fstatat(parent_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (finished_exists && S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::failed_precondition, fmt::format("{} exists and is a folder", path_)};
  }
  if (finished_exists && !overwrite) return Error{ErrorCode::failed_precondition, fmt::format("the recording {} exists", path_)};

  made = ::mkdirat(parent_.get(), live_name_.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return storage_error("make the folder", live_path_, errno);
  if (!made && !overwrite) {
    return Error{ErrorCode::failed_precondition,
                 fmt::format("{} exists: a recording of this name is being made or was not finished", live_path_)};
  }
  folder_.reset(::openat(parent_.get(), live_name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder_) return Error{ErrorCode::failed_precondition, fmt::format("{} exists and is not a folder", live_path_), errno};
  if (::fstat(folder_.get(), &status) != 0 || status.st_uid != ::geteuid()) {
    return Error{ErrorCode::failed_precondition, fmt::format("{} exists and belongs to somebody else", live_path_)};
  }
  if (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Error{ErrorCode::failed_precondition, fmt::format("{} is being written by another recorder", live_path_)};
  }
  if (::fchmod(folder_.get(), 0700) != 0) return storage_error("restrict", live_path_, errno);
  if (!made) remove_recorders_files(folder_.get());
  // Only now: what could fail has succeeded. A link of this name is removed, what it points to stays.
  if (finished_exists && ::unlinkat(parent_.get(), name_.c_str(), 0) != 0 && errno != ENOENT) return storage_error("replace", path_, errno);
  return {};
}

Result<> LiveFolder::publish(bool overwrite) const {
  const auto exists = [&] {
    return Error{ErrorCode::failed_precondition, fmt::format("{} appeared while it was recorded; see {}", path_, live_path_)};
  };
  if (overwrite) {
    if (::renameat(folder_.get(), kCompactedName, parent_.get(), name_.c_str()) == 0) return {};
    return storage_error("rename to", path_, errno);
  }
  if (::renameat2(folder_.get(), kCompactedName, parent_.get(), name_.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return exists();
  // File systems that cannot do that in one step can make a second name, which never replaces.
  if (::linkat(folder_.get(), kCompactedName, parent_.get(), name_.c_str(), 0) == 0) return {};
  if (errno == EEXIST) return exists();
  return storage_error("rename to", path_, errno);
}

void LiveFolder::remove() const noexcept {
  remove_recorders_files(folder_.get());
  ::unlinkat(parent_.get(), live_name_.c_str(), AT_REMOVEDIR);
}

}  // namespace xpu::trace
