#include <gtest/gtest.h>

#include <memory>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// What is claimed works, and what is not claimed is refused with `unsupported`.
class CapabilityTest : public DeviceTest {
 protected:
  const hal::Capabilities& capabilities() const { return device().capabilities(); }
};
XPU_CONFORMANCE_SUITE(CapabilityTest);

template <typename T>
::testing::AssertionResult works_or_is_refused(bool is_claimed, const Result<T>& result) {
  return is_claimed ? is_ok(result) : fails_with(ErrorCode::unsupported, result);
}

TEST_P(CapabilityTest, TheAnswerIsTheSameObjectAtEveryRead) { EXPECT_EQ(&device().capabilities(), &device().capabilities()); }

TEST_P(CapabilityTest, AllDevicesOfADriverAnswer) {
  for (std::uint32_t ordinal = 0; ordinal < shared().device_count(); ++ordinal) {
    EXPECT_NE(device(ordinal).capabilities().module_formats, 0u) << ordinal;
  }
}

TEST_P(CapabilityTest, ThereAreOneOrThreePriorityLevels) {
  EXPECT_TRUE(capabilities().priority_levels == 1 || capabilities().priority_levels == 3) << capabilities().priority_levels;
}

TEST_P(CapabilityTest, OnlyKnownModuleFormatsAreOffered) {
  constexpr std::uint32_t kAllFormats = (1u << (static_cast<unsigned>(hal::ModuleFormat::spirv) + 1)) - 1;
  EXPECT_EQ(capabilities().module_formats & ~kAllFormats, 0u);
}

TEST_P(CapabilityTest, AModuleFormatThatIsNotOfferedIsRefused) {
  for (unsigned format = 0; format <= static_cast<unsigned>(hal::ModuleFormat::spirv); ++format) {
    if ((capabilities().module_formats >> format & 1) != 0) continue;
    hal::ModuleSource source;
    source.format = static_cast<hal::ModuleFormat>(format);
    EXPECT_TRUE(fails_with(ErrorCode::unsupported, device().create_module(source))) << to_string(source.format);
  }
}

TEST_P(CapabilityTest, SomeMemoryIsReachedByTheDevice) { EXPECT_FALSE(kinds().empty()); }

TEST_P(CapabilityTest, SomeMemoryIsReachedByDeviceAndHost) { EXPECT_FALSE(host_visible_kinds().empty()); }

TEST_P(CapabilityTest, AddressSpaceIsReservedWhereItIsOffered) {
  for (const hal::MemoryKind kind : kinds()) {
    hal::MemoryProvider& provider = memory(kind);
    const std::size_t bytes = provider.granularity() != 0 ? provider.granularity() : 65'536;
    const Result<void*> reserved = provider.reserve(bytes);
    EXPECT_TRUE(works_or_is_refused(capabilities().virtual_memory, reserved)) << to_string(kind);
    if (reserved) provider.unreserve(*reserved, bytes);
  }
}

TEST_P(CapabilityTest, TimedEventsAreMadeWhereTheyAreOffered) {
  hal::EventOptions options;
  options.timed = true;
  EXPECT_TRUE(works_or_is_refused(capabilities().timed_events, device().create_event(options)));
}

TEST_P(CapabilityTest, BlockingEventsAreMadeWhereTheyAreOffered) {
  hal::EventOptions options;
  options.blocking = true;
  EXPECT_TRUE(works_or_is_refused(capabilities().blocking_events, device().create_event(options)));
}

TEST_P(CapabilityTest, AQueueIsAdoptedWhereThatIsOffered) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const Result<std::unique_ptr<hal::Queue>> adopted = device().adopt_queue(queue->native_handle(), nullptr);
  EXPECT_TRUE(works_or_is_refused(capabilities().native_queues, adopted));
}

TEST_P(CapabilityTest, OperationsHaveTimesWhereThatIsOffered) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  submit_action(*queue, [] {}, {.token = 5}).value();
  queue->synchronize_blocking().value();
  EXPECT_EQ(sink.of(5).status, capabilities().timed_operations ? hal::CompletionStatus::ok : hal::CompletionStatus::untimed);
}

TEST_P(CapabilityTest, MemoryOfTheProcessIsReachedWhereThatIsOffered) {
  XPU_NEEDS(host_memory_access);
  std::uint32_t source = 0x12345678;
  std::uint32_t destination = 0;
  const std::unique_ptr<hal::Queue> queue = new_queue();
  queue->copy(&destination, &source, sizeof(source), {}).value();
  queue->synchronize_blocking().value();
  EXPECT_EQ(destination, 0x12345678u);
}

TEST_P(CapabilityTest, EventsOfBothTimingsHaveDistinctUses) {
  XPU_NEEDS(timed_events);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> timed = new_event(true);
  const std::unique_ptr<hal::Event> untimed = new_event(false);
  queue->record(*timed).value();
  queue->record(*untimed).value();
  queue->synchronize_blocking().value();
  EXPECT_TRUE(timed->query().value());
  EXPECT_TRUE(untimed->query().value());
  EXPECT_TRUE(is_ok(timed->ticks()));
}

}  // namespace
}  // namespace xpu::conformance
