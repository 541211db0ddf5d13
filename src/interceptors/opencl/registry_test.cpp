#include "interceptors/opencl/registry.hpp"

#include <gtest/gtest.h>

#include "interceptors/opencl/test_support/immortal.hpp"

namespace xpu::interceptors::opencl {
namespace {

using Handle = struct HandleTag*;
struct Thing : Tracked<Thing, Handle> {};

Handle handle(std::uintptr_t number) { return reinterpret_cast<Handle>(number * 64); }

class RegistryTest : public testing::Test {
 protected:
  Thing* add(Handle of) {
    Thing* thing = registry_.take();
    Thing* previous = registry_.add(of, thing, 1);
    if (previous != nullptr) registry_.give_back(previous);
    return thing;
  }
  Registry<Thing, Handle>& registry_ = immortal<Registry<Thing, Handle>>();
};

TEST_F(RegistryTest, KeepsAnObjectUntilItsLastReferenceGoes) {
  Thing* thing = add(handle(1));
  registry_.retain(handle(1));
  EXPECT_EQ(registry_.release(handle(1)), nullptr);
  EXPECT_EQ(registry_.find(handle(1)), thing);
  EXPECT_EQ(registry_.release(handle(1)), thing);
  EXPECT_EQ(registry_.find(handle(1)), nullptr);
  EXPECT_FALSE(thing->is_for(handle(1)));
}

TEST_F(RegistryTest, IgnoresReferencesOfUnknownHandles) {
  registry_.retain(handle(1));
  EXPECT_EQ(registry_.release(handle(1)), nullptr);
}

TEST_F(RegistryTest, UsesAnObjectAgainAfterItWasGivenBack) {
  Thing* thing = add(handle(1));
  registry_.give_back(registry_.release(handle(1)));
  EXPECT_EQ(add(handle(2)), thing);
  EXPECT_TRUE(thing->is_for(handle(2)));
}

TEST_F(RegistryTest, DoesNotUseAgainWhatMustBeKept) {
  Thing* kept = add(handle(1));
  registry_.give_back(registry_.release(handle(1)));
  Thing* other = registry_.take([&](const Thing& thing) { return &thing != kept; });
  EXPECT_NE(other, kept);
  EXPECT_EQ(registry_.take(), kept);
}

TEST_F(RegistryTest, NoLongerBelievesAHandleThatTheDriverUsedAgain) {
  Thing* old = add(handle(1));
  Thing* young = registry_.take();
  EXPECT_EQ(registry_.add(handle(1), young, 1), old);
  EXPECT_FALSE(old->is_for(handle(1)));
  EXPECT_EQ(registry_.find(handle(1)), young);
}

TEST_F(RegistryTest, KeepsTheObjectOfTheThreadThatAskedFirst) {
  Thing* fast = registry_.take();
  Thing* slow = registry_.take();
  EXPECT_EQ(registry_.add_if_unknown(handle(1), fast, 3), fast);
  EXPECT_EQ(registry_.add_if_unknown(handle(1), slow, 3), fast);
  EXPECT_EQ(registry_.take(), slow) << "the loser's object is free again";
  EXPECT_EQ(registry_.release(handle(1)), nullptr);
  EXPECT_EQ(registry_.release(handle(1)), nullptr);
  EXPECT_EQ(registry_.release(handle(1)), fast);
}

TEST_F(RegistryTest, VisitsLivingObjectsAndRemembersAll) {
  add(handle(1));
  Thing* gone = add(handle(2));
  registry_.give_back(registry_.release(handle(2)));
  int alive = 0, ever = 0;
  registry_.for_each_alive([&](const Thing& thing) { alive += thing.is_for(handle(1)) ? 1 : 100; });
  for (Thing* thing = registry_.first(); thing != nullptr; thing = thing->next) ever += thing == gone ? 10 : 1;
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(ever, 11);
}

}  // namespace
}  // namespace xpu::interceptors::opencl
