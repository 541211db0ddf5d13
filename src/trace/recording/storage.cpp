#include "trace/recording/storage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <system_error>

namespace xpu::trace {

void UniqueFd::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

FileSizeSignalGuard::FileSizeSignalGuard() noexcept {
  sigset_t signals, pending;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  sigemptyset(&pending);
  sigpending(&pending);
  // One that waits already is somebody else's, and blocked: ours would merge with it.
  if (sigismember(&pending, SIGXFSZ) == 1) return;
  if (pthread_sigmask(SIG_BLOCK, &signals, &previous_) != 0) return;
  blocked_here_ = true;
}

FileSizeSignalGuard::~FileSizeSignalGuard() {
  if (!blocked_here_) return;
  const int saved = errno;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  const timespec at_once{};
  while (sigtimedwait(&signals, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  errno = saved;
}

Error storage_error(std::string_view action, std::string_view name, int error_number) {
  std::string reason = std::generic_category().message(error_number);
  if (error_number == EFBIG) reason = "the file-size limit (ulimit -f) is reached";
  if (error_number == ENOSPC) reason = "no space is left on the device";
  return Error{ErrorCode::unavailable, fmt::format("cannot {} {}: {}", action, name, reason), error_number};
}

Result<> write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset, std::string_view name) {
  const FileSizeSignalGuard guard;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return storage_error("write", name, written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

bool read_all_at(int fd, std::span<std::byte> out, std::uint64_t offset) noexcept {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return true;
}

Result<> allocate_storage(int fd, std::uint64_t offset, std::uint64_t bytes, std::string_view name) {
  {
    const FileSizeSignalGuard guard;
    int status = 0;
    do {
      status = ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    } while (status != 0 && errno == EINTR);
    if (status == 0) return {};
    if (errno != EOPNOTSUPP && errno != ENOSYS) return storage_error("allocate", name, errno);
  }
  // File systems without fallocate; posix_fallocate would touch one byte a block, which compressing file systems keep as a hole.
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  const auto zeros = std::make_unique<std::byte[]>(kPiece);
  for (std::uint64_t done = 0; done < bytes; done += kPiece) {
    const std::size_t piece = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, bytes - done));
    XPU_TRY(write_all_at(fd, {zeros.get(), piece}, offset + done, name));
  }
  return {};
}

Result<UniqueFd> create_file_at(int folder, const std::string& name) {
  UniqueFd fd(::openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return storage_error("create", name, errno);
  if (::fchmod(fd.get(), 0600) != 0) {
    const int error_number = errno;
    ::unlinkat(folder, name.c_str(), 0);
    return storage_error("create", name, error_number);
  }
  return fd;
}

Result<> replace_file_at(int folder, const std::string& name, std::span<const std::byte> bytes) {
  const std::string temporary = name + ".new";
  ::unlinkat(folder, temporary.c_str(), 0);
  XPU_TRY_ASSIGN(const UniqueFd fd, create_file_at(folder, temporary));
  Result<> written = write_all_at(fd.get(), bytes, 0, name);
  if (written && ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) written = storage_error("replace", name, errno);
  if (!written) ::unlinkat(folder, temporary.c_str(), 0);
  return written;
}

}  // namespace xpu::trace
