#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "xpu/base/result.hpp"

namespace xpu::profiler {

/// A file that appears under its name only when it is complete: it is written as NAME.tmp and renamed by `finish`; without that the
/// destructor removes it, unless a part is to stay. Compressed (gzip, level 1) when the name ends in ".gz". One owner at a time. Errors are
/// `unavailable` and name the file and the reason.
class FileOutput {
 public:
  static Result<std::unique_ptr<FileOutput>> create(const std::string& path);
  ~FileOutput();
  FileOutput(const FileOutput&) = delete;
  FileOutput& operator=(const FileOutput&) = delete;

  Result<> write(std::string_view bytes);
  /// What was written until now can be read by others, who see a file that is cut off.
  Result<> flush();
  /// Whether what was written stays, as NAME.tmp, without `finish`, or where that fails.
  void keep_part(bool keeps) noexcept { keeps_part_ = keeps; }
  const std::string& temporary_path() const noexcept { return temporary_path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Returns the size of the file.
  Result<std::uint64_t> finish();

 private:
  struct Compressor;
  FileOutput(std::string path, int file);
  Error failure(const char* doing, int error_number) const;
  Result<> write_plain(const char* bytes, std::size_t count);
  Result<> deflate_all(int flush);

  std::string path_, temporary_path_;
  int file_ = -1;
  bool finished_ = false, keeps_part_ = false;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<Compressor> compressor_;
};

}  // namespace xpu::profiler
