#include "base/probe.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace xpu::probe {
namespace {

std::mutex g_mutex;
std::map<Id, std::string> g_strings;
std::vector<Id> g_devices;

void note_string(Id id, std::string_view text) {
  const std::lock_guard lock(g_mutex);
  g_strings[id] = text;
}
void note_object(ObjectKind, Id id, ObjectEvent, const void*) { g_devices.push_back(id); }

// A subscriber that only takes notes.
constinit Subscriber g_table = {.abi = kAbi, .wanted = {kOperations}, .object = note_object, .string = note_string};

// A publisher with two devices.
void republish_two_devices() {
  const Subscriber* listener = subscriber();
  if (listener == nullptr) return;
  for (Id id : {1u, 2u}) {
    DeviceDescription device;
    listener->object(ObjectKind::device, id, ObjectEvent::created, &device);
  }
}

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    g_strings.clear();
    g_devices.clear();
  }
  void TearDown() override { unsubscribe(); }
};

TEST_F(ProbeTest, NobodyListensUntilSomebodySubscribes) {
  EXPECT_EQ(subscriber(), nullptr);
  ASSERT_TRUE(subscribe(&g_table));
  EXPECT_EQ(subscriber(), &g_table);
  unsubscribe();
  EXPECT_EQ(subscriber(), nullptr);
}

TEST_F(ProbeTest, ThereIsOneSubscriber) {
  static constinit Subscriber other = {.abi = kAbi};
  ASSERT_TRUE(subscribe(&g_table));
  EXPECT_FALSE(subscribe(&other));
  EXPECT_FALSE(subscribe(nullptr));
  EXPECT_EQ(subscriber(), &g_table);
}

TEST_F(ProbeTest, ATableOfAnotherAbiIsRefused) {
  static constinit Subscriber newer = {.abi = kAbi + 1};
  EXPECT_FALSE(subscribe(&newer));
  EXPECT_EQ(subscriber(), nullptr);
}

TEST_F(ProbeTest, ATableStaysUsableAfterUnsubscribe) {
  ASSERT_TRUE(subscribe(&g_table));
  const Subscriber* held = subscriber();
  unsubscribe();
  held->string(1000, "late");
  EXPECT_EQ(g_strings[1000], "late");
}

TEST_F(ProbeTest, ANewSubscriberGetsEveryTextAndEveryObject) {
  const Id text = intern("clEnqueueNDRangeKernel");
  ASSERT_TRUE(register_publisher(republish_two_devices));
  ASSERT_TRUE(register_publisher(republish_two_devices));  // the same one counts once
  ASSERT_TRUE(subscribe(&g_table));
  EXPECT_EQ(g_strings[text], "clEnqueueNDRangeKernel");
  EXPECT_EQ(g_devices, (std::vector<Id>{1, 2}));
  republish_all();
  EXPECT_EQ(g_devices, (std::vector<Id>{1, 2, 1, 2}));
}

TEST_F(ProbeTest, EveryHarvesterIsCalledOnceEachTime) {
  static int harvests = 0;
  const auto harvest = [] { ++harvests; };
  ASSERT_TRUE(register_harvester(harvest));
  ASSERT_TRUE(register_harvester(harvest));
  EXPECT_FALSE(register_harvester(nullptr));
  harvest_all();
  EXPECT_EQ(harvests, 1);
  harvest_all();
  EXPECT_EQ(harvests, 2);
}

TEST_F(ProbeTest, WhoMayPublishIsKnownOnceHeSaysSo) {
  EXPECT_EQ(announced_publishers() & kOpenClLayerPublishes, 0u);
  announce_publisher(kOpenClLayerPublishes);
  announce_publisher(kRuntimePublishes);
  EXPECT_EQ(announced_publishers(), kOpenClLayerPublishes | kRuntimePublishes);
}

TEST_F(ProbeTest, ANewTextIsPublishedOnce) {
  ASSERT_TRUE(subscribe(&g_table));
  g_strings.clear();
  const Id id = intern("only once");
  EXPECT_EQ(g_strings, (std::map<Id, std::string>{{id, "only once"}}));
  g_strings.clear();
  EXPECT_EQ(intern("only once"), id);
  EXPECT_TRUE(g_strings.empty());
}

TEST_F(ProbeTest, TextsHoldAnyBytes) {
  const std::string bytes("a\0\xff\n", 4);
  const Id id = intern(bytes);
  EXPECT_NE(id, intern("a"));
  EXPECT_EQ(text_of(id), bytes);
  EXPECT_EQ(text_of(intern("")), "");
  EXPECT_NE(intern(""), 0u);
}

TEST_F(ProbeTest, AnUnknownIdHasNoText) {
  EXPECT_TRUE(text_of(0).empty());
  EXPECT_TRUE(text_of(0xffffffff).empty());
}

TEST_F(ProbeTest, ManyThreadsAgreeOnIdsAndASubscriberMissesNone) {
  constexpr int kThreads = 8, kTexts = 2'000;
  std::vector<std::vector<Id>> ids(kThreads, std::vector<Id>(kTexts));
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      ready.fetch_add(1);
      while (ready.load() < kThreads + 1) {
      }
      for (int i = 0; i < kTexts; ++i) {
        const std::string text = "shared text " + std::to_string(i);
        const Id id = intern(text);
        ids[static_cast<std::size_t>(thread)][static_cast<std::size_t>(i)] = id;
        EXPECT_EQ(text_of(id), text);
      }
    });
  }
  ready.fetch_add(1);
  // In the middle of it, so that some texts come before the subscription and some after.
  ASSERT_TRUE(subscribe(&g_table));
  for (std::thread& thread : threads) thread.join();
  for (int thread = 1; thread < kThreads; ++thread) EXPECT_EQ(ids[static_cast<std::size_t>(thread)], ids[0]);
  EXPECT_EQ(std::set<Id>(ids[0].begin(), ids[0].end()).size(), std::size_t{kTexts});
  for (int i = 0; i < kTexts; ++i) EXPECT_EQ(g_strings[ids[0][static_cast<std::size_t>(i)]], "shared text " + std::to_string(i));
}

TEST_F(ProbeTest, ForEachTextVisitsInTheOrderOfIds) {
  const Id first = intern("visited first"), second = intern("visited second");
  std::vector<Id> visited;
  for_each_text([](Id id, std::string_view, void* user) { static_cast<std::vector<Id>*>(user)->push_back(id); }, &visited);
  for (std::size_t i = 0; i < visited.size(); ++i) EXPECT_EQ(visited[i], i + 1);
  EXPECT_GE(visited.size(), std::max(first, second));
}

TEST_F(ProbeTest, ObjectIdsCountPerKindFromOne) {
  const Id module = new_object_id(ObjectKind::module);
  EXPECT_EQ(module, 1u);
  EXPECT_EQ(new_object_id(ObjectKind::module), 2u);
  EXPECT_EQ(new_object_id(ObjectKind::memory), 1u);
  EXPECT_EQ(new_object_id(static_cast<ObjectKind>(99)), 0u);
}

TEST_F(ProbeTest, AScopeHidesTheCallsBelowIt) {
  EXPECT_FALSE(inside_scope());
  {
    const Scope outer;
    {
      const Scope inner;
      EXPECT_TRUE(inside_scope());
    }
    EXPECT_TRUE(inside_scope());
    {
      const ScopeSuspended user_code;
      EXPECT_FALSE(inside_scope());
      const Scope again;
      EXPECT_TRUE(inside_scope());
    }
    EXPECT_TRUE(inside_scope());
    bool other_thread_inside = true;
    std::thread([&] { other_thread_inside = inside_scope(); }).join();
    EXPECT_FALSE(other_thread_inside);
  }
  EXPECT_FALSE(inside_scope());
}

TEST_F(ProbeTest, AForkedChildCanInternWhileOthersWereInterning) {
  std::atomic<bool> stop{false};
  std::thread interner([&] {
    for (int i = 0; !stop; ++i) intern("busy " + std::to_string(i % 10'000));
  });
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(10);  // a lock that stayed locked must not hang the test
      _exit(text_of(intern("in the child")) == "in the child" ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "round " << round;
  }
  stop = true;
  interner.join();
}

}  // namespace
}  // namespace xpu::probe
