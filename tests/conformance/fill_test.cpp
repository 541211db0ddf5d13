#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Fills: patterns, sizes, addresses.
class FillTest : public DeviceTest {
 protected:
  hal::MemoryKind device_kind() const { return kinds().at(0); }

  static std::vector<std::byte> repeated(std::span<const std::byte> pattern, std::size_t bytes) {
    std::vector<std::byte> result(bytes);
    for (std::size_t index = 0; index < bytes; ++index) result[index] = pattern[index % pattern.size()];
    return result;
  }
};
XPU_CONFORMANCE_SUITE(FillTest);

constexpr std::size_t kPatternBytes[] = {1, 2, 4, 8, 16};

TEST_P(FillTest, APatternOfEveryLengthIsRepeated) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const std::size_t length : kPatternBytes) {
    const std::vector<std::byte> pattern = pattern_bytes(length, static_cast<unsigned>(length));
    for (const std::size_t count : {1u, 2u, 3u, 7u, 100u, 1'001u}) {
      auto* const block = allocate<std::byte>(device_kind(), length * count);
      queue->fill(block, pattern, length * count, {}).value();
      ASSERT_EQ(read(*queue, block, length * count), repeated(pattern, length * count)) << length << " x " << count;
    }
  }
}

TEST_P(FillTest, APatternWhoseBytesAreAllDifferentKeepsTheirOrder) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::vector<std::byte> pattern(16);
  for (std::size_t index = 0; index < 16; ++index) pattern[index] = static_cast<std::byte>(0xa0 + index);
  auto* const block = allocate<std::byte>(device_kind(), 16 * 1'000);
  queue->fill(block, pattern, 16 * 1'000, {}).value();
  EXPECT_EQ(read(*queue, block, 16 * 1'000), repeated(pattern, 16 * 1'000));
}

TEST_P(FillTest, EveryAlignmentWorksAndTouchesNothingElse) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::vector<std::byte> background = pattern_bytes(200, 1);
  for (const std::size_t length : kPatternBytes) {
    const std::vector<std::byte> pattern = pattern_bytes(length, 2);
    for (std::size_t offset = 0; offset < 17; offset += length == 1 ? 1 : 3) {
      auto* const block = allocate<std::byte>(device_kind(), background.size());
      write(*queue, block, background);
      const std::size_t bytes = 112;
      queue->fill(block + offset, pattern, bytes, {}).value();
      std::vector<std::byte> expected = background;
      const std::vector<std::byte> filled = repeated(pattern, bytes);
      std::copy(filled.begin(), filled.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      ASSERT_EQ(read(*queue, block, expected.size()), expected) << length << " at " << offset;
    }
  }
}

TEST_P(FillTest, ALargeBlockIsFilledToItsEnd) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const std::size_t length : {1u, 16u}) {
    const std::vector<std::byte> pattern = pattern_bytes(length, 3);
    const std::size_t bytes = std::size_t{4} << 20;
    auto* const block = allocate<std::byte>(device_kind(), bytes);
    queue->fill(block, pattern, bytes, {}).value();
    EXPECT_TRUE(read(*queue, block, bytes) == repeated(pattern, bytes)) << length;
  }
}

TEST_P(FillTest, EveryKindOfMemoryIsFilled) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::uint32_t pattern = 0xfeedc0de;
  for (const hal::MemoryKind kind : kinds()) {
    auto* const values = allocate<std::uint32_t>(kind, 3'000);
    queue->fill(values, std::as_bytes(std::span(&pattern, 1)), 3'000 * sizeof(pattern), {}).value();
    EXPECT_THAT(read_as(*queue, values, 3'000), ::testing::Each(pattern)) << to_string(kind);
  }
}

TEST_P(FillTest, MemoryOfTheProcessIsFilled) {
  XPU_NEEDS(host_memory_access);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::vector<std::uint64_t> values(10'000);
  const std::uint64_t pattern = 0x1122334455667788;
  queue->fill(values.data(), std::as_bytes(std::span(&pattern, 1)), values.size() * sizeof(pattern), {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_THAT(values, ::testing::Each(pattern));
}

TEST_P(FillTest, ThePatternIsCopiedBeforeTheCallReturns) {
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const std::size_t length : kPatternBytes) {
    const std::vector<std::byte> expected = pattern_bytes(length, 4);
    std::vector<std::byte> pattern = expected;
    auto* const block = allocate<std::byte>(device_kind(), 64);
    Hold hold(*queue);
    queue->fill(block, pattern, 64, {}).value();
    std::fill(pattern.begin(), pattern.end(), std::byte{0});
    hold.release();
    EXPECT_EQ(read(*queue, block, 64), repeated(expected, 64)) << length;
  }
}

TEST_P(FillTest, ALaterFillOfAPartLeavesTheRest) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::byte ones{1};
  const std::byte twos{2};
  auto* const block = allocate<std::byte>(device_kind(), 3'000);
  queue->fill(block, {&ones, 1}, 3'000, {}).value();
  queue->fill(block + 1'000, {&twos, 1}, 1'000, {}).value();
  const std::vector<std::byte> bytes = read(*queue, block, 3'000);
  EXPECT_EQ(std::count(bytes.begin(), bytes.begin() + 1'000, ones), 1'000);
  EXPECT_EQ(std::count(bytes.begin() + 1'000, bytes.begin() + 2'000, twos), 1'000);
  EXPECT_EQ(std::count(bytes.begin() + 2'000, bytes.end(), ones), 1'000);
}

TEST_P(FillTest, MemoryOfAnotherDeviceIsFilled) {
  XPU_NEEDS(two_devices);
  XPU_NEEDS(peer_access);
  XPU_NEEDS(device_memory);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::byte pattern{0x5a};
  auto* const there = static_cast<std::byte*>(allocate_bytes(*device(1).memory(hal::MemoryKind::device), 1'000));
  queue->fill(there, {&pattern, 1}, 1'000, {}).value();
  EXPECT_THAT(read(*queue, there, 1'000), ::testing::Each(pattern));
}

}  // namespace
}  // namespace xpu::conformance
