#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "publisher/runtime_support.hpp"

/// Waits, calls that submit nothing, memory and objects of the runtime.
namespace xpu::publisher_tests {
namespace {

using testing::Contains;
using testing::ElementsAre;

class RuntimeCallsTest : public RuntimeTest {
 protected:
  std::vector<std::string> calls() const {
    std::vector<std::string> names;
    for (const SeenCall& call : subscriber_.calls()) names.push_back(call.api);
    return names;
  }
  /// Of the last call of this name.
  std::int32_t result_of(const std::string& api) const {
    const auto all = subscriber_.calls();
    const auto found = std::find_if(all.rbegin(), all.rend(), [&](const SeenCall& call) { return call.api == api; });
    EXPECT_NE(found, all.rend()) << "nobody published " << api;
    return found == all.rend() ? 0 : found->result;
  }
  probe::Id queue_of(const Stream& stream) {
    for (const auto& [id, queue] : subscriber_.objects(probe::ObjectKind::queue)) {
      if (queue.native == reinterpret_cast<std::uintptr_t>(stream.native_handle())) return id;
    }
    ADD_FAILURE() << "the stream was never described";
    return 0;
  }
};

TEST_F(RuntimeCallsTest, AWaitForAStreamNamesItsQueue) {
  const Stream stream = fresh_stream();
  stream.synchronize().value();
  const auto waits = subscriber_.wait_details();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(subscriber_.waits()[0], "xpu::Stream::synchronize");
  EXPECT_EQ(waits[0].type, probe::WaitType::queue);
  EXPECT_EQ(waits[0].queue, queue_of(stream));
  EXPECT_EQ(waits[0].context, object(probe::ObjectKind::queue, waits[0].queue).context);
  EXPECT_EQ(waits[0].handle, reinterpret_cast<std::uintptr_t>(stream.native_handle()));
  EXPECT_EQ(waits[0].result, 0);
}

TEST_F(RuntimeCallsTest, AWaitForADeviceNamesNoQueue) {
  Device::get(0).value().synchronize().value();
  const auto waits = subscriber_.wait_details();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(subscriber_.waits()[0], "xpu::Device::synchronize");
  EXPECT_EQ(waits[0].type, probe::WaitType::device);
  EXPECT_EQ(waits[0].queue, 0u);
}

TEST_F(RuntimeCallsTest, EventsAreWaitedForByTheHostAndByStreams) {
  const Stream stream = fresh_stream(), other = fresh_stream();
  Event event;
  event.record(stream).value();
  event.wait(other).value();
  event.synchronize().value();
  EXPECT_THAT(subscriber_.waits(), ElementsAre("xpu::Event::wait", "xpu::Event::synchronize"));
  const auto waits = subscriber_.wait_details();
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].type, probe::WaitType::stream_on_event);
  EXPECT_EQ(waits[0].queue, queue_of(other));
  EXPECT_EQ(waits[1].type, probe::WaitType::events);
  for (const probe::Wait& wait : waits) {
    EXPECT_EQ(wait.wait_count, 1u);
    EXPECT_EQ(wait.handle, reinterpret_cast<std::uintptr_t>(event.native_handle()));
  }
}

TEST_F(RuntimeCallsTest, AStreamThatWaitsForAnotherIsOneWait) {
  const Stream stream = fresh_stream(), other = fresh_stream();
  stream.wait(other).value();
  EXPECT_THAT(subscriber_.waits(), ElementsAre("xpu::Event::wait"));
  EXPECT_EQ(subscriber_.wait_details()[0].queue, queue_of(stream));
}

TEST_F(RuntimeCallsTest, AnEventThatWasNeverRecordedIsNothingToWaitFor) {
  const Event event;
  event.synchronize().value();
  event.wait(fresh_stream()).value();
  EXPECT_TRUE(subscriber_.waits().empty());
}

TEST_F(RuntimeCallsTest, CallsThatSubmitNothingAreNamedBeforeAndAfter) {
  const Stream stream = fresh_stream();
  tiny_kernel();
  Event event;
  event.record(stream).value();
  EXPECT_TRUE(event.query());
  EXPECT_TRUE(stream.query());
  {
    const Buffer buffer = Buffer::allocate(64).value();
  }
  const std::vector<std::string> expected = {"xpu::Stream::from_pool", "xpu::Module::from",     "xpu::Event::record",  "xpu::Event::query",
                                             "xpu::Stream::query",     "xpu::Buffer::allocate", "xpu::Buffer::~Buffer"};
  EXPECT_EQ(calls(), expected);
  EXPECT_EQ(subscriber_.calls_begun(), expected);
  for (const SeenCall& call : subscriber_.calls()) EXPECT_EQ(call.result, 0) << call.api;
}

TEST_F(RuntimeCallsTest, WhatHangsInADriverHasANameAlready) {
  const Stream stream = fresh_stream();
  stream.launch(tiny_kernel(), items(1), &number_).value();
  stream.run({}, [] {}).value();
  stream.run_blocking({}, [] {}).value();
  stream.synchronize().value();
  for (const char* api : {"xpu::Stream::launch", "xpu::Stream::run", "xpu::Stream::run_blocking", "xpu::Stream::synchronize"}) {
    EXPECT_THAT(subscriber_.calls_begun(), Contains(api).Times(1));
  }
  finished();
}

TEST_F(RuntimeCallsTest, ACallThatFailsHasAResult) {
  const std::size_t too_much = Device::get(0).value().properties().total_memory_bytes + 1;
  EXPECT_FALSE(Buffer::allocate(too_much));
  EXPECT_NE(result_of("xpu::Buffer::allocate"), 0);
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::source_cpp;
  source.name = "broken";
  const std::string text = "this is no C++";
  source.code = std::as_bytes(std::span(text));
  EXPECT_FALSE(Module::from(source, 0));
  EXPECT_NE(result_of("xpu::Module::from"), 0);
  EXPECT_TRUE(subscriber_.memory_events().empty());
}

TEST_F(RuntimeCallsTest, NobodyIsToldWhatHeDoesNotWant) {
  const Stream stream = fresh_stream();
  const Kernel kernel = tiny_kernel();
  subscriber_.forget_events();
  subscriber_.set_wanted(probe::kOperations);
  stream.launch(kernel, items(1), &number_).value();
  {
    const Buffer buffer = Buffer::allocate(64).value();
  }
  EXPECT_TRUE(stream.query());
  stream.synchronize().value();
  EXPECT_EQ(only_one().submission->exit_ns, 0u);
  EXPECT_TRUE(subscriber_.waits().empty());
  EXPECT_TRUE(subscriber_.calls().empty());
  EXPECT_TRUE(subscriber_.calls_begun().empty());
  EXPECT_TRUE(subscriber_.memory_events().empty());
  subscriber_.set_wanted(probe::kOperations | probe::kWaits | probe::kHostExitTimes);
  stream.launch(kernel, items(1), &number_).value();
  stream.synchronize().value();
  EXPECT_EQ(subscriber_.waits().size(), 1u);
  EXPECT_TRUE(subscriber_.calls_begun().empty());
  EXPECT_GE(finished().back().submission->exit_ns, finished().back().enter_ns);
}

TEST_F(RuntimeCallsTest, MemoryIsSummedAndBalancesAtTheEnd) {
  {
    Buffer first = Buffer::allocate(1000).value();
    const Buffer second = Buffer::allocate(500, MemoryKind::host).value();
    Buffer moved = std::move(first);
    moved = Buffer::allocate(250, MemoryKind::shared).value();
  }
  const auto events = subscriber_.memory_events();
  std::vector<std::uint64_t> totals, bytes;
  for (const auto& event : events) {
    totals.push_back(event.total_bytes);
    bytes.push_back(event.bytes);
  }
  EXPECT_THAT(bytes, ElementsAre(1000, 500, 250, 1000, 250, 500));
  EXPECT_THAT(totals, ElementsAre(1000, 1500, 1750, 750, 500, 0));
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].type, probe::MemoryType::device);
  EXPECT_EQ(events[1].type, probe::MemoryType::pinned);
  EXPECT_EQ(events[2].type, probe::MemoryType::shared);
  EXPECT_EQ(events[3].action, probe::MemoryAction::release);
  EXPECT_EQ(events[3].address, events[0].address);
  EXPECT_EQ(events[3].type, probe::MemoryType::device);
  EXPECT_TRUE(subscriber_.objects(probe::ObjectKind::device).contains(events[0].device));
}

TEST_F(RuntimeCallsTest, WhatIsAllocatedWithoutABufferIsPublishedToo) {
  memory::DeviceCachingAllocator& allocator = *Device::get(0).value().allocator().value();
  const Stream stream = fresh_stream();
  const auto pool = allocator.create_pool();
  void* const block = allocator.allocate(1000, stream.memory_ref()).value();
  const Buffer buffer = Buffer::allocate(24).value();
  void* const of_pool = allocator.allocate(100, stream.memory_ref(), *pool).value();
  EXPECT_EQ(allocator.allocate(0, stream.memory_ref()).value(), nullptr);
  EXPECT_EQ(allocator.requested_bytes(), 1124u);
  allocator.free(block).value();
  EXPECT_FALSE(allocator.free(block).has_value()) << "freed twice: published once";
  std::thread([&] { allocator.free(of_pool).value(); }).join();
  EXPECT_FALSE(allocator.free(&allocator).has_value());
  const auto events = subscriber_.memory_events();
  std::vector<std::uint64_t> totals, bytes;
  for (const auto& event : events) {
    totals.push_back(event.total_bytes);
    bytes.push_back(event.bytes);
    EXPECT_EQ(event.type, probe::MemoryType::device);
    EXPECT_EQ(event.device, events[0].device);
    EXPECT_EQ(event.context, events[0].context);
  }
  EXPECT_THAT(bytes, ElementsAre(1000, 24, 100, 1000, 100));
  EXPECT_THAT(totals, ElementsAre(1000, 1024, 1124, 124, 24));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].address, reinterpret_cast<std::uintptr_t>(block));
  EXPECT_EQ(events[3].address, events[0].address);
  EXPECT_EQ(events[3].action, probe::MemoryAction::release);
  EXPECT_EQ(events[4].address, reinterpret_cast<std::uintptr_t>(of_pool));
}

// When its memory serves again is the allocator's affair: it may stay with the stream for ever.
TEST_F(RuntimeCallsTest, MemoryIsReleasedWhenItsOwnerLetsGoOfItThoughWorkStillUsesIt) {
  if (!Device::get(0).value().capabilities().value()->concurrent_operations) GTEST_SKIP() << "work would not go on meanwhile";
  const Stream stream = fresh_stream();
  Buffer buffer = Buffer::allocate(64).value();
  std::atomic<bool> may_end{false};
  stream
      .run({.name = "uses it"},
           [&] {
             while (!may_end) std::this_thread::yield();
           })
      .value();
  {
    const Buffer end = std::move(buffer);
  }
  const auto events = subscriber_.memory_events();
  may_end = true;
  stream.synchronize().value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].action, probe::MemoryAction::release);
  EXPECT_EQ(events[1].address, events[0].address);
}

TEST_F(RuntimeCallsTest, ADeviceIsDescribedWithItsNameAndAStreamWithItsPriority) {
  const Stream normal = fresh_stream(), high = Stream::from_pool(-1, 0).value();
  const SeenObject normal_queue = object(probe::ObjectKind::queue, queue_of(normal));
  const SeenObject high_queue = object(probe::ObjectKind::queue, queue_of(high));
  EXPECT_EQ(normal_queue.priority, normal.priority());
  EXPECT_EQ(high_queue.priority, -1);
  EXPECT_EQ(normal_queue.device, high_queue.device);
  EXPECT_FALSE(normal_queue.is_out_of_order);
  EXPECT_EQ(object(probe::ObjectKind::device, normal_queue.device).name, Device::get(0).value().properties().name);
  EXPECT_TRUE(subscriber_.objects(probe::ObjectKind::context).contains(normal_queue.context));
}

TEST_F(RuntimeCallsTest, AnExternalStreamIsAQueueThatEndsWithItsLastHolder) {
  hal::Device* device = Device::get(0).value().native().value();
  if (!device->capabilities().native_queues) GTEST_SKIP() << "the driver takes no queues of others";
  const auto queue = device->create_queue({}).value();
  probe::Id id = 0;
  {
    const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 0).value();
    external.stream().launch(tiny_kernel(), items(1), &number_).value();
    external.stream().synchronize().value();
    id = only_one().queue;
    EXPECT_FALSE(object(probe::ObjectKind::queue, id).is_destroyed);
  }
  EXPECT_TRUE(object(probe::ObjectKind::queue, id).is_destroyed);
  probe::republish_all();  // the destructor looks for descriptions of what has ended
}

TEST_F(RuntimeCallsTest, TheClockIsReadAtTheFirstCommandForALateSubscriber) {
  const Stream stream = fresh_stream();
  const Kernel kernel = tiny_kernel();
  stream.launch(kernel, items(1), &number_).value();
  stream.synchronize().value();
  finished();
  subscriber_.leave();
  subscriber_.come_back();
  const std::size_t before = subscriber_.readings().size();
  stream.launch(kernel, items(1), &number_).value();
  stream.synchronize().value();
  const probe::Id queue = finished().back().queue;
  const auto readings = subscriber_.readings();
  ASSERT_GT(readings.size(), before);
  EXPECT_EQ(readings.back().device, object(probe::ObjectKind::queue, queue).device);
}

TEST_F(RuntimeCallsTest, InsideAScopeNothingIsPublishedAtAll) {
  const Stream stream = fresh_stream();
  const Kernel kernel = tiny_kernel();
  subscriber_.forget_events();
  {
    const probe::Scope scope;
    const Buffer buffer = Buffer::allocate(64).value();
    stream.launch(kernel, items(1), &number_).value();
    stream.fill(buffer.as<std::uint8_t>(), 1, 64).value();
    stream.copy(buffer.data(), buffer.as<std::byte>() + 32, 32).value();
    stream.run_blocking({}, [] {}).value();
    Event event;
    event.record(stream).value();
    event.synchronize().value();
    EXPECT_TRUE(stream.query());
    stream.synchronize().value();
  }
  EXPECT_TRUE(finished().empty());
  EXPECT_TRUE(subscriber_.waits().empty());
  EXPECT_TRUE(subscriber_.calls().empty());
  EXPECT_TRUE(subscriber_.calls_begun().empty());
  EXPECT_TRUE(subscriber_.memory_events().empty());
}

TEST_F(RuntimeCallsTest, WhatAFunctionDoesIsWorkOfItsOwnEvenWhereItsSubmissionWasInsideAScope) {
  const Stream stream = fresh_stream(), other = fresh_stream();
  const Kernel kernel = tiny_kernel();
  {
    const probe::Scope scope;
    stream.run({.short_and_independent = true}, [&] { other.launch(kernel, items(1), &number_).value(); }).value();
    stream.synchronize().value();
  }
  other.synchronize().value();
  EXPECT_EQ(only_one().api, "xpu::Stream::launch");
}

}  // namespace
}  // namespace xpu::publisher_tests
