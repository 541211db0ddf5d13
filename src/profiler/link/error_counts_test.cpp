#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "profiler/link/completion_index.hpp"

namespace xpu::profiler {
namespace {

TEST(ErrorCountsTest, TheMedianAndTheLargestAreThoseOfAListOfAll) {
  std::mt19937 random(3);
  for (std::size_t count = 1; count < 300; ++count) {
    ErrorCounts counts;
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(static_cast<std::uint32_t>(random() % 1'000));
      counts.add(all.back());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(counts.median_ns(), all[(count - 1) / 2]);
    EXPECT_EQ(counts.largest_ns(), all.back());
  }
}

TEST(ErrorCountsTest, LargeErrorsAreRoundedUpByLittle) {
  for (const std::uint32_t error_ns : {65'536u, 1'000'000u, 4'294'967'295u}) {
    ErrorCounts counts;
    counts.add(error_ns);
    counts.add(error_ns);
    counts.add(4'294'967'295u);
    EXPECT_GE(counts.median_ns(), error_ns);
    EXPECT_LE(counts.median_ns() - error_ns, error_ns / 32'768);
    EXPECT_EQ(counts.largest_ns(), 4'294'967'295u);
  }
}

}  // namespace
}  // namespace xpu::profiler
