#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Copies: between which memories, of which sizes, at which addresses.
class CopyTest : public DeviceTest {
 protected:
  hal::MemoryKind device_kind() const { return kinds().at(0); }

  /// Host to device, device to device, device to host.
  std::vector<std::byte> round_trip(hal::Queue& queue, std::span<const std::byte> bytes) {
    auto* const sent = allocate<std::byte>(host_visible_kinds().at(0), bytes.size());
    auto* const first = allocate<std::byte>(device_kind(), bytes.size());
    auto* const second = allocate<std::byte>(device_kind(), bytes.size());
    auto* const received = allocate<std::byte>(host_visible_kinds().at(0), bytes.size());
    std::copy(bytes.begin(), bytes.end(), sent);
    queue.copy(first, sent, bytes.size(), {}).value();
    queue.copy(second, first, bytes.size(), {}).value();
    queue.copy(received, second, bytes.size(), {}).value();
    queue.synchronize_blocking().value();
    return {received, received + bytes.size()};
  }
};
XPU_CONFORMANCE_SUITE(CopyTest);

constexpr std::size_t kLargeBytes = (std::size_t{4} << 20) + 5;  // large enough to be spread over threads

TEST_P(CopyTest, EverySmallSizeArrives) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (std::size_t bytes = 1; bytes <= 130; ++bytes) {
    const std::vector<std::byte> expected = pattern_bytes(bytes, static_cast<unsigned>(bytes));
    ASSERT_EQ(round_trip(*queue, expected), expected) << bytes;
  }
}

TEST_P(CopyTest, SizesRoundPagesArrive) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const std::size_t bytes : {4'095u, 4'096u, 4'097u, 65'535u, 65'536u, 65'537u, 1'048'577u}) {
    const std::vector<std::byte> expected = pattern_bytes(bytes, 1);
    EXPECT_TRUE(round_trip(*queue, expected) == expected) << bytes;
  }
}

TEST_P(CopyTest, ALargeCopyArrives) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::vector<std::byte> expected = pattern_bytes(kLargeBytes, 2);
  EXPECT_TRUE(round_trip(*queue, expected) == expected);
}

TEST_P(CopyTest, EveryPairOfAlignmentsWorksAndTouchesNothingElse) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  constexpr std::size_t kBytes = 100;
  constexpr std::size_t kRoom = 160;
  const std::vector<std::byte> source_bytes = pattern_bytes(kRoom, 3);
  const std::vector<std::byte> background = pattern_bytes(kRoom, 4);
  auto* const source = allocate<std::byte>(device_kind(), kRoom);
  write(*queue, source, source_bytes);
  for (std::size_t from = 0; from < 17; from += 3) {
    for (std::size_t to = 0; to < 17; ++to) {
      auto* const destination = allocate<std::byte>(device_kind(), kRoom);
      write(*queue, destination, background);
      queue->copy(destination + to, source + from, kBytes, {}).value();
      std::vector<std::byte> expected = background;
      std::memcpy(expected.data() + to, source_bytes.data() + from, kBytes);
      ASSERT_EQ(read(*queue, destination, kRoom), expected) << from << " " << to;
    }
  }
}

TEST_P(CopyTest, EveryPairOfKindsWorks) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind from : kinds()) {
    for (const hal::MemoryKind to : kinds()) {
      const std::vector<std::byte> expected = pattern_bytes(10'000, 5);
      auto* const source = allocate<std::byte>(from, expected.size());
      auto* const destination = allocate<std::byte>(to, expected.size());
      write(*queue, source, expected);
      queue->copy(destination, source, expected.size(), {}).value();
      EXPECT_EQ(read(*queue, destination, expected.size()), expected) << to_string(from) << " to " << to_string(to);
    }
  }
}

TEST_P(CopyTest, MemoryOfTheProcessIsCopiedToTheDeviceAndBack) {
  XPU_NEEDS(host_memory_access);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4'097}, kLargeBytes}) {
    const std::vector<std::byte> expected = pattern_bytes(bytes, 6);
    std::vector<std::byte> received(bytes);
    auto* const block = allocate<std::byte>(device_kind(), bytes);
    queue->copy(block, expected.data(), bytes, {}).value();
    queue->copy(received.data(), block, bytes, {}).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    EXPECT_TRUE(received == expected) << bytes;
  }
}

TEST_P(CopyTest, ALocalVariableOfTheSubmitterIsReached) {
  XPU_NEEDS(host_memory_access);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::uint64_t sent = 0x0123456789abcdef;
  std::uint64_t received = 0;
  auto* const block = allocate<std::uint64_t>(device_kind(), 1);
  queue->copy(block, &sent, sizeof(sent), {}).value();
  queue->copy(&received, block, sizeof(received), {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(received, sent);
}

TEST_P(CopyTest, AChainOfCopiesCarriesTheFirstBlockToTheLast) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::vector<std::byte> expected = pattern_bytes(5'000, 7);
  auto* block = allocate<std::byte>(device_kind(), expected.size());
  write(*queue, block, expected);
  for (int index = 0; index < 100; ++index) {
    auto* const next = allocate<std::byte>(device_kind(), expected.size());
    queue->copy(next, block, expected.size(), {}).value();
    block = next;
  }
  EXPECT_EQ(read(*queue, block, expected.size()), expected);
}

TEST_P(CopyTest, RangesOfOneBlockThatTouchAreCopied) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::vector<std::byte> expected = pattern_bytes(3'000, 8);
  auto* const block = allocate<std::byte>(device_kind(), 3 * expected.size());
  write(*queue, block + expected.size(), expected);
  queue->copy(block, block + expected.size(), expected.size(), {}).value();
  queue->copy(block + 2 * expected.size(), block + expected.size(), expected.size(), {}).value();
  EXPECT_EQ(read(*queue, block, expected.size()), expected);
  EXPECT_EQ(read(*queue, block + 2 * expected.size(), expected.size()), expected);
}

TEST_P(CopyTest, TheLastByteOfABlockIsCopied) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::vector<std::byte> expected = pattern_bytes(4'096, 9);
  auto* const source = allocate<std::byte>(device_kind(), expected.size());
  auto* const destination = allocate<std::byte>(device_kind(), expected.size());
  write(*queue, source, expected);
  queue->copy(destination + 4'095, source + 4'095, 1, {}).value();
  EXPECT_EQ(read(*queue, destination + 4'095, 1)[0], expected[4'095]);
}

TEST_P(CopyTest, ACopyReadsItsSourceInItsPlaceInTheOrder) {
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const source = allocate_zeros<std::uint32_t>(1);
  auto* const destination = allocate_zeros<std::uint32_t>(1);
  Hold hold(*queue);
  queue->copy(destination, source, sizeof(*source), {}).value();
  *source = 31;  // nothing has begun, so this is early enough
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(*destination, 31u);
}

TEST_P(CopyTest, MemoryOfAnotherDeviceIsReached) {
  XPU_NEEDS(two_devices);
  XPU_NEEDS(peer_access);
  XPU_NEEDS(device_memory);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::vector<std::byte> expected = pattern_bytes(20'000, 10);
  auto* const here = allocate<std::byte>(hal::MemoryKind::device, expected.size());
  auto* const there = static_cast<std::byte*>(allocate_bytes(*device(1).memory(hal::MemoryKind::device), expected.size()));
  auto* const back = allocate<std::byte>(hal::MemoryKind::device, expected.size());
  write(*queue, here, expected);
  queue->copy(there, here, expected.size(), {}).value();
  queue->copy(back, there, expected.size(), {}).value();
  EXPECT_EQ(read(*queue, back, expected.size()), expected);
}

TEST_P(CopyTest, TwoDevicesPassABlockOn) {
  XPU_NEEDS(two_devices);
  XPU_NEEDS(peer_access);
  XPU_NEEDS(device_memory);
  const std::unique_ptr<hal::Queue> here = new_queue();
  const std::unique_ptr<hal::Queue> there = device(1).create_queue({}).value();
  const std::unique_ptr<hal::Event> is_sent = new_event();
  const std::vector<std::byte> expected = pattern_bytes(20'000, 11);
  auto* const first = allocate<std::byte>(hal::MemoryKind::device, expected.size());
  auto* const second = static_cast<std::byte*>(allocate_bytes(*device(1).memory(hal::MemoryKind::device), expected.size()));
  auto* const third = static_cast<std::byte*>(allocate_bytes(*device(1).memory(hal::MemoryKind::device), expected.size()));
  write(*here, first, expected);
  here->copy(second, first, expected.size(), {}).value();
  here->record(*is_sent).value();
  there->wait(*is_sent).value();
  there->copy(third, second, expected.size(), {}).value();
  there->synchronize_blocking().value();
  EXPECT_EQ(read(*here, third, expected.size()), expected);
}

}  // namespace
}  // namespace xpu::conformance
