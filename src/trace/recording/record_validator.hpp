#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace xpu::trace {

/// Bytes that a record of this kind has at least: the structure of records.hpp, or the bare header for kinds that this version does not
/// know.
std::size_t minimum_record_bytes(std::uint16_t kind) noexcept;

/// How far bytes are whole records one after the other.
struct ValidPrefix {
  std::size_t bytes = 0;
  std::size_t records = 0;
};

/// A record is whole when its size is a multiple of 8, at least that of its kind and inside `bytes`, and when the text or list that it
/// announces is inside the record. Everything behind the first one that is not is left out: without its size nobody knows where the next
/// begins.
ValidPrefix valid_prefix(std::span<const std::byte> bytes) noexcept;

}  // namespace xpu::trace
