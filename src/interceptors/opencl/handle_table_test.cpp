#include "interceptors/opencl/handle_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "interceptors/opencl/test_support/immortal.hpp"

namespace xpu::interceptors::opencl {
namespace {

struct Thing {
  int number = 0;
};

const void* handle(std::uintptr_t number) { return reinterpret_cast<const void*>(number * 64); }

TEST(HandleTableTest, FindsNothingBeforeAnythingWasInserted) {
  auto& table = immortal<HandleTable<Thing>>();
  EXPECT_EQ(table.find(handle(1)), nullptr);
  table.erase(handle(1));
  EXPECT_EQ(table.size(), 0u);
}

TEST(HandleTableTest, RefusesTheNullHandle) {
  auto& table = immortal<HandleTable<Thing>>();
  Thing thing;
  Thing* previous = nullptr;
  EXPECT_FALSE(table.insert(nullptr, &thing, &previous));
  EXPECT_EQ(table.find(nullptr), nullptr);
}

TEST(HandleTableTest, HandsBackWhatAHandleMeantBefore) {
  auto& table = immortal<HandleTable<Thing>>();
  Thing first, second;
  Thing* previous = nullptr;
  ASSERT_TRUE(table.insert(handle(1), &first, &previous));
  EXPECT_EQ(previous, nullptr);
  ASSERT_TRUE(table.insert(handle(1), &second, &previous));
  EXPECT_EQ(previous, &first);
  EXPECT_EQ(table.find(handle(1)), &second);
  EXPECT_EQ(table.size(), 1u);
}

TEST(HandleTableTest, AgreesWithAMapThroughManyInsertionsAndErasures) {
  auto& table = immortal<HandleTable<Thing>>();
  std::map<std::uintptr_t, Thing*> expected;
  std::vector<Thing> things(500);
  std::mt19937 random(7);
  for (int step = 0; step < 20'000; ++step) {
    const std::uintptr_t number = 1 + random() % 500;
    if (random() % 3 != 0) {
      Thing* previous = nullptr;
      ASSERT_TRUE(table.insert(handle(number), &things[number - 1], &previous));
      EXPECT_EQ(previous, expected.contains(number) ? expected[number] : nullptr);
      expected[number] = &things[number - 1];
    } else {
      table.erase(handle(number));
      expected.erase(number);
    }
    ASSERT_EQ(table.size(), expected.size());
    const std::uintptr_t asked = 1 + random() % 500;
    ASSERT_EQ(table.find(handle(asked)), expected.contains(asked) ? expected[asked] : nullptr) << "after " << step << " steps";
  }
  std::size_t visited = 0;
  table.for_each([&](Thing&) { ++visited; });
  EXPECT_EQ(visited, expected.size());
}

}  // namespace
}  // namespace xpu::interceptors::opencl
