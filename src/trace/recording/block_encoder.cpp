#include "trace/recording/columns.hpp"

#include <array>
#include <cstring>

#include "trace/recording/column_codec.hpp"
#include "trace/recording/column_fields.hpp"
#include "trace/recording/column_schema.hpp"

namespace xpu::trace {
namespace {

// Fewer records than this cost more in column headers than as they are.
constexpr std::size_t kFewRecords = 8;

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

}  // namespace xpu::trace
