#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "xpu/base/result.hpp"

namespace xpu::memory {

/// Writes one value as Python's pickle, protocol 2, into a file as it goes (opcodes: CPython's Lib/pickletools.py). Texts that come again,
/// and whatever is remembered, are written once and referred to. One owner.
///
/// The file appears under its name once it is complete; until then, and when something fails, there is nothing there.
class PickleWriter {
 public:
  explicit PickleWriter(std::string path);
  ~PickleWriter();
  PickleWriter(const PickleWriter&) = delete;
  PickleWriter& operator=(const PickleWriter&) = delete;

  /// The next value; between `begin_dict` and `end_dict` keys and values take turns.
  void text(std::string_view value);
  void integer(std::uint64_t value);
  void integer(std::int64_t value);
  void boolean(bool value);
  void begin_dict();
  void end_dict();
  void begin_list();
  void end_list();
  /// A tuple of two.
  void pair(std::uint64_t first, std::uint64_t second);

  /// A name for the value that was just written, for `recall`.
  std::uint32_t remember();
  void recall(std::uint32_t name);

  /// The first error that happened, if any; else the file is there.
  Result<> finish();

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{32} << 10;

  void bytes(const void* data, std::size_t count) {
    if (buffer_.size() + count > kBufferBytes) [[unlikely]]
      flush();
    buffer_.append(static_cast<const char*>(data), count);
  }
  void opcode(char code) { bytes(&code, 1); }
  void flush();

  const std::string path_, unfinished_path_;
  std::FILE* file_ = nullptr;
  std::string buffer_;  // most values are a few bytes, for which stdio takes as long as for many
  int error_ = 0;       // errno
  std::uint32_t remembered_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> texts_;
};

}  // namespace xpu::memory
