#pragma once

#include <cstdint>
#include <string_view>

#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// The record behind a header, or null when it is too short to be one.
template <typename Record>
const Record* record_cast(const trace::RecordHeader& header) noexcept {
  return header.size < sizeof(Record) ? nullptr : reinterpret_cast<const Record*>(&header);
}

/// The text behind a record with `bytes` of it, as far as it lies inside the record.
template <typename Record>
std::string_view text_behind(const Record& record, std::uint32_t bytes) noexcept {
  const std::size_t room = record.header.size - sizeof(Record);
  return {reinterpret_cast<const char*>(&record + 1), bytes < room ? bytes : room};
}

}  // namespace xpu::profiler
