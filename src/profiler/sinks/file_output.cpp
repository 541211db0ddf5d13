#include "profiler/sinks/file_output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace xpu::profiler {

struct FileOutput::Compressor {
  z_stream stream{};
  std::vector<unsigned char> out = std::vector<unsigned char>(std::size_t{1} << 18);
  bool ready = false;
  ~Compressor() {
    if (ready) deflateEnd(&stream);
  }
};

FileOutput::FileOutput(std::string path, int file) : path_(std::move(path)), temporary_path_(path_ + ".tmp"), file_(file) {}

Result<std::unique_ptr<FileOutput>> FileOutput::create(const std::string& path) {
  std::unique_ptr<FileOutput> output(new FileOutput(path, -1));
  // A left-over of an export that was killed, or a link somebody put there, must not be written through.
  ::unlink(output->temporary_path_.c_str());
  output->file_ = ::open(output->temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (output->file_ < 0) return output->failure("create", errno);
  if (path.ends_with(".gz")) {
    output->compressor_ = std::make_unique<Compressor>();
    constexpr int kGzip = 16 + MAX_WBITS;
    constexpr int kMemoryLevel = 9;
    output->compressor_->ready = deflateInit2(&output->compressor_->stream, 1, Z_DEFLATED, kGzip, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK;
    if (!output->compressor_->ready) return Error{ErrorCode::out_of_host_memory, "no memory for the compressor of " + path};
  }
  return output;
}

FileOutput::~FileOutput() {
  if (file_ < 0) return;
  ::close(file_);
  if (!finished_ && !keeps_part_) ::unlink(temporary_path_.c_str());
}

Error FileOutput::failure(const char* doing, int error_number) const {
  return {ErrorCode::unavailable,
          std::string("cannot ") + doing + ' ' + temporary_path_ + ": " + std::generic_category().message(error_number), error_number};
}

Result<> FileOutput::write(std::string_view bytes) {
  if (compressor_ == nullptr) return write_plain(bytes.data(), bytes.size());
  compressor_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  compressor_->stream.avail_in = static_cast<uInt>(bytes.size());
  return deflate_all(Z_NO_FLUSH);
}

Result<> FileOutput::flush() {
  if (compressor_ == nullptr) return {};
  compressor_->stream.next_in = nullptr;
  compressor_->stream.avail_in = 0;
  return deflate_all(Z_SYNC_FLUSH);
}

Result<> FileOutput::deflate_all(int flush) {
  z_stream& stream = compressor_->stream;
  int status = Z_OK;
  do {
    stream.next_out = compressor_->out.data();
    stream.avail_out = static_cast<uInt>(compressor_->out.size());
    status = ::deflate(&stream, flush);
    if (status == Z_STREAM_ERROR) return Error{ErrorCode::internal, "the compressor failed on " + temporary_path_, status};
    XPU_TRY(write_plain(reinterpret_cast<const char*>(compressor_->out.data()), compressor_->out.size() - stream.avail_out));
  } while (flush == Z_FINISH ? status != Z_STREAM_END : stream.avail_out == 0);
  return {};
}

Result<> FileOutput::write_plain(const char* bytes, std::size_t count) {
  while (count != 0) {
    const ssize_t written = ::write(file_, bytes, count);
    if (written < 0) {
      if (errno == EINTR) continue;
      return failure("write", errno);
    }
    bytes += written;
    count -= static_cast<std::size_t>(written);
    bytes_ += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<std::uint64_t> FileOutput::finish() {
  if (compressor_ != nullptr) {
    compressor_->stream.next_in = nullptr;
    compressor_->stream.avail_in = 0;
    XPU_TRY(deflate_all(Z_FINISH));
  }
  // Some file systems tell of a full disk only here.
  const int closed = ::close(file_);
  const int close_error = errno;
  file_ = -1;
  if (closed != 0 || ::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    const Error error = failure(closed != 0 ? "write" : "rename", closed != 0 ? close_error : errno);
    if (!keeps_part_) ::unlink(temporary_path_.c_str());
    return error;
  }
  finished_ = true;
  return bytes_;
}

}  // namespace xpu::profiler
