#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "xpu/base/result.hpp"

/// What the recording needs of the file system. Nothing here follows a link in the last part of a name.
namespace xpu::trace {

/// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

/// While one lives, writing past the file-size limit is an error (EFBIG) and no signal: SIGXFSZ ends a process by default, and the recorder
/// may be a thread of somebody else's. One per thread at a time.
class FileSizeSignalGuard {
 public:
  FileSizeSignalGuard() noexcept;
  ~FileSizeSignalGuard();
  FileSizeSignalGuard(const FileSizeSignalGuard&) = delete;
  FileSizeSignalGuard& operator=(const FileSizeSignalGuard&) = delete;

 private:
  sigset_t previous_{};
  bool blocked_here_ = false;
};

/// unavailable, "cannot ACTION NAME: no space left on device", with errno as the native code.
Error storage_error(std::string_view action, std::string_view name, int error_number);

/// All of it, or an error; how much of it is in the file then is not known.
Result<> write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset, std::string_view name);
/// Fills `out`; false at the end of the file or on an error.
bool read_all_at(int fd, std::span<std::byte> out, std::uint64_t offset) noexcept;

/// Makes bytes [offset, offset + bytes) of the file exist, zero, with storage behind them: a store through a mapping can then not fail.
Result<> allocate_storage(int fd, std::uint64_t offset, std::uint64_t bytes, std::string_view name);

/// A new file of mode 0600 in `folder`, whatever the umask; fails when the name exists.
Result<UniqueFd> create_file_at(int folder, const std::string& name);
/// Writes a file under another name and renames it: readers see the old contents or the new.
Result<> replace_file_at(int folder, const std::string& name, std::span<const std::byte> bytes);

}  // namespace xpu::trace
