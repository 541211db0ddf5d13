// Callbacks: what they are told, when and on which thread, and that they may end themselves. The test publishes as a driver's publisher
// would.

#include "xpu/trace/view/callback_subscriber.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "profiler/test_support/test_publisher.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/view/next_record.hpp"

namespace xpu::trace::view {
namespace {

using profiler::test_support::TestPublisher;
using testing::ElementsAre;
using testing::IsEmpty;

/// A subscriber to kernels that keeps what it gets.
class KernelViews {
 public:
  KernelViews() {
    EXPECT_EQ(subscriber.set_callbacks(
                  [this](std::byte** buffer, std::size_t* bytes) {
                    *buffer = reinterpret_cast<std::byte*>(memory_.data());
                    *bytes = memory_.size() * 8;
                  },
                  [this](std::byte* buffer, std::size_t, std::size_t used) {
                    const ViewHeader* record = nullptr;
                    while (next_record(buffer, used, &record) == ResultCode::success) {
                      if (record->kind == ViewKind::kernel) kernels.push_back(*reinterpret_cast<const KernelView*>(record));
                    }
                  }),
              ResultCode::success);
    EXPECT_EQ(subscriber.enable(ViewKind::kernel), ResultCode::success);
  }

 private:
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(1 << 16);  // until the subscriber has ended

 public:
  std::vector<KernelView> kernels;
  ViewSubscriber subscriber;
};

/// "operation_appended enter", ...
std::string text_of(const CallbackEvent& event) {
  return std::string(to_string(event.domain)) + (event.phase == CallbackPhase::api_enter ? " enter" : " exit");
}

class CallbackSubscriberTest : public testing::Test {
 protected:
  CallbackSubscriberTest() : publisher_(TestPublisher::instance()) { EXPECT_EQ(probe::subscriber(), nullptr); }
  ~CallbackSubscriberTest() override { EXPECT_EQ(probe::subscriber(), nullptr); }

  static void wait(const char* api) {
    const probe::Subscriber* listener = probe::subscriber();
    ASSERT_NE(listener, nullptr);
    const probe::Id name = probe::intern(api);
    const std::uint64_t now = now_ns(probe::clock_domain());
    if ((listener->wanted.load() & probe::kCalls) != 0) listener->call_begin(name, now);
    if ((listener->wanted.load() & probe::kWaits) == 0) return;
    probe::Wait waited;
    waited.enter_ns = now;
    waited.exit_ns = now + 10;
    waited.api = name;
    waited.result = -5;
    listener->wait(waited);
  }
  TestPublisher& publisher_;
};

TEST_F(CallbackSubscriberTest, AnOperationIsToldOfWhenItIsAppendedTakenAndOver) {
  KernelViews views;
  std::vector<std::string> events;
  std::vector<std::uint32_t> correlations;
  std::uint64_t operation = 0;
  CallbackSubscriber callbacks(views.subscriber, [&](const CallbackEvent& event) {
    events.push_back(text_of(event));
    ASSERT_NE(event.operation, nullptr);
    EXPECT_EQ(event.operation->domain, event.domain);
    EXPECT_EQ(event.operation->operation_count, 1u);
    EXPECT_STREQ(event.operation->operation_details->name, "test_kernel");
    EXPECT_EQ(event.operation->operation_details->operation_kind, 1u);
    EXPECT_STREQ(event.api_name, "testLaunch");
    correlations.push_back(event.operation->correlation);
    operation = event.operation->operation_details->operation_id;
  });
  for (const CallbackDomain domain :
       {CallbackDomain::operation_appended, CallbackDomain::operation_dispatched, CallbackDomain::operation_completed}) {
    ASSERT_EQ(callbacks.enable(domain, true, true), ResultCode::success);
  }
  publisher_.run();
  EXPECT_THAT(events,
              ElementsAre("operation_appended enter", "operation_appended exit", "operation_dispatched exit", "operation_completed exit"))
      << to_string(CallbackDomain::operation_appended);
  ASSERT_EQ(views.subscriber.flush(), ResultCode::success);
  ASSERT_EQ(views.kernels.size(), 1u);
  EXPECT_EQ(views.kernels[0].kernel_id, operation);
  for (const std::uint32_t correlation : correlations) EXPECT_EQ(correlation, views.kernels[0].correlation);
}

TEST_F(CallbackSubscriberTest, OnlyThePhasesThatWereAskedForAreTold) {
  KernelViews views;
  std::vector<std::string> events;
  CallbackSubscriber callbacks(views.subscriber, [&](const CallbackEvent& event) { events.push_back(text_of(event)); });
  ASSERT_EQ(callbacks.enable(CallbackDomain::operation_appended, true, false), ResultCode::success);
  publisher_.run();
  ASSERT_EQ(callbacks.enable(CallbackDomain::operation_appended, false, true), ResultCode::success);
  publisher_.run();
  ASSERT_EQ(callbacks.disable(CallbackDomain::operation_appended), ResultCode::success);
  publisher_.run();
  EXPECT_THAT(events, ElementsAre("operation_appended enter", "operation_appended exit"));
}

TEST_F(CallbackSubscriberTest, WhatCannotBeEnabledSaysWhy) {
  ViewSubscriber nothing;
  CallbackSubscriber too_early(nothing, [](const CallbackEvent&) {});
  EXPECT_EQ(too_early.enable(CallbackDomain::operation_appended, true, true), ResultCode::no_gpu_views_enabled);
  KernelViews views;
  CallbackSubscriber callbacks(views.subscriber, [](const CallbackEvent&) {});
  EXPECT_EQ(callbacks.enable(CallbackDomain::operation_appended, false, false), ResultCode::bad_argument);
  EXPECT_EQ(callbacks.enable(CallbackDomain::invalid, true, true), ResultCode::bad_argument);
  EXPECT_EQ(callbacks.enable(static_cast<CallbackDomain>(77), true, true), ResultCode::bad_argument);
  EXPECT_EQ(callbacks.enable(CallbackDomain::internal_threads, true, true), ResultCode::not_implemented);
  EXPECT_EQ(callbacks.disable(static_cast<CallbackDomain>(77)), ResultCode::bad_argument);
  EXPECT_EQ(callbacks.disable(CallbackDomain::kernel_created), ResultCode::success);
  callbacks.unsubscribe();
  EXPECT_EQ(callbacks.enable(CallbackDomain::operation_appended, true, true), ResultCode::tracing_not_initialized);
  CallbackSubscriber nobody(views.subscriber, nullptr);
  EXPECT_EQ(nobody.enable(CallbackDomain::operation_appended, true, true), ResultCode::bad_argument);
}

TEST_F(CallbackSubscriberTest, ObjectsAreToldOfWhenTheyComeAndGoAndNotAgain) {
  KernelViews views;
  std::vector<std::string> events;
  CallbackSubscriber callbacks(views.subscriber, [&](const CallbackEvent& event) {
    events.push_back(text_of(event) + (event.kernel == nullptr ? "" : std::string(" ") + event.kernel->name));
    if (event.domain == CallbackDomain::context_created) {
      EXPECT_EQ(event.context_handle, reinterpret_cast<void*>(0xc0));
    }
  });
  for (const CallbackDomain domain : {CallbackDomain::context_created, CallbackDomain::module_loaded, CallbackDomain::module_unloaded,
                                      CallbackDomain::kernel_created, CallbackDomain::kernel_destroyed}) {
    ASSERT_EQ(callbacks.enable(domain, true, true), ResultCode::success);
  }
  const probe::Subscriber& listener = *probe::subscriber();
  const probe::Id context = probe::new_object_id(probe::ObjectKind::context), module = probe::new_object_id(probe::ObjectKind::module),
                  kernel = probe::new_object_id(probe::ObjectKind::kernel);
  const probe::ContextDescription described_context{0xc0, 0, nullptr};
  const probe::ModuleDescription described_module{context, "module", 0, 0};
  probe::KernelDescription described_kernel;
  described_kernel.name = "new_kernel";
  described_kernel.module = module;
  listener.object(probe::ObjectKind::context, context, probe::ObjectEvent::created, &described_context);
  listener.object(probe::ObjectKind::module, module, probe::ObjectEvent::created, &described_module);
  listener.object(probe::ObjectKind::kernel, kernel, probe::ObjectEvent::created, &described_kernel);
  listener.object(probe::ObjectKind::kernel, kernel, probe::ObjectEvent::created, &described_kernel);  // newer facts
  {
    KernelViews second;  // publishers publish everything again to it
    publisher_.run();
  }
  listener.object(probe::ObjectKind::kernel, kernel, probe::ObjectEvent::destroyed, nullptr);
  listener.object(probe::ObjectKind::module, module, probe::ObjectEvent::destroyed, nullptr);
  listener.object(probe::ObjectKind::context, context, probe::ObjectEvent::destroyed, nullptr);
  EXPECT_THAT(events, ElementsAre("context_created exit", "module_loaded exit", "kernel_created exit new_kernel",
                                  "kernel_destroyed exit new_kernel", "module_unloaded exit"));
}

TEST_F(CallbackSubscriberTest, WaitsAndCallsHaveAnEnterAndAnExit) {
  KernelViews views;
  std::vector<std::string> events;
  CallbackSubscriber callbacks(views.subscriber, [&](const CallbackEvent& event) {
    events.push_back(text_of(event) + " " + event.api_name);
    if (event.domain == CallbackDomain::host_synchronization && event.phase == CallbackPhase::api_exit) {
      EXPECT_EQ(event.return_code, -5);
      EXPECT_EQ(event.synchronization, SynchronizationType::host_command_queue);
    }
  });
  wait("clFinish");
  ASSERT_EQ(callbacks.enable(CallbackDomain::host_synchronization, true, true), ResultCode::success);
  ASSERT_EQ(callbacks.enable(CallbackDomain::driver_api, false, true), ResultCode::success);
  wait("clFinish");
  publisher_.call("clFlush");
  publisher_.run();
  EXPECT_THAT(events, ElementsAre("host_synchronization enter clFinish", "host_synchronization exit clFinish", "driver_api exit clFinish",
                                  "driver_api exit clFlush", "driver_api exit testLaunch"));
  EXPECT_NE(probe::subscriber()->wanted.load() & probe::kCalls, 0u);
  callbacks.unsubscribe();
  EXPECT_EQ(probe::subscriber()->wanted.load() & probe::kCalls, 0u) << "publishers are asked for what somebody wants";
}

TEST_F(CallbackSubscriberTest, WhatIsPutAsideAtTheEnterIsThereAtTheExit) {
  KernelViews views;
  std::vector<void*> seen;
  int object = 0;
  CallbackSubscriber callbacks(views.subscriber, [&](const CallbackEvent& event) {
    seen.push_back(*event.instance_data);
    if (event.phase == CallbackPhase::api_enter) *event.instance_data = &object;
  });
  ASSERT_EQ(callbacks.enable(CallbackDomain::operation_appended, true, true), ResultCode::success);
  publisher_.run();
  publisher_.run();
  EXPECT_THAT(seen, ElementsAre(nullptr, &object, nullptr, &object));
}

TEST_F(CallbackSubscriberTest, ExternalIdsThatACallbackPushesReachTheOperation) {
  KernelViews views;
  CallbackSubscriber callbacks(views.subscriber, [&](const CallbackEvent& event) {
    if (event.phase == CallbackPhase::api_enter) {
      ViewSubscriber::push_external_id(ExternalKind::custom_0, 1'234);
    } else {
      std::uint64_t id = 0;
      EXPECT_EQ(ViewSubscriber::pop_external_id(ExternalKind::custom_0, &id), ResultCode::success);
      EXPECT_EQ(id, 1'234u);
    }
  });
  ASSERT_EQ(callbacks.enable(CallbackDomain::operation_appended, true, true), ResultCode::success);
  publisher_.run();
  ASSERT_EQ(views.subscriber.flush(), ResultCode::success);
  ASSERT_EQ(views.kernels.size(), 1u);
  EXPECT_EQ(views.kernels[0].details.external_ids[static_cast<int>(ExternalKind::custom_0) - 1], 1'234u);
}

TEST_F(CallbackSubscriberTest, SeveralAreToldAndOneMayEndItselfWithinItsCallback) {
  KernelViews views;
  int first_calls = 0, second_calls = 0;
  CallbackSubscriber second(views.subscriber, [&](const CallbackEvent&) { ++second_calls; });
  CallbackSubscriber first(views.subscriber, [&](const CallbackEvent&) {
    ++first_calls;
    first.unsubscribe();
  });
  ASSERT_EQ(first.enable(CallbackDomain::operation_appended, true, true), ResultCode::success);
  ASSERT_EQ(second.enable(CallbackDomain::operation_appended, true, true), ResultCode::success);
  publisher_.run();
  publisher_.run();
  EXPECT_EQ(first_calls, 1);
  EXPECT_EQ(second_calls, 4);
}

TEST_F(CallbackSubscriberTest, NobodyIsInACallbackThatWasUnsubscribed) {
  KernelViews views;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int index = 0; index < 3; ++index) {
    threads.emplace_back([&] {
      while (!is_over) publisher_.run();
    });
  }
  for (int round = 0; round < 30; ++round) {
    auto guard = std::make_unique<std::atomic<int>>(0);
    std::atomic<int>* counter = guard.get();
    CallbackSubscriber callbacks(views.subscriber, [counter](const CallbackEvent&) { counter->fetch_add(1); });
    ASSERT_EQ(callbacks.enable(CallbackDomain::operation_appended, true, true), ResultCode::success);
    ASSERT_EQ(callbacks.enable(CallbackDomain::operation_completed, true, true), ResultCode::success);
    while (counter->load() == 0) std::this_thread::yield();
    callbacks.unsubscribe();
    guard.reset();  // a sanitizer sees who comes late
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CallbackSubscriberTest, WhoeverHasNoCallbackPaysNothing) {
  KernelViews views;
  const probe::Subscriber* plain = probe::subscriber();
  {
    CallbackSubscriber callbacks(views.subscriber, [](const CallbackEvent&) {});
    EXPECT_EQ(probe::subscriber(), plain);
    ASSERT_EQ(callbacks.enable(CallbackDomain::operation_completed, true, true), ResultCode::success);
    EXPECT_NE(probe::subscriber(), plain);
    KernelViews second;
    EXPECT_NE(probe::subscriber(), plain);
  }
  EXPECT_EQ(probe::subscriber(), plain);
}

TEST_F(CallbackSubscriberTest, AForkedChildCallsNobody) {
  KernelViews views;
  int calls = 0;
  CallbackSubscriber callbacks(views.subscriber, [&](const CallbackEvent&) { ++calls; });
  ASSERT_EQ(callbacks.enable(CallbackDomain::operation_appended, true, true), ResultCode::success);
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    publisher_.run();
    const bool is_refused = callbacks.enable(CallbackDomain::operation_completed, true, true) == ResultCode::tracing_not_initialized;
    callbacks.unsubscribe();
    _exit(calls == 0 && is_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  publisher_.run();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace xpu::trace::view
