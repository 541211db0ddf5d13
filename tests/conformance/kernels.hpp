#pragma once

#include <atomic>
#include <cstdint>

/// The kernels of the suite: functions registered with XPU_KERNEL, found by name through the module of registered kernels. Here is what
/// they share with the tests.
namespace xpu::conformance {

/// Where an item is; written by `conformance_store_place`.
struct ItemPlace {
  std::uint64_t global[3], local[3], group[3];
};

/// What a group is told; written by `conformance_describe_group`, one for each group.
struct GroupFacts {
  std::uint64_t id[3], count[3], local[3], global[3], offset[3];
  std::uint64_t first[3], items[3];
  std::uint64_t local_memory_address, local_memory_bytes;
};

/// One value of every type that an argument can have.
struct ThreeBytes {
  std::uint8_t bytes[3];
};
struct EveryType {
  bool boolean;
  std::int8_t i8;
  std::uint8_t u8;
  std::int16_t i16;
  std::uint16_t u16;
  std::int32_t i32;
  std::uint32_t u32;
  std::int64_t i64;
  std::uint64_t u64;
  float f32;
  double f64;
  std::uint64_t pointer;
  ThreeBytes structure;
};

/// Structures of other sizes and alignments.
struct TwelveBytes {
  float x, y, z;
};
struct alignas(16) SixtyFourBytes {
  double values[8];
};
struct ManyBytes {
  std::uint8_t bytes[256];
};

/// Raised by `conformance_without_arguments`.
extern std::atomic<std::uint32_t> g_calls_without_arguments;

}  // namespace xpu::conformance
