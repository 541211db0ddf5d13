#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// S1: the pools of streams, their ids, and the current stream.

namespace xpu::acceptance {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StrEq;

constexpr int kPoolSize = Stream::kStreamsPerPool;
constexpr StreamId kDefaultId = 499;

OWN_PROCESS_TEST(S1_StreamPoolTest, TheFirstStreamsHaveTheIds3And5And1) {
  EXPECT_EQ(Stream::from_pool().value().id(), 3);
  EXPECT_EQ(Stream::from_pool(-1).value().id(), 5);
  EXPECT_EQ(Stream::from_pool(1).value().id(), 1);
  EXPECT_EQ(Stream::from_pool(0).value().id(), 19);
  EXPECT_EQ(Stream::from_pool(-1).value().id(), 21);
  EXPECT_EQ(Stream::from_pool(1).value().id(), 17);
  EXPECT_EQ(Stream::from_pool().value().id(), 35);
}

OWN_PROCESS_TEST(S1_StreamPoolTest, EachDeviceHasPoolsOfItsOwn) {
  const Stream here = Stream::from_pool(0, 0).value(), there = Stream::from_pool(0, 1).value();
  EXPECT_EQ(here.id(), 3);
  EXPECT_EQ(there.id(), 3);
  EXPECT_NE(here, there);
  EXPECT_NE(here.native_handle(), there.native_handle());
  EXPECT_EQ(here.device(), 0);
  EXPECT_EQ(there.device(), 1);
}

OWN_PROCESS_TEST(S1_StreamPoolTest, TheInitialCurrentStreamIs499) {
  for (int device = 0; device < kDevices; ++device) {
    const Stream current = Stream::current(device).value();
    EXPECT_EQ(current.id(), kDefaultId);
    EXPECT_EQ(current.priority(), 0);
    EXPECT_EQ(current.device(), device);
  }
}

OWN_PROCESS_TEST(S1_StreamPoolTest, The33rdRequestGetsTheStreamOfTheFirst) {
  std::set<StreamId> ids;
  std::set<void*> handles;
  for (const int priority : {0, -1, 1}) {
    std::vector<Stream> first_round;
    for (int request = 0; request < kPoolSize; ++request) {
      first_round.push_back(Stream::from_pool(priority).value());
      EXPECT_EQ(first_round.back().priority(), priority);
      ids.insert(first_round.back().id());
      handles.insert(first_round.back().native_handle());
    }
    for (const Stream& stream : first_round) EXPECT_EQ(Stream::from_pool(priority).value(), stream);
  }
  EXPECT_EQ(ids.size(), 3u * kPoolSize);
  EXPECT_EQ(handles.size(), 3u * kPoolSize);
}

OWN_PROCESS_TEST(S1_StreamPoolTest, TheDefaultStreamComesFromThePoolInItsTurnOnly) {
  const Stream initial = Stream::current().value();
  for (int request = 1; request < kPoolSize; ++request) EXPECT_NE(Stream::from_pool().value(), initial) << request;
  EXPECT_EQ(Stream::from_pool().value(), initial);
}

OWN_PROCESS_TEST(S1_StreamPoolTest, APriorityOutsideTheRangeIsClamped) {
  EXPECT_EQ(Stream::priority_range().least, 1);
  EXPECT_EQ(Stream::priority_range().greatest, -1);
  EXPECT_EQ(Stream::from_pool(-7).value().id(), 5);
  EXPECT_EQ(Stream::from_pool(-2).value().priority(), -1);
  EXPECT_EQ(Stream::from_pool(7).value().id(), 1);
  EXPECT_EQ(Stream::from_pool(2).value().priority(), 1);
}

OWN_PROCESS_TEST(S1_StreamPoolTest, RequestsOfManyThreadsGoRoundTheWholePool) {
  constexpr int kThreads = 8;
  std::mutex mutex;
  std::map<StreamId, int> requests;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int request = 0; request < kPoolSize; ++request) {
        const StreamId id = Stream::from_pool().value().id();
        const std::lock_guard lock(mutex);
        ++requests[id];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(requests.size(), static_cast<std::size_t>(kPoolSize));
  for (const auto& [id, count] : requests) EXPECT_EQ(count, kThreads) << id;
}

OWN_PROCESS_TEST(S1_StreamPoolTest, QueuesAreCreatedOnDemandAndOnce) {
  std::vector<std::uintptr_t> created;
  gpu_trace::add_callback(gpu_trace::Point::stream_creation, [&](std::uintptr_t queue, std::uintptr_t) { created.push_back(queue); });
  const auto handle_of = [](const Stream& stream) { return reinterpret_cast<std::uintptr_t>(stream.native_handle()); };

  EXPECT_THAT(initialize(), Succeeds());
  const Buffer buffer = zeros(1);
  EXPECT_THAT(created, ElementsAre());
  const Stream current = Stream::current().value();
  EXPECT_THAT(created, ElementsAre(handle_of(current)));
  EXPECT_THAT(current.fill(values_of(buffer), 1, 1), Succeeds());
  EXPECT_THAT(current.synchronize(), Succeeds());
  EXPECT_EQ(Stream::current().value(), Stream::default_stream().value());
  EXPECT_EQ(created.size(), 1u);

  const Stream low = Stream::from_pool(1).value();
  EXPECT_THAT(created, ElementsAre(handle_of(current), handle_of(low)));
  for (int request = 1; request <= 2 * kPoolSize; ++request) Stream::from_pool(1).value();
  EXPECT_EQ(created.size(), 1u + kPoolSize);
  EXPECT_EQ(Stream::from_id(1, 0).value(), low);
  EXPECT_EQ(created.size(), 1u + kPoolSize);
}

OWN_PROCESS_TEST(S1_StreamPoolTest, ThreadsThatAskForOneStreamAtOnceCreateItOnce) {
  std::atomic<int> created{0};
  gpu_trace::add_callback(gpu_trace::Point::stream_creation, [&](std::uintptr_t, std::uintptr_t) { ++created; });
  std::vector<std::thread> threads;
  std::atomic<bool> may_start{false};
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      may_start.wait(false);
      EXPECT_EQ(Stream::current().value().id(), kDefaultId);
    });
  }
  may_start = true;
  may_start.notify_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, 1);
}

TEST(S1_StreamPoolTest, TheCurrentStreamIsOfTheThread) {
  const Stream chosen = Stream::from_pool().value();
  const StreamGuard guard = StreamGuard::make(chosen).value();
  EXPECT_EQ(Stream::current().value(), chosen);
  std::thread other([&] {
    EXPECT_EQ(Stream::current().value().id(), kDefaultId);
    const Stream of_other = Stream::from_pool(-1).value();
    EXPECT_THAT(of_other.make_current(), Succeeds());
    EXPECT_EQ(Stream::current().value(), of_other);
  });
  other.join();
  EXPECT_EQ(Stream::current().value(), chosen);
}

TEST(S1_StreamPoolTest, EveryStreamIsFoundByItsId) {
  for (int device = 0; device < kDevices; ++device) {
    for (const int priority : {0, -1, 1}) {
      for (int request = 0; request < kPoolSize; ++request) {
        const Stream stream = Stream::from_pool(priority, device).value();
        EXPECT_THAT(Stream::from_id(stream.id(), device), Gives(stream));
        EXPECT_EQ(stream.id() >> 4, stream.id() / 16);
        EXPECT_EQ(stream.id() >> 1 & 7, 1 - priority);
        EXPECT_EQ(stream.id() & 1, 1);
        EXPECT_FALSE(stream.is_external());
      }
    }
  }
}

TEST(S1_StreamPoolTest, AnIdThatIsNoneIsRefusedWithTheReason) {
  EXPECT_THAT(Stream::from_id(-1, 0), FailsWith(ErrorCode::invalid_argument, StrEq("invalid StreamId: -1")));
  EXPECT_THAT(Stream::from_id(32 << 4 | 3, 0), FailsWith(ErrorCode::invalid_argument, StrEq("invalid StreamId: 515")));
  for (const StreamId type : {3, 6, 7}) {
    EXPECT_THAT(Stream::from_id(type << 1 | 1, 0),
                FailsWith(ErrorCode::invalid_argument, AllOf(HasSubstr("Unrecognized stream "),
                                                             HasSubstr("(I didn't recognize the stream type, " + std::to_string(type) +
                                                                       "). Did you manufacture the StreamId yourself?  Don't do that;"))));
  }
  std::int64_t no_queue = 0;
  EXPECT_THAT(Stream::from_id(reinterpret_cast<StreamId>(&no_queue), 0),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("Unrecognized stream ")));
}

}  // namespace
}  // namespace xpu::acceptance
