#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace xpu::profiler {

/// Writes Protocol Buffers messages as a stream through one buffer, field by field. One owner at a time.
///
/// Messages nest as calls do:
///
///     out.message(kPacket, [&] { out.number(kTimestamp, ns); });
///
/// What is written outside of every message is a field of the file itself. The buffer is handed over between such fields and therefore
/// grows to the largest of them.
class ProtoWriter {
 public:
  using Flush = std::function<void(std::string_view)>;

  explicit ProtoWriter(Flush flush) : flush_(std::move(flush)) { buffer_.reserve(2 * kFlushAt); }
  ProtoWriter(const ProtoWriter&) = delete;
  ProtoWriter& operator=(const ProtoWriter&) = delete;

  /// Hands everything over; not to be called inside a message. What was not flushed is dropped by the destructor.
  void flush() {
    if (!buffer_.empty()) flush_(buffer_);
    buffer_.clear();
  }

  /// Of type uint32, uint64, int32, int64, bool or an enumeration. A negative number takes ten bytes.
  void number(std::uint32_t field, std::integral auto value) {
    key(field, kVarint);
    // Negative ones are extended to 64 bits, whatever the field's width.
    varint(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  /// Of type double.
  void real(std::uint32_t field, double value) {
    key(field, kFixed64);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) buffer_ += static_cast<char>(bits >> shift & 0xff);
  }
  /// Of type string or bytes, as it is.
  void text(std::uint32_t field, std::string_view value) {
    key(field, kLengthDelimited);
    varint(value.size());
    buffer_ += value;
  }
  template <std::invocable WriteFields>
  void message(std::uint32_t field, WriteFields&& write_fields) {
    key(field, kLengthDelimited);
    // Nearly every message is shorter than 128 bytes, so that its length is one byte; the others are moved.
    const std::size_t at = buffer_.size();
    buffer_ += '\0';
    ++depth_;
    std::forward<WriteFields>(write_fields)();
    --depth_;
    const std::size_t length = buffer_.size() - at - 1;
    if (length < 0x80) {
      buffer_[at] = static_cast<char>(length);
    } else {
      char bytes[kLongestVarint];
      buffer_.replace(at, 1, bytes, encode(length, bytes));
    }
    if (depth_ == 0 && buffer_.size() >= kFlushAt) flush();
  }

 private:
  static constexpr std::size_t kFlushAt = std::size_t{1} << 17;
  static constexpr std::size_t kLongestVarint = 10;
  enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

  static std::size_t encode(std::uint64_t value, char (&bytes)[kLongestVarint]) {
    std::size_t count = 0;
    while (value >= 0x80) {
      bytes[count++] = static_cast<char>((value & 0x7f) | 0x80);
      value >>= 7;
    }
    bytes[count++] = static_cast<char>(value);
    return count;
  }
  void varint(std::uint64_t value) {
    char bytes[kLongestVarint];
    buffer_.append(bytes, encode(value, bytes));
  }
  void key(std::uint32_t field, WireType type) { varint(std::uint64_t{field} << 3 | type); }

  Flush flush_;
  std::string buffer_;
  int depth_ = 0;
};

}  // namespace xpu::profiler
