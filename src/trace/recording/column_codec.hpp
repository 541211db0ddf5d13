#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

/// One column of a block: 64-bit numbers <-> bytes. Numbers are residuals: what a prediction left over, so most lie close together.
///
///     column     = u8 width, varint zigzag(base), varint exceptions, [varint bytes, stream], width x stream
///     stream     = u8 method, varint stored bytes, data
///     exceptions = per number that is not in [base, base + 2^(8 width)): varint gap to the one before, varint zigzag(number - base)
///
/// number - base is written as `width` planes: all lowest bytes, then all second bytes, … A plane of noise costs its entropy and a plane of
/// equal bytes nothing. Plain varints would mix the two and cost a deflate pass over everything.
namespace xpu::trace {

inline constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

/// How the bytes of a stream are stored. The numbers are written to recordings.
enum class StreamMethod : std::uint8_t { stored = 0, deflated = 1, repeated = 2 };

void put_varint(std::vector<std::byte>& out, std::uint64_t value);

/// Reads from a block's bytes; past the end or after a bad number it yields zeros and stays failed.
class BlockReader {
 public:
  explicit BlockReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  std::uint8_t u8() noexcept;
  std::uint64_t varint() noexcept;
  std::span<const std::byte> take(std::size_t count) noexcept;
  bool failed() const noexcept { return failed_; }
  bool at_end() const noexcept { return bytes_.empty(); }
  std::size_t remaining() const noexcept { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

/// Bytes -> a stream as above. One owner at a time.
class StreamEncoder {
 public:
  StreamEncoder();
  ~StreamEncoder();
  StreamEncoder(const StreamEncoder&) = delete;
  StreamEncoder& operator=(const StreamEncoder&) = delete;

  void encode(std::span<const std::byte> bytes, std::vector<std::byte>& out);
  /// Raw deflate, level 1; false when the result would not be smaller than the input.
  bool deflate(std::span<const std::byte> bytes, std::vector<std::byte>& out);

 private:
  struct Deflaters;
  std::unique_ptr<Deflaters> deflaters_;
};

/// A stream -> exactly `out.size()` bytes; false when it holds something else.
class StreamDecoder {
 public:
  StreamDecoder();
  ~StreamDecoder();
  StreamDecoder(const StreamDecoder&) = delete;
  StreamDecoder& operator=(const StreamDecoder&) = delete;

  bool decode(BlockReader& in, std::span<std::byte> out);
  bool inflate(std::span<const std::byte> stored, std::span<std::byte> out);

 private:
  struct Inflater;
  std::unique_ptr<Inflater> inflater_;
};

class ColumnEncoder {
 public:
  void encode(std::span<const std::int64_t> numbers, std::vector<std::byte>& out);
  /// Bytes per 256 numbers that a column of these would take before deflate, from a sample of at most kSample of them. Sorts the sample.
  static std::uint64_t estimate(std::span<std::int64_t> sample);
  static constexpr std::size_t kSample = 256;

  StreamEncoder& streams() noexcept { return streams_; }

 private:
  struct Frame {
    std::int64_t base = 0;
    unsigned width = 8;
    std::uint64_t cost = 0;
  };
  static Frame choose_frame(std::span<std::int64_t> sample);
  void encode_planes(std::span<const std::int64_t> numbers, const Frame& frame, std::vector<std::byte>& out);

  template <unsigned kWidth>
  void fill_planes(std::span<const std::int64_t> numbers, std::uint64_t base);

  StreamEncoder streams_;
  std::unique_ptr<std::byte[]> planes_;
  std::size_t planes_room_ = 0;
  std::vector<std::byte> exceptions_;
  std::size_t exception_count_ = 0;
};

class ColumnDecoder {
 public:
  /// False when the bytes are no column of `numbers.size()` numbers.
  bool decode(BlockReader& in, std::span<std::int64_t> numbers);
  StreamDecoder& streams() noexcept { return streams_; }

 private:
  StreamDecoder streams_;
  std::vector<std::byte> plane_, exceptions_;
};

}  // namespace xpu::trace
