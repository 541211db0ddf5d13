#include "trace/recording/column_codec.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace xpu::trace {
namespace {

// What an exception costs, roughly: a gap and a number of a few bytes.
constexpr std::uint64_t kExceptionBytes = 5;

// Chance repetitions of six bytes are rare above about 2 bits of entropy, so many of them mean that the data has a period (a program's loop
// over its kernels) that the string matcher finds.
constexpr std::size_t kProbeBytes = 2048;
constexpr std::size_t kGramBytes = 6;

std::uint64_t gram_at(const std::byte* bytes) noexcept {
  std::uint64_t gram = 0;
  std::memcpy(&gram, bytes, kGramBytes);
  return gram;
}

bool looks_periodic(std::span<const std::byte> bytes) noexcept {
  const std::size_t count = std::min(bytes.size(), kProbeBytes);
  if (count < 2 * kGramBytes) return true;
  std::array<std::uint16_t, 4096> last{};  // position + 1
  std::size_t hits = 0;
  for (std::size_t position = 0; position + kGramBytes <= count; ++position) {
    const std::uint64_t gram = gram_at(bytes.data() + position);
    std::uint16_t& slot = last[(gram * 0x9e3779b97f4a7c15u) >> 52];
    if (slot != 0 && gram_at(bytes.data() + slot - 1) == gram) ++hits;
    slot = static_cast<std::uint16_t>(position + 1);
  }
  return hits * 4 > count;
}

double entropy_bits(std::span<const std::byte> bytes) noexcept {
  // Four tables: equal neighbours would otherwise wait for each other's store.
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  std::size_t position = 0;
  for (; position + 4 <= bytes.size(); position += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) ++tables[lane][std::to_integer<std::size_t>(bytes[position + lane])];
  }
  for (; position < bytes.size(); ++position) ++tables[0][std::to_integer<std::size_t>(bytes[position])];
  const double total = static_cast<double>(bytes.size());
  double bits = 0;
  for (std::size_t value = 0; value < 256; ++value) {
    const std::uint32_t count = tables[0][value] + tables[1][value] + tables[2][value] + tables[3][value];
    if (count != 0) bits += count * std::log2(total / count);
  }
  return bits / total;
}

}  // namespace

void put_varint(std::vector<std::byte>& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::byte>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::byte>(value));
}

struct StreamEncoder::Deflaters {
  z_stream matching{}, huffman{};
  bool usable = false;

  Deflaters() {
    usable = deflateInit2(&matching, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK &&
             deflateInit2(&huffman, 1, Z_DEFLATED, -15, 8, Z_HUFFMAN_ONLY) == Z_OK;
  }
  ~Deflaters() {
    deflateEnd(&matching);
    deflateEnd(&huffman);
  }
  Deflaters(const Deflaters&) = delete;
  Deflaters& operator=(const Deflaters&) = delete;

  // The compressed bytes, valid until the next call; empty when they would not be fewer than the input.
  std::span<const std::byte> run(z_stream& stream, std::span<const std::byte> bytes) {
    if (!usable || bytes.size() < 2 || bytes.size() > kMaxInput || deflateReset(&stream) != Z_OK) return {};
    if (room < bytes.size() - 1) {
      room = bytes.size() - 1;
      result = std::make_unique_for_overwrite<std::byte[]>(room);
    }
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(result.get());
    stream.avail_out = static_cast<uInt>(bytes.size() - 1);
    if (::deflate(&stream, Z_FINISH) != Z_STREAM_END) return {};
    return {result.get(), stream.total_out};
  }
  std::unique_ptr<std::byte[]> result;  // not a vector: nothing needs the zeros
  std::size_t room = 0;
  static constexpr std::size_t kMaxInput = std::size_t{1} << 30;
};

StreamEncoder::StreamEncoder() : deflaters_(std::make_unique<Deflaters>()) {}
StreamEncoder::~StreamEncoder() = default;

bool StreamEncoder::deflate(std::span<const std::byte> bytes, std::vector<std::byte>& out) {
  const std::span<const std::byte> deflated = deflaters_->run(deflaters_->matching, bytes);
  out.insert(out.end(), deflated.begin(), deflated.end());
  return !deflated.empty();
}

void StreamEncoder::encode(std::span<const std::byte> bytes, std::vector<std::byte>& out) {
  const auto finish = [&](StreamMethod method, std::span<const std::byte> data) {
    out.push_back(static_cast<std::byte>(method));
    put_varint(out, data.size());
    out.insert(out.end(), data.begin(), data.end());
  };
  if (bytes.empty()) return finish(StreamMethod::stored, {});
  if (std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0) return finish(StreamMethod::repeated, bytes.first(1));

  const double bits = entropy_bits(bytes);
  const bool match = bits < 2.0 || looks_periodic(bytes);
  if (!match && bits > 7.6) return finish(StreamMethod::stored, bytes);

  const std::span<const std::byte> deflated = deflaters_->run(match ? deflaters_->matching : deflaters_->huffman, bytes);
  if (deflated.empty()) return finish(StreamMethod::stored, bytes);
  finish(StreamMethod::deflated, deflated);
}

ColumnEncoder::Frame ColumnEncoder::choose_frame(std::span<std::int64_t> sample) {
  if (std::equal(sample.begin() + 1, sample.end(), sample.begin())) return {sample[0], 0, 0};
  std::sort(sample.begin(), sample.end());
  Frame best;
  best.cost = 8 * sample.size();
  for (const unsigned width : {0u, 1u, 2u, 3u, 4u}) {
    const std::uint64_t reach = (std::uint64_t{1} << (8 * width)) - 1;
    std::size_t first = 0, inside = 0, start = 0;
    for (std::size_t last = 0; last < sample.size(); ++last) {
      while (static_cast<std::uint64_t>(sample[last]) - static_cast<std::uint64_t>(sample[first]) > reach) ++first;
      if (last - first + 1 > inside) {
        inside = last - first + 1;
        start = first;
      }
    }
    const std::uint64_t cost = width * sample.size() + (sample.size() - inside) * kExceptionBytes;
    if (cost < best.cost) {
      best.cost = cost;
      best.width = width;
      // The sample misses some: share the unused reach between both ends.
      const std::uint64_t used = static_cast<std::uint64_t>(sample[start + inside - 1]) - static_cast<std::uint64_t>(sample[start]);
      best.base = static_cast<std::int64_t>(static_cast<std::uint64_t>(sample[start]) - (reach - used) / 2);
    }
  }
  return best;
}

std::uint64_t ColumnEncoder::estimate(std::span<std::int64_t> sample) {
  return sample.empty() ? 0 : choose_frame(sample).cost * 256 / sample.size();
}

void ColumnEncoder::encode(std::span<const std::int64_t> numbers, std::vector<std::byte>& out) {
  Frame frame;
  std::uint64_t different = 0;
  for (const std::int64_t number : numbers) different |= static_cast<std::uint64_t>(number ^ numbers[0]);
  if (numbers.empty() || different == 0) {
    frame.base = numbers.empty() ? 0 : numbers[0];
    frame.width = 0;
  } else {
    std::array<std::int64_t, kSample> sample;
    const std::size_t count = std::min(numbers.size(), kSample);
    for (std::size_t index = 0; index < count; ++index) sample[index] = numbers[index * numbers.size() / count];
    frame = choose_frame(std::span(sample).first(count));
  }
  encode_planes(numbers, frame, out);
}

template <unsigned kWidth>
void ColumnEncoder::fill_planes(std::span<const std::int64_t> numbers, std::uint64_t base) {
  const std::size_t count = numbers.size();
  std::byte* const planes = planes_.get();
  std::size_t previous = 0;
  for (std::size_t index = 0; index < count; ++index) {
    std::uint64_t offset = static_cast<std::uint64_t>(numbers[index]) - base;
    if constexpr (kWidth < 8) {
      if ((offset >> (8 * kWidth)) != 0) {
        put_varint(exceptions_, index - previous);
        put_varint(exceptions_, zigzag(static_cast<std::int64_t>(offset)));
        previous = index;
        ++exception_count_;
        offset = 0;
      }
    }
    for (unsigned plane = 0; plane < kWidth; ++plane) planes[plane * count + index] = static_cast<std::byte>(offset >> (8 * plane));
  }
}

void ColumnEncoder::encode_planes(std::span<const std::int64_t> numbers, const Frame& frame, std::vector<std::byte>& out) {
  const std::size_t count = numbers.size();
  if (planes_room_ < count * frame.width) {
    planes_room_ = count * frame.width;
    planes_ = std::make_unique_for_overwrite<std::byte[]>(planes_room_);
  }
  exceptions_.clear();
  exception_count_ = 0;
  const auto base = static_cast<std::uint64_t>(frame.base);
  switch (frame.width) {
    case 0: fill_planes<0>(numbers, base); break;
    case 1: fill_planes<1>(numbers, base); break;
    case 2: fill_planes<2>(numbers, base); break;
    case 3: fill_planes<3>(numbers, base); break;
    case 4: fill_planes<4>(numbers, base); break;
    default: fill_planes<8>(numbers, base); break;
  }

  out.push_back(static_cast<std::byte>(frame.width));
  put_varint(out, zigzag(frame.base));
  put_varint(out, exception_count_);
  if (exception_count_ != 0) {
    put_varint(out, exceptions_.size());
    streams_.encode(exceptions_, out);
  }
  for (unsigned plane = 0; plane < frame.width; ++plane) streams_.encode({planes_.get() + plane * count, count}, out);
}

}  // namespace xpu::trace
