#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/sim/rules.hpp"
#include "drivers/sim/test_support/sim_fixture.hpp"

namespace xpu::drivers::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint64_t> tokens_of(const KeepingSink& sink) {
  std::vector<std::uint64_t> tokens;
  for (const hal::Completion& completion : sink.completions()) tokens.push_back(completion.token);
  return tokens;
}

/// `count` kernels with the tokens 1, 2, ... on one queue.
void store_often(SimDeviceUnderTest& sim, hal::Queue& queue, std::uint64_t& place, std::uint64_t count) {
  for (std::uint64_t token = 1; token <= count; ++token) sim.store(queue, &place, token, token);
}

TEST(FaultTest, ALostRecordIsNeverDelivered) {
  SimDeviceUnderTest sim(program_of("fault record_lost kernel \"st*\" nth=3"));
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  store_often(sim, *queue, place, 4);
  queue->synchronize_blocking().value();
  sim.device->synchronize_blocking().value();
  EXPECT_THAT(tokens_of(sim.sink), ElementsAre(1, 2, 4));
  EXPECT_EQ(place, 4u);
}

TEST(FaultTest, ALateRecordIsDeliveredByTheNextSynchronisation) {
  SimDeviceUnderTest sim(program_of("fault record_late nth=1"));
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  store_often(sim, *queue, place, 2);
  queue->synchronize_blocking().value();
  EXPECT_THAT(tokens_of(sim.sink), ElementsAre(2));
  queue->synchronize_blocking().value();
  EXPECT_THAT(tokens_of(sim.sink), ElementsAre(2, 1));
  EXPECT_EQ(sim.sink.of(1).ticks.end, 15'000u) << "with the times of the operation";
  sim.device->synchronize_blocking().value();
  EXPECT_EQ(sim.sink.completions().size(), 2u);
}

TEST(FaultTest, ALateRecordIsDeliveredAtTheLatestWithTheLastHandle) {
  KeepingSink sink;
  std::uint64_t place = 0;
  {
    SimDeviceUnderTest sim(program_of("fault record_late"));
    const auto queue = sim.device->create_queue({.sink = &sink}).value();
    sim.store(*queue, &place, 1, 1);
    queue->synchronize_blocking().value();
    EXPECT_TRUE(sink.completions().empty());
  }
  EXPECT_THAT(tokens_of(sink), ElementsAre(1));
}

TEST(FaultTest, ADuplicateIsDeliveredTwice) {
  SimDeviceUnderTest sim(program_of("fault record_duplicate every=2"));
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  store_often(sim, *queue, place, 5);
  queue->synchronize_blocking().value();
  EXPECT_THAT(tokens_of(sim.sink), ElementsAre(1, 2, 2, 3, 4, 4, 5));
}

TEST(FaultTest, ANegativeRecordEndsBeforeItStarts) {
  SimDeviceUnderTest sim(program_of("fault record_negative\nhost_function duration=0s"));
  const auto queue = sim.queue();
  std::uint64_t place = 0, counter = 0;
  sim.store(*queue, &place, 1, 1);
  queue->host_function(counting_function(counter), {.token = 2}).value();
  queue->synchronize_blocking().value();
  EXPECT_EQ(sim.sink.of(1).ticks.start, 15'000u);
  EXPECT_EQ(sim.sink.of(1).ticks.end, 5'000u);
  EXPECT_EQ(sim.sink.of(2).ticks.start, 15'001u);
  EXPECT_EQ(sim.sink.of(2).ticks.end, 15'000u) << "also where it took no time";
}

TEST(FaultTest, AnUntimedRecordHasNoTimes) {
  SimDeviceUnderTest sim(program_of("fault record_untimed copy"));
  const auto queue = sim.queue();
  const std::uint64_t source = 1;
  std::uint64_t place = 0;
  queue->copy(&place, &source, 8, {.token = 1}).value();
  sim.store(*queue, &place, 1, 2);
  queue->synchronize_blocking().value();
  EXPECT_EQ(sim.sink.of(1).status, hal::CompletionStatus::untimed);
  EXPECT_EQ(sim.sink.of(1).ticks.end, 0u);
  EXPECT_EQ(sim.sink.of(2).status, hal::CompletionStatus::ok);
}

TEST(FaultTest, AFailingOperationHasNoEffectAndItsQueueAnError) {
  SimDeviceUnderTest sim(program_of("fault operation_fails nth=2"));
  const auto queue = sim.queue();
  std::uint64_t first = 0, second = 0, third = 0;
  sim.store(*queue, &first, 1, 1);
  sim.store(*queue, &second, 1, 2);
  sim.store(*queue, &third, 1, 3);
  const Result<> result = queue->synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::internal);
  EXPECT_THAT(result.error().message, HasSubstr("kernel 'store' failed"));
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(second, 0u);
  EXPECT_EQ(third, 1u);
  EXPECT_EQ(sim.sink.of(2).status, hal::CompletionStatus::failed);
  EXPECT_EQ(sim.sink.of(2).ticks.end, 25'000u);
  EXPECT_TRUE(queue->synchronize_blocking());
}

TEST(FaultTest, AFailingHostFunctionIsDroppedAndNotCalled) {
  SimDeviceUnderTest sim(program_of("fault operation_fails host_function"));
  const auto queue = sim.queue();
  std::uint64_t counter = 0;
  queue->host_function(counting_function(counter), {}).value();
  EXPECT_FALSE(queue->synchronize_blocking());
  EXPECT_EQ(counter, 100u);
}

TEST(FaultTest, ALostDeviceStaysLost) {
  SimDeviceUnderTest sim(program_of("fault device_lost nth=2"));
  const auto queue = sim.queue(), other = sim.queue();
  const auto event = sim.event();
  std::uint64_t first = 0, second = 0, third = 0, counter = 0;
  sim.store(*queue, &first, 1, 1);
  sim.store(*queue, &second, 1, 2);
  sim.store(*queue, &third, 1, 3);
  queue->host_function(counting_function(counter), {.token = 4}).value();
  sim.record(*queue, *event);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Result<> result = queue->synchronize_blocking();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::device_lost);
  }
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(second, 0u);
  EXPECT_EQ(third, 0u);
  EXPECT_EQ(counter, 100u);
  EXPECT_EQ(sim.sink.of(1).status, hal::CompletionStatus::ok);
  EXPECT_EQ(sim.sink.of(2).status, hal::CompletionStatus::failed);
  EXPECT_EQ(sim.sink.of(3).status, hal::CompletionStatus::failed);
  EXPECT_EQ(sim.sink.of(3).ticks.start, 25'000u) << "given up when the device was lost";
  EXPECT_EQ(sim.sink.of(3).ticks.end, 25'000u);
  EXPECT_EQ(sim.sink.of(4).status, hal::CompletionStatus::failed);

  const auto is_lost = [](const auto& result) { return !result && result.error().code == ErrorCode::device_lost; };
  EXPECT_TRUE(is_lost(sim.try_store(*other, &third, 1)));
  EXPECT_TRUE(is_lost(other->record(*event)));
  EXPECT_TRUE(is_lost(event->synchronize_blocking()));
  EXPECT_TRUE(is_lost(sim.device->synchronize_blocking()));
  EXPECT_TRUE(is_lost(sim.device->create_queue({})));
  EXPECT_TRUE(is_lost(sim.device->create_event({})));
  EXPECT_TRUE(is_lost(sim.device->read_clock()));
  EXPECT_TRUE(is_lost(sim.device->memory(hal::MemoryKind::device)->allocate(64, 64)));

  const auto again = sim.driver->open_device(0).value();
  EXPECT_TRUE(again->synchronize_blocking());
  EXPECT_TRUE(again->create_queue({}));
}

TEST(FaultTest, TheNthAllocationOfDeviceMemoryIsRefused) {
  SimDeviceUnderTest sim(program_of("fault out_of_memory nth=2"));
  hal::MemoryProvider& memory = *sim.device->memory(hal::MemoryKind::device);
  void* const first = memory.allocate(64, 64).value();
  void* const pinned = sim.device->memory(hal::MemoryKind::host)->allocate(64, 64).value();
  const Result<void*> second = memory.allocate(4096, 64);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(second.error().message, HasSubstr("4096 bytes of device memory"));
  void* const third = memory.allocate(4096, 64).value();
  memory.free(first);
  memory.free(third);
  sim.device->memory(hal::MemoryKind::host)->free(pinned);
}

TEST(FaultTest, MappingCountsAsAllocating) {
  SimDeviceUnderTest sim(program_of("fault out_of_memory every=2"));
  hal::MemoryProvider& memory = *sim.device->memory(hal::MemoryKind::shared);
  const std::size_t bytes = memory.granularity();
  void* const address = memory.reserve(bytes).value();
  memory.map(address, bytes).value();
  memory.unmap(address, bytes);
  EXPECT_FALSE(memory.map(address, bytes));
  memory.unreserve(address, bytes);
}

TEST(FaultTest, DeviceAndSharedMemoryHaveTheProgrammedLimitTogether) {
  SimDeviceUnderTest sim(program_of("memory 1MiB"));
  hal::MemoryProvider& device = *sim.device->memory(hal::MemoryKind::device);
  hal::MemoryProvider& shared = *sim.device->memory(hal::MemoryKind::shared);
  EXPECT_EQ(device.info().value().total_bytes, 1u << 20);
  void* const most = device.allocate(768 << 10, 64).value();
  const Result<void*> refused = shared.allocate(512 << 10, 64);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
  EXPECT_EQ(sim.device->properties().total_memory_bytes, 1u << 20);
  device.free(most);
}

TEST(FaultTest, AQueueIsRefused) {
  SimDeviceUnderTest sim(program_of("fault queue_refused nth=2"));
  EXPECT_TRUE(sim.device->create_queue({}));
  const auto refused = sim.device->create_queue({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_TRUE(sim.device->create_queue({}));
}

TEST(FaultTest, RulesOfOneOperationAddUp) {
  SimDeviceUnderTest sim(program_of("fault record_late nth=1\nfault record_duplicate kernel nth=1\nfault record_untimed kernel \"other\""));
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1, 1);
  queue->synchronize_blocking().value();
  EXPECT_TRUE(sim.sink.completions().empty());
  queue->synchronize_blocking().value();
  EXPECT_THAT(tokens_of(sim.sink), ElementsAre(1, 1));
}

TEST(FaultTest, PatternsMatchAsTheySay) {
  const auto matches = [](std::string_view pattern, std::string_view text) { return matches_pattern(pattern, text); };
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("gemm*", "gemm"));
  EXPECT_TRUE(matches("*gemm*", "my_gemm_nt"));
  EXPECT_TRUE(matches("a*b*c", "a_b_b_c"));
  EXPECT_TRUE(matches("a?c", "abc"));
  EXPECT_TRUE(matches("a*", "a*"));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("gemm", "gemm_nt"));
  EXPECT_FALSE(matches("a*b*c", "a_b_b"));
  EXPECT_FALSE(matches("*ab", "abc"));
}

}  // namespace
}  // namespace xpu::drivers::sim
