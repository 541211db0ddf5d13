#include "memory/host_block_index.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>

namespace xpu::memory {
namespace {

/// Addresses are never looked behind.
const std::byte* address_of(std::uint64_t number, std::uint64_t step) {
  return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>((number + 1) * step));
}
HostBlock* block_of(std::uint64_t number) { return reinterpret_cast<HostBlock*>(static_cast<std::uintptr_t>(64 * (number + 1))); }

class HostBlockIndexTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(HostBlockIndexTest, FindsWhatIsThereAndNothingElse) {
  constexpr std::uint64_t kAddresses = 3'000;
  HostBlockIndex index;
  std::map<std::uint64_t, HostBlock*> known;
  std::mt19937_64 random(1);  // NOLINT: the same numbers in every run
  const auto check_all = [&] {
    for (std::uint64_t number = 0; number < kAddresses; ++number) {
      const auto entry = known.find(number);
      EXPECT_EQ(index.find(address_of(number, GetParam())), entry == known.end() ? nullptr : entry->second) << number;
    }
  };
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t number = random() % kAddresses;
    if (known.erase(number) != 0) {
      index.erase(address_of(number, GetParam()));
    } else {
      known[number] = block_of(random());
      index.insert(address_of(number, GetParam()), known[number]);
    }
    if (step % 1'000 == 0) check_all();
  }
  check_all();
  index.clear();
  known.clear();
  check_all();
}

// Blocks of slabs, slabs, and large blocks: addresses that have their lowest bits in common.
INSTANTIATE_TEST_SUITE_P(Steps, HostBlockIndexTest, ::testing::Values(64, std::uint64_t{2} << 20, std::uint64_t{1} << 30));

}  // namespace
}  // namespace xpu::memory
