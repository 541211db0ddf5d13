#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Index spaces of launches.
class KernelGeometryTest : public DeviceTest {
 protected:
  static std::uint64_t item_count(const hal::Geometry& geometry) { return geometry.global[0] * geometry.global[1] * geometry.global[2]; }

  /// Whether a launch of this geometry runs each item exactly once.
  ::testing::AssertionResult covers(const hal::Geometry& geometry) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    const std::uint64_t count = item_count(geometry);
    auto* const counters = allocate_zeros<std::uint32_t>(count);
    launch(*queue, *suite_kernel("conformance_count_items"), geometry, counters).value();
    queue->synchronize_blocking().value();
    for (std::uint64_t index = 0; index < count; ++index) {
      if (counters[index] != 1) return ::testing::AssertionFailure() << "item " << index << " ran " << counters[index] << " times";
    }
    return ::testing::AssertionSuccess();
  }
  std::vector<ItemPlace> places_of(const hal::Geometry& geometry) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    auto* const places = allocate_zeros<ItemPlace>(item_count(geometry));
    launch(*queue, *suite_kernel("conformance_store_place"), geometry, places).value();
    queue->synchronize_blocking().value();
    return {places, places + item_count(geometry)};
  }
  /// Of all groups, which are `group_count`.
  std::vector<GroupFacts> groups_of(const hal::Geometry& geometry, std::size_t group_count) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    auto* const facts = allocate_zeros<GroupFacts>(group_count);
    launch(*queue, *suite_kernel("conformance_describe_group"), geometry, facts).value();
    queue->synchronize_blocking().value();
    return {facts, facts + group_count};
  }
};
XPU_CONFORMANCE_SUITE(KernelGeometryTest);

hal::Geometry with_offset(hal::Geometry geometry, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  geometry.offset[0] = x;
  geometry.offset[1] = y;
  geometry.offset[2] = z;
  return geometry;
}

TEST_P(KernelGeometryTest, EachItemOfALineRunsOnce) {
  XPU_NEEDS(registered_modules);
  for (const std::uint64_t count : {1u, 2u, 3u, 31u, 63u, 64u, 65u, 127u, 1'000u, 4'097u}) EXPECT_TRUE(covers(items({count}))) << count;
}

TEST_P(KernelGeometryTest, EachItemOfAPlaneRunsOnce) {
  XPU_NEEDS(registered_modules);
  for (const auto& geometry : {items({1, 1}), items({1, 50}), items({50, 1}), items({17, 13}), items({128, 64}), items({3, 1'000})}) {
    EXPECT_TRUE(covers(geometry)) << geometry.global[0] << " " << geometry.global[1];
  }
}

TEST_P(KernelGeometryTest, EachItemOfASpaceRunsOnce) {
  XPU_NEEDS(registered_modules);
  for (const auto& geometry : {items({1, 1, 1}), items({2, 3, 5}), items({1, 1, 100}), items({16, 16, 16}), items({7, 11, 13})}) {
    EXPECT_TRUE(covers(geometry)) << geometry.global[0] << " " << geometry.global[1] << " " << geometry.global[2];
  }
}

TEST_P(KernelGeometryTest, AMillionItemsRunOnce) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const sum = allocate_zeros<std::uint64_t>(1);
  launch(*queue, *suite_kernel("conformance_add_all"), items({1'000'000}), sum).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(*sum, 499'999'500'000u);
}

TEST_P(KernelGeometryTest, GroupsOfTheSizeThatWasAskedForCoverEverything) {
  XPU_NEEDS(registered_modules);
  for (const auto& geometry :
       {items({64}, {1}), items({64}, {64}), items({64, 4}, {8, 2}), items({12, 12, 12}, {4, 3, 2}), items({8, 8, 8}, {1, 1, 8})}) {
    EXPECT_TRUE(covers(geometry)) << geometry.local[0] << " " << geometry.local[1] << " " << geometry.local[2];
  }
}

TEST_P(KernelGeometryTest, GroupsThatDoNotDivideTheSpaceCoverItExactly) {
  XPU_NEEDS(registered_modules);
  for (const auto& geometry : {items({65}, {64}), items({7}, {4}), items({3}, {8}), items({10, 7}, {4, 4}), items({5, 6, 7}, {2, 4, 4})}) {
    EXPECT_TRUE(covers(geometry)) << geometry.global[0] << " in groups of " << geometry.local[0];
  }
}

TEST_P(KernelGeometryTest, TheLastGroupsAreSmaller) {
  XPU_NEEDS(registered_modules);
  const std::vector<GroupFacts> groups = groups_of(items({10, 7}, {4, 4}), 6);
  const std::uint64_t expected[6][2] = {{4, 4}, {4, 4}, {2, 4}, {4, 3}, {4, 3}, {2, 3}};
  for (std::size_t index = 0; index < 6; ++index) {
    EXPECT_EQ(groups[index].items[0], expected[index][0]) << index;
    EXPECT_EQ(groups[index].items[1], expected[index][1]) << index;
    EXPECT_EQ(groups[index].items[2], 1u) << index;
  }
}

TEST_P(KernelGeometryTest, AGroupIsToldWhereItIs) {
  XPU_NEEDS(registered_modules);
  const std::vector<GroupFacts> groups = groups_of(with_offset(items({12, 6, 4}, {4, 3, 2}), 100, 200, 300), 12);
  std::size_t index = 0;
  for (std::uint64_t z = 0; z < 2; ++z) {
    for (std::uint64_t y = 0; y < 2; ++y) {
      for (std::uint64_t x = 0; x < 3; ++x, ++index) {
        const GroupFacts& group = groups[index];
        EXPECT_THAT(group.id, ::testing::ElementsAre(x, y, z));
        EXPECT_THAT(group.count, ::testing::ElementsAre(3u, 2u, 2u));
        EXPECT_THAT(group.local, ::testing::ElementsAre(4u, 3u, 2u));
        EXPECT_THAT(group.global, ::testing::ElementsAre(12u, 6u, 4u));
        EXPECT_THAT(group.offset, ::testing::ElementsAre(100u, 200u, 300u));
        EXPECT_THAT(group.first, ::testing::ElementsAre(100 + 4 * x, 200 + 3 * y, 300 + 2 * z));
      }
    }
  }
}

TEST_P(KernelGeometryTest, AnItemIsToldWhereItIs) {
  XPU_NEEDS(registered_modules);
  const std::vector<ItemPlace> places = places_of(items({9, 4, 2}, {3, 2, 1}));
  std::size_t index = 0;
  for (std::uint64_t z = 0; z < 2; ++z) {
    for (std::uint64_t y = 0; y < 4; ++y) {
      for (std::uint64_t x = 0; x < 9; ++x, ++index) {
        EXPECT_THAT(places[index].global, ::testing::ElementsAre(x, y, z));
        EXPECT_THAT(places[index].local, ::testing::ElementsAre(x % 3, y % 2, 0u));
        EXPECT_THAT(places[index].group, ::testing::ElementsAre(x / 3, y / 2, z));
      }
    }
  }
}

TEST_P(KernelGeometryTest, OffsetsAreAddedToGlobalIdsAlone) {
  XPU_NEEDS(registered_modules);
  const std::vector<ItemPlace> places = places_of(with_offset(items({4, 2}, {2, 2}), 1'000, 50, 0));
  for (std::size_t index = 0; index < 8; ++index) {
    EXPECT_THAT(places[index].global, ::testing::ElementsAre(1'000 + index % 4, 50 + index / 4, 0u));
    EXPECT_THAT(places[index].local, ::testing::ElementsAre(index % 2, index / 4, 0u));
    EXPECT_THAT(places[index].group, ::testing::ElementsAre(index % 4 / 2, 0u, 0u));
  }
}

TEST_P(KernelGeometryTest, AnOffsetSpaceOfTheDriversGroupsIsCovered) {
  XPU_NEEDS(registered_modules);
  EXPECT_TRUE(covers(with_offset(items({100}), 12'345, 0, 0)));
  EXPECT_TRUE(covers(with_offset(items({13, 9, 5}), 1, 2, 3)));
}

TEST_P(KernelGeometryTest, GroupsOfTheDriversChoiceAreNoLargerThanTheDeviceTakes) {
  XPU_NEEDS(registered_modules);
  const DeviceProperties& properties = device().properties();
  // A group's own facts, read by its first item alone: as many places as there could be groups.
  const std::vector<GroupFacts> groups = groups_of(items({500, 3}), 1'500);
  const GroupFacts& first = groups[0];
  EXPECT_GE(first.local[0] * first.local[1] * first.local[2], 1u);
  EXPECT_LE(first.local[0] * first.local[1] * first.local[2], properties.max_work_group_size);
  for (std::size_t dimension = 0; dimension < 3; ++dimension) {
    EXPECT_LE(first.local[dimension], properties.max_work_item_sizes[dimension]) << dimension;
    EXPECT_EQ(first.count[dimension], (first.global[dimension] + first.local[dimension] - 1) / first.local[dimension]) << dimension;
  }
}

TEST_P(KernelGeometryTest, ALargestGroupRuns) {
  XPU_NEEDS(registered_modules);
  const std::uint64_t largest = std::min(device().properties().max_work_group_size, device().properties().max_work_item_sizes[0]);
  const std::vector<GroupFacts> groups = groups_of(items({2 * largest}, {largest}), 2);
  EXPECT_EQ(groups[0].items[0], largest);
  EXPECT_EQ(groups[1].items[0], largest);
}

TEST_P(KernelGeometryTest, AKernelThatRequiresAGroupSizeGetsIt) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const local = allocate_zeros<std::uint64_t>(3);
  launch(*queue, *suite_kernel("conformance_required_local"), items({4, 2, 1}), local).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_THAT(std::vector(local, local + 3), ::testing::ElementsAre(4u, 2u, 1u));
}

TEST_P(KernelGeometryTest, DimensionsThatALaunchDoesNotHaveAreOne) {
  XPU_NEEDS(registered_modules);
  const std::vector<GroupFacts> groups = groups_of(items({6}, {3}), 2);
  for (const GroupFacts& group : groups) {
    EXPECT_THAT(group.global, ::testing::ElementsAre(6u, 1u, 1u));
    EXPECT_THAT(group.local, ::testing::ElementsAre(3u, 1u, 1u));
    EXPECT_THAT(group.count, ::testing::ElementsAre(2u, 1u, 1u));
  }
}

}  // namespace
}  // namespace xpu::conformance
