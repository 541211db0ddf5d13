#include "memory/size_class.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace xpu::memory {
namespace {

constexpr std::size_t bytes_for(std::size_t requested) { return size_class_bytes(size_class_of(requested)); }

TEST(SizeClass, HasTheKnownSizes) {
  EXPECT_EQ(bytes_for(1), 64u);
  EXPECT_EQ(bytes_for(64), 64u);
  EXPECT_EQ(bytes_for(65), 128u);
  EXPECT_EQ(bytes_for(512), 512u);
  EXPECT_EQ(bytes_for(513), 576u);
  EXPECT_EQ(bytes_for(1024), 1024u);
  EXPECT_EQ(bytes_for(1025), 1152u);
  EXPECT_EQ(bytes_for(65'536), 65'536u);
  EXPECT_EQ(bytes_for(65'537), 73'728u);
  EXPECT_EQ(bytes_for(std::size_t{1} << 47), std::size_t{1} << 47);
}

TEST(SizeClass, FitsEverySizeUpToAMebibyteWithLessThanAnEighthUnused) {
  for (std::size_t requested = 1; requested <= std::size_t{1} << 20; ++requested) {
    const std::size_t bytes = bytes_for(requested);
    ASSERT_GE(bytes, requested);
    const std::size_t unused = bytes - requested;
    ASSERT_TRUE(requested <= 512 ? unused < 64 : unused * 8 < requested) << requested << " in " << bytes;
  }
}

TEST(SizeClass, TakesTheSmallestClassThatFitsOnBothSidesOfEveryClass) {
  for (std::size_t size_class = 0; size_class_bytes(size_class) < std::size_t{1} << 60; ++size_class) {
    const std::size_t bytes = size_class_bytes(size_class);
    ASSERT_EQ(size_class_of(bytes), size_class);
    ASSERT_EQ(size_class_of(bytes + 1), size_class + 1);
    ASSERT_LT(bytes, size_class_bytes(size_class + 1));
    ASSERT_EQ(bytes % 64, 0u);
  }
}

TEST(SizeClass, HasEightClassesInEachDoubling) {
  for (std::size_t power = 512; power < std::size_t{1} << 60; power *= 2) ASSERT_EQ(size_class_of(2 * power) - size_class_of(power), 8u);
}

}  // namespace
}  // namespace xpu::memory
