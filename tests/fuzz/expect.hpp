#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "trace/recording/record_validator.hpp"
#include "xpu/trace/recording/recording.hpp"

/// What a fuzz target holds its subject to, in every build.
#define XPU_FUZZ_EXPECT(condition)                                                 \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

namespace xpu::fuzz {

/// A batch as `Recording::for_each_batch` promises it. Returns a sum over all bytes, so that each is really read.
inline std::uint64_t expect_whole_records(std::span<const std::byte> records) {
  XPU_FUZZ_EXPECT(reinterpret_cast<std::uintptr_t>(records.data()) % 8 == 0);
  std::size_t bytes = 0;
  trace::for_each_record(records, [&](const trace::RecordHeader& header) {
    XPU_FUZZ_EXPECT(header.size % 8 == 0);
    XPU_FUZZ_EXPECT(header.size >= trace::minimum_record_bytes(header.kind));
    bytes += header.size;
  });
  XPU_FUZZ_EXPECT(bytes == records.size());
  std::uint64_t sum = 0;
  for (const std::byte byte : records) sum += static_cast<std::uint64_t>(byte);
  return sum;
}

inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) { return std::as_bytes(std::span(data, size)); }

}  // namespace xpu::fuzz
