#include "trace/recording/column_codec.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace xpu::trace {
namespace {

constexpr std::size_t kMaxVarintBytes = 10;

}  // namespace

std::uint8_t BlockReader::u8() noexcept {
  const std::span<const std::byte> byte = take(1);
  return byte.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(byte[0]);
}

std::uint64_t BlockReader::varint() noexcept {
  std::uint64_t value = 0;
  for (std::size_t read = 0; read < kMaxVarintBytes && read < bytes_.size(); ++read) {
    const std::uint64_t byte = std::to_integer<std::uint64_t>(bytes_[read]);
    value |= (byte & 0x7f) << (7 * read);
    if (byte < 0x80) {
      bytes_ = bytes_.subspan(read + 1);
      return value;
    }
  }
  failed_ = true;
  bytes_ = {};
  return 0;
}

std::span<const std::byte> BlockReader::take(std::size_t count) noexcept {
  if (count > bytes_.size()) {
    failed_ = true;
    bytes_ = {};
    return {};
  }
  const std::span<const std::byte> taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return taken;
}

struct StreamDecoder::Inflater {
  z_stream stream{};
  bool usable = false;
  Inflater() { usable = inflateInit2(&stream, -15) == Z_OK; }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

StreamDecoder::StreamDecoder() : inflater_(std::make_unique<Inflater>()) {}
StreamDecoder::~StreamDecoder() = default;

bool StreamDecoder::inflate(std::span<const std::byte> stored, std::span<std::byte> out) {
  z_stream& stream = inflater_->stream;
  if (!inflater_->usable || inflateReset(&stream) != Z_OK) return false;
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(stored.data()));
  stream.avail_in = static_cast<uInt>(stored.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  return ::inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
}

bool StreamDecoder::decode(BlockReader& in, std::span<std::byte> out) {
  const auto method = static_cast<StreamMethod>(in.u8());
  const std::span<const std::byte> data = in.take(in.varint());
  if (in.failed()) return false;
  switch (method) {
    case StreamMethod::stored:
      if (data.size() != out.size()) return false;
      std::copy(data.begin(), data.end(), out.begin());
      return true;
    case StreamMethod::deflated: return inflate(data, out);
    case StreamMethod::repeated:
      if (data.size() != 1) return false;
      std::fill(out.begin(), out.end(), data[0]);
      return true;
  }
  return false;
}

bool ColumnDecoder::decode(BlockReader& in, std::span<std::int64_t> numbers) {
  const std::size_t count = numbers.size();
  const unsigned width = in.u8();
  const auto base = static_cast<std::uint64_t>(unzigzag(in.varint()));
  const std::uint64_t exceptions = in.varint();
  if (in.failed() || width > 8 || exceptions > count) return false;
  if (exceptions != 0) {
    const std::uint64_t bytes = in.varint();
    if (in.failed() || bytes > exceptions * 2 * kMaxVarintBytes) return false;
    exceptions_.resize(bytes);
    if (!streams_.decode(in, exceptions_)) return false;
  }

  std::fill(numbers.begin(), numbers.end(), static_cast<std::int64_t>(base));
  plane_.resize(count);
  for (unsigned plane = 0; plane < width; ++plane) {
    if (!streams_.decode(in, plane_)) return false;
    for (std::size_t index = 0; index < count; ++index) {
      const std::uint64_t part = std::to_integer<std::uint64_t>(plane_[index]) << (8 * plane);
      numbers[index] = static_cast<std::int64_t>(static_cast<std::uint64_t>(numbers[index]) + part);
    }
  }

  BlockReader list(exceptions == 0 ? std::span<const std::byte>() : std::span<const std::byte>(exceptions_));
  std::uint64_t index = 0;
  for (std::uint64_t exception = 0; exception < exceptions; ++exception) {
    index += list.varint();
    const auto offset = static_cast<std::uint64_t>(unzigzag(list.varint()));
    if (list.failed() || index >= count) return false;
    numbers[index] = static_cast<std::int64_t>(base + offset);
  }
  return list.at_end();
}

}  // namespace xpu::trace
