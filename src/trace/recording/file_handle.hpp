#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/recording/storage.hpp"

namespace xpu::trace {

/// Owns a file descriptor that is only read from. Reads by position, never through a mapping: a file that shrinks under the reader then
/// reads short, where a mapping would raise SIGBUS.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) noexcept : fd_(fd) {}

  /// A regular file; anything else (a pipe would make the reader wait for ever) gives a handle that is not open. `errno` says why.
  static FileHandle open_regular(const char* path, int extra_flags = 0) noexcept {
    FileHandle handle(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | extra_flags));
    struct stat facts{};
    if (handle && (::fstat(handle.get(), &facts) != 0 || !S_ISREG(facts.st_mode))) {
      handle.fd_.reset();
      errno = EINVAL;
    }
    return handle;
  }

  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  int get() const noexcept { return fd_.get(); }
  int release() noexcept { return fd_.release(); }
  /// A second descriptor of the same file, -1 when there is none to be had.
  int duplicate() const noexcept { return ::fcntl(get(), F_DUPFD_CLOEXEC, 0); }

  /// 0 when it cannot be told.
  std::uint64_t size() const noexcept {
    struct stat facts{};
    return ::fstat(get(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
  }

  /// Fills `out` from `offset` on; returns how many bytes there were.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const noexcept {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t count = ::pread(get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    return done;
  }

 private:
  UniqueFd fd_;
};

}  // namespace xpu::trace
