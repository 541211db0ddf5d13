#include "profiler/link/paged_index.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace xpu::profiler {
namespace {

using Index = PagedIndex<int, 8>;

TEST(PagedIndexTest, FindsOnlyWhatWasMade) {
  Index index;
  EXPECT_EQ(index.find(3), nullptr);
  index[3] = 30;
  ASSERT_NE(index.find(3), nullptr);
  EXPECT_EQ(*index.find(3), 30);
  EXPECT_EQ(index.find(8), nullptr) << "the next page";
  EXPECT_EQ(index.pages(), 1u);
}

TEST(PagedIndexTest, NeverMovesAValue) {
  Index index;
  int* first = &index[0];
  for (std::uint64_t number = 1; number < 10'000; ++number) index[number] = 1;
  EXPECT_EQ(index.find(0), first);
}

TEST(PagedIndexTest, PaysOnePageForANumberOutOfNowhere) {
  Index index;
  index[(std::uint64_t{1} << 40) - 1] = 5;
  index[std::uint64_t{1} << 63] = 6;
  EXPECT_EQ(index.pages(), 2u);
  EXPECT_EQ(*index.find((std::uint64_t{1} << 40) - 1), 5);
  EXPECT_EQ(*index.find(std::uint64_t{1} << 63), 6);
}

TEST(PagedIndexTest, HoldsWhatAMapHoldsWhereverTheNumbersLie) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    Index index;
    std::map<std::uint64_t, int> expected;
    for (int i = 1; i <= 300; ++i) {
      // Dense, scattered and far: all three parts of the index, and pages that change from one to another.
      const std::uint64_t range = random() % 3 == 0 ? 100 : random() % 2 == 0 ? 20'000 : std::uint64_t{1} << 50;
      const std::uint64_t number = random() % range;
      index[number] = i;
      expected[number] = i;
    }
    std::map<std::uint64_t, int> seen;
    std::uint64_t last = 0;
    index.for_each([&](std::uint64_t number, int value) {
      EXPECT_TRUE(seen.empty() || number > last) << "seed " << seed;
      last = number;
      if (value != 0) seen[number] = value;
    });
    EXPECT_EQ(seen, expected) << "seed " << seed;
    for (const auto& [number, value] : expected) {
      ASSERT_NE(index.find(number), nullptr) << "seed " << seed;
      EXPECT_EQ(*index.find(number), value) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace xpu::profiler
