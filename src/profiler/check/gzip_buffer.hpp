#pragma once

#include <zlib.h>

#include <array>
#include <memory>
#include <streambuf>
#include <string>

#include "xpu/base/result.hpp"

namespace xpu::profiler {

/// Reads a file that is plain or gzip. One owner at a time.
class GzipBuffer final : public std::streambuf {
 public:
  /// unavailable: cannot be opened, or is no file.
  static Result<std::unique_ptr<GzipBuffer>> open(const std::string& path);
  ~GzipBuffer() override;
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;

  /// What ended the text early, if anything did: ask when the text has ended. unavailable: cannot be read, or is not whole as gzip.
  Result<> status() const;

 protected:
  int_type underflow() override;

 private:
  GzipBuffer(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  gzFile file_;
  std::string problem_;
  std::array<char, 1 << 16> bytes_;
};

}  // namespace xpu::profiler
