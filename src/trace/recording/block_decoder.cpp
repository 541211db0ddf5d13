#include "trace/recording/columns.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "trace/recording/column_codec.hpp"
#include "trace/recording/column_fields.hpp"
#include "trace/recording/column_schema.hpp"

namespace xpu::trace {
namespace {

// Undoes residuals_of. The start of an interval also completes the interval's end, which holds its length until then.
template <typename Field>
void restore_of(std::byte* records, std::size_t stride, std::span<const std::int64_t> numbers, const FieldColumn& column,
                Prediction prediction) {
  std::byte* record = records;
  const auto complete_end = [&](Field start) {
    const Field end = static_cast<Field>(load<Field>(record, column.end) + start);
    store(record, column.end, end);
    return end;
  };
  switch (prediction) {
    case Prediction::nothing:
      for (const std::int64_t number : numbers) {
        const auto value = static_cast<Field>(number);
        store(record, column.offset, value);
        if (column.end != 0) complete_end(value);
        record += stride;
      }
      return;
    case Prediction::previous: {
      Field previous = 0;
      for (const std::int64_t number : numbers) {
        previous = static_cast<Field>(previous + static_cast<Field>(number));
        store(record, column.offset, previous);
        if (column.end != 0) complete_end(previous);
        record += stride;
      }
      return;
    }
    case Prediction::reference:
      for (const std::int64_t number : numbers) {
        // A length waits for its start.
        const Field reference = column.is_length ? Field{0} : load<Field>(record, column.reference);
        const auto value = static_cast<Field>(reference + static_cast<Field>(number));
        store(record, column.offset, value);
        if (column.end != 0) complete_end(value);
        record += stride;
      }
      return;
    case Prediction::previous_of_key:
    case Prediction::end_before_of_key: {
      KeyTable last{};
      for (const std::int64_t number : numbers) {
        std::uint64_t& slot = last[key_slot(record, column)];
        const auto value = static_cast<Field>(static_cast<Field>(slot) + static_cast<Field>(number));
        store(record, column.offset, value);
        const Field end = column.end != 0 ? complete_end(value) : Field{0};
        slot = prediction == Prediction::previous_of_key ? value : end;
        record += stride;
      }
      return;
    }
  }
}

bool is_candidate(const FieldColumn& column, Prediction prediction) noexcept {
  const auto end = column.candidates.begin() + column.candidate_count;
  return std::find(column.candidates.begin(), end, prediction) != end;
}

}  // namespace

struct BlockDecoder::Impl {
  ColumnDecoder columns;
  std::vector<std::int64_t> numbers;

  bool decode_columns(const RecordSchema& schema, std::span<const std::byte> stored, std::span<std::byte> out) {
    const std::size_t count = out.size() / schema.bytes;
    numbers.resize(count);
    BlockReader in(stored);
    for (const FieldColumn& column : schema.columns) {
      const auto prediction = static_cast<Prediction>(in.u8());
      if (!is_candidate(column, prediction) || !columns.decode(in, numbers)) return false;
      if (column.bytes == 8) {
        restore_of<std::uint64_t>(out.data(), schema.bytes, numbers, column, prediction);
      } else {
        restore_of<std::uint32_t>(out.data(), schema.bytes, numbers, column, prediction);
      }
    }
    const std::array<std::uint16_t, 2> header{static_cast<std::uint16_t>(schema.kind), schema.bytes};
    for (std::size_t offset = 0; offset < out.size(); offset += schema.bytes)
      std::memcpy(out.data() + offset, header.data(), sizeof header);
    return in.at_end();
  }

  static bool holds_records(const BlockFacts& facts, std::span<const std::byte> records) noexcept {
    std::uint32_t count = 0;
    for (std::size_t offset = 0; offset < records.size(); ++count) {
      if (records.size() - offset < sizeof(RecordHeader)) return false;
      const auto header = load<RecordHeader>(records.data() + offset, 0);
      if (header.kind != facts.kind || header.size < sizeof(RecordHeader) || header.size % 8 != 0 || header.size > records.size() - offset)
        return false;
      offset += header.size;
    }
    return count == facts.records;
  }

  bool decode(const BlockFacts& facts, std::span<const std::byte> stored, std::vector<std::byte>& out) {
    if (facts.records > kMaxBlockRecords || facts.raw_bytes > kMaxBlockBytes) return false;
    switch (facts.encoding) {
      case BlockEncoding::raw:
        if (stored.size() != facts.raw_bytes) return false;
        out.assign(stored.begin(), stored.end());
        return holds_records(facts, out);
      case BlockEncoding::raw_deflated:
        out.resize(facts.raw_bytes);
        return columns.streams().inflate(stored, out) && holds_records(facts, out);
      case BlockEncoding::columns: {
        const RecordSchema* schema = find_schema(facts.kind);
        if (schema == nullptr || facts.raw_bytes != std::uint64_t{facts.records} * schema->bytes) return false;
        out.resize(facts.raw_bytes);
        return decode_columns(*schema, stored, out);
      }
    }
    return false;
  }
};

BlockDecoder::BlockDecoder() : impl_(std::make_unique<Impl>()) {}
BlockDecoder::~BlockDecoder() = default;
BlockDecoder::BlockDecoder(BlockDecoder&&) noexcept = default;
BlockDecoder& BlockDecoder::operator=(BlockDecoder&&) noexcept = default;

Result<> BlockDecoder::decode(const BlockFacts& facts, std::span<const std::byte> stored, std::vector<std::byte>& out) {
  if (impl_->decode(facts, stored, out)) return {};
  out.clear();
  return Error{ErrorCode::invalid_argument, "a block of the recording is damaged"};
}

}  // namespace xpu::trace
