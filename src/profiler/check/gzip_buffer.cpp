#include "profiler/check/gzip_buffer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace xpu::profiler {

Result<std::unique_ptr<GzipBuffer>> GzipBuffer::open(const std::string& path) {
  const auto refuse = [&](const char* reason) {
    return Error{ErrorCode::unavailable, fmt::format("cannot read {}: {}", path, reason), errno};
  };
  // A name that is a pipe without a writer must not make us wait.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return refuse(std::strerror(errno));
  struct stat info{};
  if (fstat(descriptor, &info) != 0 || S_ISDIR(info.st_mode)) {
    ::close(descriptor);
    return refuse("it is a folder");
  }
  const gzFile file = gzdopen(descriptor, "rb");
  if (file == nullptr) {
    ::close(descriptor);
    return refuse("out of memory");
  }
  return std::unique_ptr<GzipBuffer>(new GzipBuffer(path, file));
}

GzipBuffer::~GzipBuffer() { gzclose(file_); }

GzipBuffer::int_type GzipBuffer::underflow() {
  if (!problem_.empty()) return traits_type::eof();
  const int count = gzread(file_, bytes_.data(), static_cast<unsigned>(bytes_.size()));
  int code = Z_OK;
  const char* text = gzerror(file_, &code);
  // A file that is cut off gives what it has and this code.
  if (code != Z_OK && code != Z_STREAM_END) problem_ = code == Z_ERRNO ? std::strerror(errno) : text;
  if (count <= 0) return traits_type::eof();
  setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
  return traits_type::to_int_type(bytes_[0]);
}

Result<> GzipBuffer::status() const {
  if (problem_.empty()) return {};
  return Error{ErrorCode::unavailable, fmt::format("cannot read all of {}: {}", path_, problem_)};
}

}  // namespace xpu::profiler
