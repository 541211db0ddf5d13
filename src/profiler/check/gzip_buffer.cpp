#include "profiler/check/gzip_buffer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace xpu::profiler {
namespace {

/// zlib names what it reads, "<fd:3>: unexpected end of file", which tells nobody anything.
std::string_view without_descriptor(std::string_view text) {
  const std::size_t end = text.starts_with("<fd:") ? text.find(">: ") : std::string_view::npos;
  return end == std::string_view::npos ? text : text.substr(end + 3);
}

}  // namespace

Result<std::unique_ptr<GzipBuffer>> GzipBuffer::open(const std::string& path) {
  const auto refuse = [&](const char* reason) {
    return Error{ErrorCode::unavailable, fmt::format("cannot read {}: {}", path, reason), errno};
  };
  // A name that is a pipe without a writer must not make us wait.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return refuse(std::strerror(errno));
  struct stat info{};
  const char* const problem = fstat(descriptor, &info) != 0 ? std::strerror(errno) : S_ISDIR(info.st_mode) ? "it is a folder" : nullptr;
  if (problem != nullptr) {
    ::close(descriptor);
    return refuse(problem);
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
  if (code != Z_OK && code != Z_STREAM_END) problem_ = code == Z_ERRNO ? std::strerror(errno) : without_descriptor(text);
  if (count <= 0) return traits_type::eof();
  setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
  return traits_type::to_int_type(bytes_[0]);
}

Result<> GzipBuffer::status() const {
  if (problem_.empty()) return {};
  return Error{ErrorCode::unavailable, fmt::format("cannot read all of {}: {}", path_, problem_)};
}

}  // namespace xpu::profiler
