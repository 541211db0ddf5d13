// Buffers, kinds, flushes and clocks of subscribers to views. The test publishes as a driver's publisher would.

#include "xpu/trace/view/view_subscriber.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "profiler/test_support/test_publisher.hpp"
#include "trace/test_support/view_receiver.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/view/next_record.hpp"

namespace xpu::trace::view {
namespace {

using profiler::test_support::TestPublisher;
using test_support::Receiver;
using std::chrono_literals::operator""ms;
using testing::ElementsAre;

class ViewSubscriberTest : public testing::Test {
 protected:
  ViewSubscriberTest() : publisher_(TestPublisher::instance()) { EXPECT_EQ(probe::subscriber(), nullptr); }
  ~ViewSubscriberTest() override { EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still"; }

  static void set_callbacks(ViewSubscriber& subscriber, Receiver& receiver) {
    ASSERT_EQ(subscriber.set_callbacks(receiver.requested(), receiver.completed()), ResultCode::success);
  }
  static void enable(ViewSubscriber& subscriber, std::initializer_list<ViewKind> kinds) {
    for (const ViewKind kind : kinds) ASSERT_EQ(subscriber.enable(kind), ResultCode::success) << to_string(kind);
  }
  TestPublisher& publisher_;
};

// ---- buffers

TEST_F(ViewSubscriberTest, TheFirstBufferIsAskedForWhenCallbacksAreSet) {
  Receiver receiver;
  {
    ViewSubscriber subscriber;
    set_callbacks(subscriber, receiver);
    EXPECT_EQ(receiver.requests(), 1u);
    EXPECT_THAT(receiver.requesters(), ElementsAre(std::this_thread::get_id()));
    EXPECT_EQ(receiver.completions(), 0u);
  }
  EXPECT_THAT(receiver.used(), ElementsAre(0u)) << "the end completes what was never used";
}

TEST_F(ViewSubscriberTest, CallbacksAndBuffersThatAreNoGoodAreRefused) {
  Receiver receiver, tiny(kLargestViewBytes - 8), nothing;
  nothing.give_nothing(true);
  ViewSubscriber subscriber;
  EXPECT_EQ(subscriber.set_callbacks(nullptr, receiver.completed()), ResultCode::bad_argument);
  EXPECT_EQ(subscriber.set_callbacks(receiver.requested(), nullptr), ResultCode::bad_argument);
  EXPECT_EQ(receiver.requests(), 0u);
  EXPECT_EQ(subscriber.set_callbacks(tiny.requested(), tiny.completed()), ResultCode::bad_argument);
  EXPECT_THAT(tiny.used(), ElementsAre(0u));
  EXPECT_EQ(subscriber.set_callbacks(nothing.requested(), nothing.completed()), ResultCode::bad_argument);
  EXPECT_THAT(nothing.used(), ElementsAre(0u));
  EXPECT_EQ(subscriber.enable(ViewKind::kernel), ResultCode::no_callbacks_set);

  set_callbacks(subscriber, receiver);
  EXPECT_EQ(subscriber.set_callbacks(tiny.requested(), tiny.completed()), ResultCode::bad_argument);
  enable(subscriber, {ViewKind::kernel});
  publisher_.run();
  EXPECT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::kernel), 1u) << "those that were set before stay";
}

TEST_F(ViewSubscriberTest, EveryBufferIsCompletedOnceAndByAThreadOfItsOwn) {
  Receiver receiver(4 << 10);  // eleven kernels
  {
    ViewSubscriber subscriber;
    set_callbacks(subscriber, receiver);
    enable(subscriber, {ViewKind::kernel});
    for (int round = 0; round < 100; ++round) publisher_.run();
    ASSERT_EQ(subscriber.flush(), ResultCode::success);
    EXPECT_EQ(receiver.count(ViewKind::kernel), 100u);
    EXPECT_EQ(receiver.completions(), 10u) << "nine full ones and the rest";
    EXPECT_FALSE(receiver.completers().contains(std::this_thread::get_id()));
    EXPECT_EQ(receiver.completers().size(), 1u);
    EXPECT_EQ(subscriber.statistics().buffers_requested, receiver.requests());
    EXPECT_EQ(subscriber.statistics().buffers_completed, 10u);
    EXPECT_EQ(subscriber.statistics().views.views[static_cast<int>(ViewKind::kernel)], 100u);
    publisher_.run();
  }
  EXPECT_EQ(receiver.count(ViewKind::kernel), 101u) << "the end delivers";
  EXPECT_EQ(receiver.requests(), receiver.completions());
}

TEST_F(ViewSubscriberTest, AThreadHasABufferOfItsOwn) {
  Receiver receiver;
  ViewSubscriber subscriber;
  set_callbacks(subscriber, receiver);
  enable(subscriber, {ViewKind::kernel});
  std::vector<std::thread> threads;
  for (int index = 0; index < 100; ++index) {
    threads.emplace_back([&] {
      for (int launch = 0; launch < 20; ++launch) publisher_.run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::kernel), 2'000u);
  EXPECT_EQ(receiver.threads_in_one_buffer(), 1u);
}

TEST_F(ViewSubscriberTest, NewCallbacksGetWhatComesAndTheOldOnesTheirBuffersBack) {
  Receiver first, second;
  ViewSubscriber subscriber;
  set_callbacks(subscriber, first);
  enable(subscriber, {ViewKind::kernel});
  publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  publisher_.run();
  set_callbacks(subscriber, second);
  EXPECT_EQ(first.requests(), first.completions());
  publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(first.count(ViewKind::kernel) + second.count(ViewKind::kernel), 3u);
  EXPECT_GE(second.count(ViewKind::kernel), 1u);
}

TEST_F(ViewSubscriberTest, ViewsWithoutABufferAreCounted) {
  Receiver receiver;
  ViewSubscriber subscriber;
  set_callbacks(subscriber, receiver);
  enable(subscriber, {ViewKind::kernel});
  publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  receiver.give_nothing(true);
  for (int round = 0; round < 5; ++round) publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::kernel), 1u);
  EXPECT_EQ(subscriber.statistics().dropped_views, 5u);
  receiver.give_nothing(false);
  publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::kernel), 2u) << "it is asked again";
}

TEST_F(ViewSubscriberTest, CallbacksMayUseTheInterface) {
  Receiver receiver;
  ViewSubscriber subscriber;
  std::atomic<int> calls = 0;
  ASSERT_EQ(subscriber.set_callbacks(receiver.requested(),
                                     [&, completed = receiver.completed()](std::byte* buffer, std::size_t bytes, std::size_t used) {
                                       completed(buffer, bytes, used);
                                       if (++calls > 1) return;
                                       EXPECT_EQ(subscriber.flush(), ResultCode::bad_argument);
                                       EXPECT_EQ(subscriber.set_callbacks(receiver.requested(), receiver.completed()),
                                                 ResultCode::bad_argument);
                                       EXPECT_EQ(subscriber.enable(ViewKind::memory_copy), ResultCode::success);
                                       EXPECT_GT(subscriber.timestamp(), 0u);
                                       subscriber.statistics();
                                     }),
            ResultCode::success);
  enable(subscriber, {ViewKind::kernel});
  publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(calls, 1);
  publisher_.complete(publisher_.copy(4'096));
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::memory_copy), 1u);
}

// ---- kinds

TEST_F(ViewSubscriberTest, KindsThatCannotBeEnabledSaySo) {
  Receiver receiver;
  ViewSubscriber subscriber;
  set_callbacks(subscriber, receiver);
  EXPECT_EQ(subscriber.enable(ViewKind::cpu_kernel), ResultCode::not_implemented);
  EXPECT_EQ(subscriber.enable(ViewKind::reserved), ResultCode::bad_argument);
  EXPECT_EQ(subscriber.enable(static_cast<ViewKind>(99)), ResultCode::bad_argument);
  EXPECT_EQ(subscriber.disable(ViewKind::kernel), ResultCode::success) << "it was not enabled";
  EXPECT_EQ(subscriber.enable_api(ViewKind::driver_api, true, ApiGroup::opencl, 9'999), ResultCode::bad_api_id);
  EXPECT_EQ(subscriber.enable_api(ViewKind::kernel, true, ApiGroup::opencl, 1), ResultCode::bad_argument);
  EXPECT_EQ(subscriber.enable_api_class(ViewKind::driver_api, true, ApiClass::all, ApiGroup::level_zero), ResultCode::not_implemented);
  EXPECT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(probe::subscriber(), nullptr) << "nothing was enabled";
}

TEST_F(ViewSubscriberTest, OnlyWhatBeginsWhileItsKindIsEnabledIsTold) {
  Receiver receiver;
  ViewSubscriber subscriber;
  set_callbacks(subscriber, receiver);
  publisher_.run();
  enable(subscriber, {ViewKind::kernel});
  publisher_.run();
  const auto long_one = publisher_.launch();
  ASSERT_EQ(subscriber.disable(ViewKind::kernel), ResultCode::success);
  publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::kernel), 1u);
  enable(subscriber, {ViewKind::memory_copy});
  publisher_.run();
  publisher_.complete(publisher_.copy(64));
  publisher_.complete(long_one, 5'000'000);
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::memory_copy), 1u);
  const auto kernels = receiver.all<KernelView>(ViewKind::kernel);
  ASSERT_EQ(kernels.size(), 2u) << "what had begun is told of to its end";
  EXPECT_EQ(kernels[1].end_ns - kernels[1].start_ns, 5'000'000u);
}

TEST_F(ViewSubscriberTest, NobodyListensWhileNothingIsEnabledAndNothingUnderWay) {
  Receiver receiver;
  ViewSubscriber subscriber({.interval = 1ms});
  set_callbacks(subscriber, receiver);
  for (int round = 0; round < 3; ++round) {
    enable(subscriber, {ViewKind::kernel});
    publisher_.run();
    EXPECT_NE(probe::subscriber(), nullptr);
    ASSERT_EQ(subscriber.disable(ViewKind::kernel), ResultCode::success);
    for (int tries = 0; tries < 5'000 && probe::subscriber() != nullptr; ++tries) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(probe::subscriber(), nullptr) << round;
  }
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::kernel), 3u);
}

TEST_F(ViewSubscriberTest, FiltersByFunctionAreThoseOfTheSelection) {
  Receiver receiver;
  ViewSubscriber subscriber;
  set_callbacks(subscriber, receiver);
  enable(subscriber, {ViewKind::driver_api});
  publisher_.call("clFinish");
  publisher_.call("clFlush");
  ASSERT_EQ(subscriber.enable_api(ViewKind::driver_api, true, ApiGroup::opencl, identify_api("clFlush").id), ResultCode::success);
  publisher_.call("clFinish");
  publisher_.call("clFlush");
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  std::vector<std::string> names;
  for (const ApiView& call : receiver.all<ApiView>(ViewKind::driver_api)) names.emplace_back(call.name);
  EXPECT_THAT(names, ElementsAre("clFinish", "clFlush", "clFlush"));
  EXPECT_EQ(receiver.all<ApiView>(ViewKind::driver_api).at(0).process, static_cast<std::uint32_t>(getpid()));
}

TEST_F(ViewSubscriberTest, ExternalIdsPrecedeTheCallAndReachTheKernelWithoutIt) {
  std::uint64_t popped = 0;
  EXPECT_EQ(ViewSubscriber::pop_external_id(ExternalKind::custom_1, &popped), ResultCode::external_id_queue_empty);
  EXPECT_EQ(ViewSubscriber::push_external_id(ExternalKind::invalid, 1), ResultCode::bad_argument);
  EXPECT_EQ(ViewSubscriber::pop_external_id(static_cast<ExternalKind>(6), nullptr), ResultCode::bad_argument);
  for (const bool with_calls : {true, false}) {
    Receiver receiver;
    ViewSubscriber subscriber;
    set_callbacks(subscriber, receiver);
    enable(subscriber, {ViewKind::external_correlation, ViewKind::kernel});
    if (with_calls) enable(subscriber, {ViewKind::runtime_api});
    ASSERT_EQ(ViewSubscriber::push_external_id(ExternalKind::custom_1, 70), ResultCode::success);
    ASSERT_EQ(ViewSubscriber::push_external_id(ExternalKind::custom_1, 77), ResultCode::success);
    publisher_.run();
    ASSERT_EQ(ViewSubscriber::pop_external_id(ExternalKind::custom_1, &popped), ResultCode::success);
    EXPECT_EQ(popped, 77u);
    ASSERT_EQ(ViewSubscriber::pop_external_id(ExternalKind::custom_1, nullptr), ResultCode::success);
    ASSERT_EQ(subscriber.flush(), ResultCode::success);
    if (with_calls) {
      EXPECT_THAT(receiver.kinds(), ElementsAre(ViewKind::external_correlation, ViewKind::runtime_api, ViewKind::kernel));
    } else {
      EXPECT_THAT(receiver.kinds(), ElementsAre(ViewKind::external_correlation, ViewKind::kernel));
    }
    const auto kernel = receiver.all<KernelView>(ViewKind::kernel).at(0);
    EXPECT_EQ(kernel.details.external_ids[static_cast<int>(ExternalKind::custom_1) - 1], 77u);
    const auto external = receiver.all<ExternalCorrelationView>(ViewKind::external_correlation).at(0);
    EXPECT_EQ(external.external_id, 77u);
    EXPECT_EQ(external.correlation, kernel.correlation);
  }
}

// ---- several at a time

TEST_F(ViewSubscriberTest, EachHasKindsBuffersAndAClockOfItsOwn) {
  Receiver of_kernels, of_copies;
  ViewSubscriber kernels, copies;
  set_callbacks(kernels, of_kernels);
  set_callbacks(copies, of_copies);
  enable(kernels, {ViewKind::kernel});
  publisher_.run();
  enable(copies, {ViewKind::memory_copy});
  ASSERT_EQ(copies.set_timestamp_callback([] { return now_ns(ClockDomain::monotonic) + 1'000'000'000'000; }), ResultCode::success);
  publisher_.run();
  publisher_.complete(publisher_.copy(512));
  ASSERT_EQ(kernels.flush(), ResultCode::success);
  EXPECT_EQ(of_kernels.count(ViewKind::kernel), 2u);
  EXPECT_EQ(of_copies.completions(), 0u) << "the flush of one is none of the other";
  ASSERT_EQ(kernels.disable(ViewKind::kernel), ResultCode::success);
  publisher_.run();
  ASSERT_EQ(copies.flush(), ResultCode::success);
  EXPECT_THAT(of_copies.kinds(), ElementsAre(ViewKind::memory_copy));
  EXPECT_THAT(of_kernels.kinds(), ElementsAre(ViewKind::kernel, ViewKind::kernel));
  const auto copy = of_copies.all<CopyView>(ViewKind::memory_copy).at(0);
  const auto kernel = of_kernels.all<KernelView>(ViewKind::kernel).at(1);
  EXPECT_NEAR(static_cast<double>(copy.start_ns - kernel.start_ns), 1e12, 1e9);
}

TEST_F(ViewSubscriberTest, ThreadsTurnKindsOnAndOffWhileOthersSubmit) {
  Receiver receiver;
  ViewSubscriber subscriber({.interval = 1ms});
  set_callbacks(subscriber, receiver);
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&] {
      while (!is_over) publisher_.run();
    });
  }
  threads.emplace_back([&] {
    while (!is_over) subscriber.flush();
  });
  for (int round = 0; round < 200; ++round) {
    EXPECT_EQ(subscriber.enable(ViewKind::kernel), ResultCode::success);
    EXPECT_EQ(subscriber.enable(ViewKind::runtime_api), ResultCode::success);
    EXPECT_EQ(subscriber.disable(ViewKind::kernel), ResultCode::success);
    EXPECT_EQ(subscriber.disable(ViewKind::runtime_api), ResultCode::success);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  receiver.forget();
  enable(subscriber, {ViewKind::kernel});
  publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_GE(receiver.count(ViewKind::kernel), 1u);
  const ViewSubscriberStatistics statistics = subscriber.statistics();
  EXPECT_EQ(statistics.views.duplicates, 0u);
  EXPECT_EQ(statistics.dropped_views, 0u);
}

// ---- clocks

TEST_F(ViewSubscriberTest, TimesAreThoseOfTheClockThatWasSetWhenTheyBegan) {
  Receiver receiver;
  ViewSubscriber subscriber;
  set_callbacks(subscriber, receiver);
  EXPECT_EQ(subscriber.set_timestamp_callback(nullptr), ResultCode::bad_argument);
  EXPECT_EQ(subscriber.set_timestamp_callback([] { return std::uint64_t{0}; }), ResultCode::bad_timestamp);
  std::uint64_t backwards = 1'000;
  EXPECT_EQ(subscriber.set_timestamp_callback([&] { return --backwards; }), ResultCode::bad_timestamp);
  EXPECT_NEAR(static_cast<double>(subscriber.timestamp()), static_cast<double>(now_ns(ClockDomain::monotonic)), 1e9);

  constexpr std::uint64_t kOffset = 7'000'000'000'000'000;
  enable(subscriber, {ViewKind::kernel, ViewKind::runtime_api});
  publisher_.run();
  const auto across = publisher_.launch();
  ASSERT_EQ(subscriber.set_timestamp_callback([] { return now_ns(ClockDomain::monotonic) + kOffset; }), ResultCode::success);
  publisher_.complete(across, 3'000);
  publisher_.run();
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_GT(subscriber.timestamp(), kOffset);
  const auto kernels = receiver.all<KernelView>(ViewKind::kernel);
  const auto calls = receiver.all<ApiView>(ViewKind::runtime_api);
  ASSERT_EQ(kernels.size(), 3u);
  ASSERT_EQ(calls.size(), 3u);
  for (std::size_t index = 0; index < 3; ++index) {
    const bool is_users = index == 2;
    EXPECT_EQ((kernels[index].details.flags & kViewUserClock) != 0, is_users) << index;
    EXPECT_EQ((calls[index].flags & kViewUserClock) != 0, is_users) << index;
    EXPECT_EQ(kernels[index].start_ns > kOffset, is_users);
    EXPECT_EQ(kernels[index].append_ns > kOffset, is_users);
    EXPECT_EQ(kernels[index].details.call_enter_ns > kOffset, is_users);
    EXPECT_EQ(calls[index].start_ns > kOffset, is_users);
    EXPECT_EQ(calls[index].start_ns, kernels[index].details.call_enter_ns);
  }
  EXPECT_EQ(kernels[1].end_ns - kernels[1].start_ns, 3'000u);
}

// ---- the end

TEST_F(ViewSubscriberTest, WhatHasNotEndedIsToldOfAtTheEnd) {
  Receiver receiver;
  {
    ViewSubscriber subscriber;
    set_callbacks(subscriber, receiver);
    enable(subscriber, {ViewKind::kernel});
    publisher_.launch();
    ASSERT_EQ(subscriber.flush(), ResultCode::success);
    EXPECT_EQ(receiver.count(ViewKind::kernel), 0u);
  }
  const auto kernels = receiver.all<KernelView>(ViewKind::kernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_NE(kernels[0].details.flags & kViewUnlinked, 0u);
  EXPECT_EQ(kernels[0].start_ns, 0u);
}

TEST_F(ViewSubscriberTest, AnExitCompletesTheBuffersOfWhoNeverEnds) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    static auto* subscriber = new ViewSubscriber;  // not a leak
    static std::atomic<int> count = 0;
    subscriber->set_callbacks(
        [](std::byte** buffer, std::size_t* bytes) {
          *bytes = 64 << 10;
          *buffer = reinterpret_cast<std::byte*>(new std::uint64_t[*bytes / 8]);
        },
        [write_end = pipe_ends[1]](std::byte* buffer, std::size_t, std::size_t used) {
          const ViewHeader* record = nullptr;
          while (next_record(buffer, used, &record) == ResultCode::success) ++count;
          delete[] reinterpret_cast<std::uint64_t*>(buffer);
          const char text = static_cast<char>('0' + count);
          if (write(write_end, &text, 1) != 1) _exit(1);
        });
    subscriber->enable(ViewKind::kernel);
    for (int round = 0; round < 3; ++round) publisher_.run();
    exit(0);
  }
  close(pipe_ends[1]);
  std::string told(16, '\0');
  told.resize(static_cast<std::size_t>(read(pipe_ends[0], told.data(), told.size())));
  close(pipe_ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(told, "3");
}

TEST_F(ViewSubscriberTest, AForkedChildIsRefusedAndEnds) {
  Receiver receiver;
  ViewSubscriber subscriber;
  set_callbacks(subscriber, receiver);
  enable(subscriber, {ViewKind::kernel});
  publisher_.run();
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    bool is_good = subscriber.enable(ViewKind::memory_copy) == ResultCode::tracing_not_initialized;
    is_good = is_good && subscriber.flush() == ResultCode::tracing_not_initialized;
    is_good = is_good && subscriber.set_timestamp_callback([] { return std::uint64_t{1}; }) == ResultCode::tracing_not_initialized;
    subscriber.~ViewSubscriber();
#ifndef __SANITIZE_THREAD__  // which allows no new threads there
    ViewSubscriber own;
    Receiver of_child;
    is_good = is_good && own.set_callbacks(of_child.requested(), of_child.completed()) == ResultCode::success;
    is_good = is_good && own.enable(ViewKind::kernel) == ResultCode::success;
    publisher_.run();
    is_good = is_good && own.flush() == ResultCode::success && of_child.count(ViewKind::kernel) == 1;
#endif
    _exit(is_good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(subscriber.flush(), ResultCode::success);
  EXPECT_EQ(receiver.count(ViewKind::kernel), 1u);
}

}  // namespace
}  // namespace xpu::trace::view
