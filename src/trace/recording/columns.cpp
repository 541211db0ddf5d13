#include "trace/recording/columns.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "trace/recording/column_codec.hpp"
#include "trace/recording/column_schema.hpp"

namespace xpu::trace {
namespace {

// Fewer records than this cost more in column headers than as they are.
constexpr std::size_t kFewRecords = 8;

// Queue ids count up from 1, so the low bits tell them apart; queues that share a slot merely predict badly.
constexpr std::size_t kKeySlots = 64;
using KeyTable = std::array<std::uint64_t, kKeySlots>;

template <typename Field>
Field load(const std::byte* record, std::size_t offset) noexcept {
  Field field;
  std::memcpy(&field, record + offset, sizeof field);
  return field;
}
template <typename Field>
void store(std::byte* record, std::size_t offset, Field field) noexcept {
  std::memcpy(record + offset, &field, sizeof field);
}

std::size_t key_slot(const std::byte* record, const FieldColumn& column) noexcept {
  return load<std::uint32_t>(record, column.key) % kKeySlots;
}

// The shortest signed difference, in the field's own width.
template <typename Field>
std::int64_t difference(Field value, Field predicted) noexcept {
  return static_cast<std::int64_t>(static_cast<std::make_signed_t<Field>>(static_cast<Field>(value - predicted)));
}

template <typename Field>
void residuals_of(const std::byte* records, std::size_t stride, std::size_t first, std::span<std::int64_t> out, const FieldColumn& column,
                  Prediction prediction) {
  const std::byte* record = records + first * stride;
  switch (prediction) {
    case Prediction::nothing:
      for (std::int64_t& number : out) {
        number = difference<Field>(load<Field>(record, column.offset), 0);
        record += stride;
      }
      return;
    case Prediction::previous: {
      Field previous = first == 0 ? Field{0} : load<Field>(record - stride, column.offset);
      for (std::int64_t& number : out) {
        const auto value = load<Field>(record, column.offset);
        number = difference(value, previous);
        previous = value;
        record += stride;
      }
      return;
    }
    case Prediction::reference:
      for (std::int64_t& number : out) {
        number = difference(load<Field>(record, column.offset), load<Field>(record, column.reference));
        record += stride;
      }
      return;
    case Prediction::previous_of_key:
    case Prediction::end_before_of_key: {
      const std::size_t source = prediction == Prediction::previous_of_key ? column.offset : column.end;
      KeyTable last{};
      for (std::int64_t& number : out) {
        std::uint64_t& slot = last[key_slot(record, column)];
        number = difference(load<Field>(record, column.offset), static_cast<Field>(slot));
        slot = load<Field>(record, source);
        record += stride;
      }
      return;
    }
  }
}

void residuals(const std::byte* records, std::size_t stride, std::size_t first, std::span<std::int64_t> out, const FieldColumn& column,
               Prediction prediction) {
  if (column.bytes == 8) {
    residuals_of<std::uint64_t>(records, stride, first, out, column, prediction);
  } else {
    residuals_of<std::uint32_t>(records, stride, first, out, column, prediction);
  }
}

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

std::size_t column_record_bytes(std::uint16_t kind) noexcept {
  const RecordSchema* schema = find_schema(kind);
  return schema == nullptr ? 0 : schema->bytes;
}

struct BlockEncoder::Impl {
  ColumnEncoder columns;
  std::vector<std::int64_t> numbers;

  // Four runs spread over the block: predictions from the record before need neighbours.
  Prediction choose(const FieldColumn& column, const std::byte* records, std::size_t stride, std::size_t count) {
    constexpr std::size_t kRuns = 4;
    constexpr std::size_t kRun = ColumnEncoder::kSample / kRuns;
    Prediction best = column.candidates[0];
    std::uint64_t best_cost = UINT64_MAX;
    for (std::size_t candidate = 0; candidate < column.candidate_count && best_cost != 0; ++candidate) {
      std::array<std::int64_t, ColumnEncoder::kSample> sample;
      std::size_t filled = 0;
      if (count <= ColumnEncoder::kSample) {
        filled = count;
        residuals(records, stride, 0, std::span(sample).first(count), column, column.candidates[candidate]);
      } else {
        for (std::size_t run = 0; run < kRuns; ++run, filled += kRun) {
          residuals(records, stride, run * (count - kRun) / (kRuns - 1), std::span(sample).subspan(filled, kRun), column,
                    column.candidates[candidate]);
        }
      }
      const std::uint64_t cost = ColumnEncoder::estimate(std::span(sample).first(filled));
      if (cost < best_cost) {
        best_cost = cost;
        best = column.candidates[candidate];
      }
    }
    return best;
  }

  void encode_columns(const RecordSchema& schema, std::span<const std::byte> records, std::vector<std::byte>& out) {
    const std::size_t count = records.size() / schema.bytes;
    numbers.resize(count);
    for (const FieldColumn& column : schema.columns) {
      const Prediction prediction =
          column.candidate_count == 1 ? column.candidates[0] : choose(column, records.data(), schema.bytes, count);
      residuals(records.data(), schema.bytes, 0, numbers, column, prediction);
      out.push_back(static_cast<std::byte>(prediction));
      columns.encode(numbers, out);
    }
  }
};

BlockEncoder::BlockEncoder() : impl_(std::make_unique<Impl>()) {}
BlockEncoder::~BlockEncoder() = default;
BlockEncoder::BlockEncoder(BlockEncoder&&) noexcept = default;
BlockEncoder& BlockEncoder::operator=(BlockEncoder&&) noexcept = default;

BlockFacts BlockEncoder::encode(std::uint16_t kind, std::span<const std::byte> records, std::vector<std::byte>& out) {
  BlockFacts facts;
  facts.kind = kind;
  facts.raw_bytes = static_cast<std::uint32_t>(records.size());
  const RecordSchema* schema = find_schema(kind);
  bool uniform = schema != nullptr;
  for (std::size_t offset = 0; offset < records.size(); ++facts.records) {
    const auto size = load<std::uint16_t>(records.data() + offset, offsetof(RecordHeader, size));
    uniform = uniform && size == schema->bytes;
    offset += size;
  }
  if (uniform && facts.records >= kFewRecords) {
    facts.encoding = BlockEncoding::columns;
    impl_->encode_columns(*schema, records, out);
    return facts;
  }
  if (impl_->columns.streams().deflate(records, out)) {
    facts.encoding = BlockEncoding::raw_deflated;
    return facts;
  }
  facts.encoding = BlockEncoding::raw;
  out.insert(out.end(), records.begin(), records.end());
  return facts;
}

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
