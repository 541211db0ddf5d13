#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trace/recording/column_schema.hpp"

/// What the encoder and the decoder of blocks share: access to fields, and what was seen last for a key.
namespace xpu::trace {

// Queue ids count up from 1, so the low bits tell them apart; queues that share a slot merely predict badly.
inline constexpr std::size_t kKeySlots = 64;
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

inline std::size_t key_slot(const std::byte* record, const FieldColumn& column) noexcept {
  return load<std::uint32_t>(record, column.key) % kKeySlots;
}

}  // namespace xpu::trace
