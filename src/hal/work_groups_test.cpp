#include "hal/work_groups.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace xpu::hal {
namespace {

using Index = std::array<std::uint64_t, 3>;

/// What the kernel below was told, group by group.
struct Visits {
  std::vector<WorkGroup> groups;
};

void note_group(const std::byte* arguments, const WorkGroup* group) {
  Visits* visits = nullptr;
  std::memcpy(&visits, arguments, sizeof visits);
  visits->groups.push_back(*group);
}

std::vector<WorkGroup> run_groups(const WorkGroups& groups, std::uint64_t first, std::uint64_t last) {
  Visits visits;
  Visits* address = &visits;
  std::byte block[sizeof address];
  std::memcpy(block, &address, sizeof address);
  groups.run(note_group, block, first, last, nullptr, 0);
  return visits.groups;
}

Geometry geometry_of(Index global, Index local = {0, 0, 0}, Index offset = {0, 0, 0}) {
  Geometry geometry;
  geometry.dimensions = 3;
  std::copy(global.begin(), global.end(), geometry.global);
  std::copy(local.begin(), local.end(), geometry.local);
  std::copy(offset.begin(), offset.end(), geometry.offset);
  return geometry;
}

/// Every global id of the launch, in the order in which groups and items are visited.
std::vector<Index> items_of(const std::vector<WorkGroup>& groups) {
  std::vector<Index> items;
  for (const WorkGroup& group : groups) {
    for (std::uint64_t z = 0; z < group.items(2); ++z) {
      for (std::uint64_t y = 0; y < group.items(1); ++y) {
        for (std::uint64_t x = 0; x < group.items(0); ++x) items.push_back({group.first(0) + x, group.first(1) + y, group.first(2) + z});
      }
    }
  }
  return items;
}

/// The definition: groups in order of their ids, dimension 0 fastest, and in each the items that the index space still has.
std::vector<Index> expected_items(const Geometry& geometry, const std::uint64_t (&local)[3]) {
  std::vector<Index> items;
  Index start{};
  for (start[2] = 0; start[2] < geometry.global[2]; start[2] += local[2]) {
    for (start[1] = 0; start[1] < geometry.global[1]; start[1] += local[1]) {
      for (start[0] = 0; start[0] < geometry.global[0]; start[0] += local[0]) {
        for (std::uint64_t z = start[2]; z < std::min(start[2] + local[2], geometry.global[2]); ++z) {
          for (std::uint64_t y = start[1]; y < std::min(start[1] + local[1], geometry.global[1]); ++y) {
            for (std::uint64_t x = start[0]; x < std::min(start[0] + local[0], geometry.global[0]); ++x) {
              items.push_back({geometry.offset[0] + x, geometry.offset[1] + y, geometry.offset[2] + z});
            }
          }
        }
      }
    }
  }
  return items;
}

TEST(WorkGroups, VisitEveryItemOnceInOrderForAnyGeometryAndAnyCutOfTheRange) {
  std::mt19937 random(20240601);  // NOLINT: the same numbers in every run
  const auto pick = [&](std::uint64_t low, std::uint64_t high) { return low + random() % (high - low + 1); };
  for (int round = 0; round < 300; ++round) {
    const Index global{pick(1, 40), pick(1, 12), pick(1, 6)};
    const Index local = round % 2 == 0 ? Index{pick(1, 45), pick(1, 14), pick(1, 7)} : Index{0, 0, 0};
    const Geometry geometry = geometry_of(global, local, {pick(0, 9), pick(0, 9), pick(0, 9)});
    const WorkGroups groups(geometry, KernelFacts{}, pick(1, 9));
    const std::uint64_t middle = pick(0, groups.count());
    std::vector<WorkGroup> visited = run_groups(groups, 0, middle);
    const std::vector<WorkGroup> rest = run_groups(groups, middle, groups.count());
    visited.insert(visited.end(), rest.begin(), rest.end());
    ASSERT_EQ(visited.size(), groups.count());
    ASSERT_EQ(items_of(visited), expected_items(geometry, groups.prototype().local)) << "round " << round;
  }
}

TEST(WorkGroups, ALocalSizeThatIsGivenIsKept) {
  const WorkGroups groups(geometry_of({100, 7, 1}, {16, 4, 1}), KernelFacts{}, 1);
  EXPECT_THAT(groups.prototype().local, testing::ElementsAre(16, 4, 1));
  EXPECT_THAT(groups.prototype().count, testing::ElementsAre(7, 2, 1));
  EXPECT_EQ(groups.count(), 14u);
}

TEST(WorkGroups, DimensionsThatWereLeftOutOfTheLocalSizeHaveOneItem) {
  const WorkGroups groups(geometry_of({128, 1, 1}, {64, 0, 0}), KernelFacts{}, 1);
  EXPECT_THAT(groups.prototype().local, testing::ElementsAre(64, 1, 1));
  EXPECT_EQ(groups.count(), 2u);
}

TEST(WorkGroups, TheSizeThatAKernelRequiresBeatsTheNumberThatIsWanted) {
  KernelFacts facts;
  facts.required_local[0] = 32;
  facts.required_local[1] = facts.required_local[2] = 1;
  EXPECT_EQ(WorkGroups(geometry_of({1024, 1, 1}), facts, 2).count(), 32u);
}

TEST(WorkGroups, OneWantedGroupIsOneGroupHoweverManyItemsThereAre) {
  const WorkGroups groups(geometry_of({1'000'000, 1'000, 10}), KernelFacts{}, 1);
  EXPECT_EQ(groups.count(), 1u);
  EXPECT_THAT(groups.prototype().local, testing::ElementsAre(1'000'000, 1'000, 10));
}

TEST(WorkGroups, AFewItemsAreNotWorthTwoGroups) { EXPECT_EQ(WorkGroups(geometry_of({511, 1, 1}), KernelFacts{}, 8).count(), 1u); }

TEST(WorkGroups, ALongRowIsCutIntoMultiplesOf64Items) {
  const WorkGroups groups(geometry_of({100'000, 1, 1}), KernelFacts{}, 4);
  EXPECT_THAT(groups.prototype().local, testing::ElementsAre(25'024, 1, 1));
  EXPECT_EQ(groups.count(), 4u);
}

TEST(WorkGroups, RowsAndPlanesStayWholeWhereThereAreEnough) {
  EXPECT_THAT(WorkGroups(geometry_of({1000, 1000, 1}), KernelFacts{}, 8).prototype().local, testing::ElementsAre(1000, 125, 1));
  EXPECT_THAT(WorkGroups(geometry_of({100, 100, 64}), KernelFacts{}, 8).prototype().local, testing::ElementsAre(100, 100, 8));
}

TEST(WorkGroups, NeverMoreThanWantedAndNeverFarLess) {
  std::mt19937 random(7);  // NOLINT: the same numbers in every run
  for (int round = 0; round < 2000; ++round) {
    const Index global{1 + random() % 5000, 1 + random() % 50, 1 + random() % 20};
    const std::uint64_t wanted = 1 + random() % 64, items = global[0] * global[1] * global[2];
    const std::uint64_t count = WorkGroups(geometry_of(global), KernelFacts{}, wanted).count();
    ASSERT_LE(count, wanted) << global[0] << 'x' << global[1] << 'x' << global[2];
    ASSERT_LE((count - 1) * 256, items);
    const std::uint64_t worth = std::min(wanted, items / 1024);
    ASSERT_GE(count * 4, worth) << global[0] << 'x' << global[1] << 'x' << global[2];
  }
}

TEST(WorkGroups, AnEmptyIndexSpaceHasNoGroup) {
  EXPECT_EQ(WorkGroups(geometry_of({0, 1, 1}), KernelFacts{}, 4).count(), 0u);
  EXPECT_EQ(WorkGroups(geometry_of({16, 0, 1}, {4, 4, 1}), KernelFacts{}, 4).count(), 0u);
}

TEST(WorkGroups, LocalMemoryIsHandedToEveryGroup) {
  struct Seen {
    std::byte* memory;
    std::uint64_t bytes;
    int groups;
  } seen{nullptr, 0, 0};
  Seen* address = &seen;
  std::byte block[sizeof address], memory[64];
  std::memcpy(block, &address, sizeof address);
  const auto kernel = [](const std::byte* arguments, const WorkGroup* group) {
    Seen* target = nullptr;
    std::memcpy(&target, arguments, sizeof target);
    *target = {group->local_memory, group->local_memory_bytes, target->groups + 1};
  };
  WorkGroups(geometry_of({8, 1, 1}, {2, 1, 1}), KernelFacts{}, 1).run(kernel, block, 0, 4, memory, sizeof memory);
  EXPECT_EQ(seen.memory, memory);
  EXPECT_EQ(seen.bytes, sizeof memory);
  EXPECT_EQ(seen.groups, 4);
}

}  // namespace
}  // namespace xpu::hal
