#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "xpu/trace/records.hpp"

/// Which kinds are stored as columns, and what each field is predicted from.
namespace xpu::trace {

/// How a field is predicted. Numbers are written to recordings, per block: the encoder takes the one that leaves the least.
enum class Prediction : std::uint8_t {
  nothing = 0,
  previous = 1,           ///< The same field of the record before.
  reference = 2,          ///< `reference` of the same record.
  previous_of_key = 3,    ///< The same field of the last record with the same `key`.
  end_before_of_key = 4,  ///< `end` of the last record with the same `key`: an in-order queue starts a command when the one before ends.
};
inline constexpr std::uint8_t kPredictions = 5;

/// One field, 4 or 8 bytes (small fields are taken together).
struct FieldColumn {
  std::uint8_t offset = 0;
  std::uint8_t bytes = 0;
  std::uint8_t reference = 0;
  std::uint8_t key = 0;
  /// Not 0: this column is the start of an interval whose end, at this offset, was decoded before it as a length. It is what makes
  /// `end_before_of_key` possible.
  std::uint8_t end = 0;
  bool is_length = false;  ///< The end of such an interval: always minus `reference`.
  std::array<Prediction, 3> candidates{};
  std::uint8_t candidate_count = 0;
};

struct RecordSchema {
  RecordKind kind{};
  std::uint8_t bytes = 0;  ///< Of the record.
  std::span<const FieldColumn> columns;
};

/// Null for kinds that are never stored as columns.
const RecordSchema* find_schema(std::uint16_t kind) noexcept;
/// All of them.
std::span<const RecordSchema> all_schemas() noexcept;

}  // namespace xpu::trace
