#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/probe.hpp"
#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Functions of the host in the order of a queue, and errors that appear when an operation runs.
class HostFunctionTest : public DeviceTest {};
XPU_CONFORMANCE_SUITE(HostFunctionTest);

/// What happened to one HostFunction, in the order in which it did.
struct CallLog {
  base::Mutex mutex;
  std::string text XPU_GUARDED_BY(mutex);

  void add(char letter) XPU_EXCLUDES(mutex) {
    const base::MutexLock lock(mutex);
    text += letter;
  }
  std::string get() XPU_EXCLUDES(mutex) {
    const base::MutexLock lock(mutex);
    return text;
  }
  /// "c" when it is called, "d" when it is dropped.
  hal::HostFunction function() {
    return {[](void* user) -> Result<> {
              static_cast<CallLog*>(user)->add('c');
              return {};
            },
            [](void* user) { static_cast<CallLog*>(user)->add('d'); }, this};
  }
};

/// Adds "s" to the log when a completion is delivered.
class LoggingSink final : public hal::CompletionSink {
 public:
  explicit LoggingSink(CallLog& log) : log_(log) {}
  void complete(const hal::Completion&) noexcept override { log_.add('s'); }

 private:
  CallLog& log_;
};

Result<> fail_with(const char* message) { return Error{ErrorCode::internal, message}; }

TEST_P(HostFunctionTest, ItIsCalledOnceThenDroppedOnce) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  CallLog log;
  queue->host_function(log.function(), {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(log.get(), "cd");
}

TEST_P(HostFunctionTest, ItIsDroppedBeforeItsCompletionIsDelivered) {
  CallLog log;
  LoggingSink sink(log);
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  queue->host_function(log.function(), {.token = 1}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(log.get(), "cds");
}

TEST_P(HostFunctionTest, NothingNeedsToBeDropped) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::atomic<int> call_count{0};
  const hal::HostFunction function = {[](void* user) -> Result<> {
                                        ++*static_cast<std::atomic<int>*>(user);
                                        return {};
                                      },
                                      nullptr, &call_count};
  queue->host_function(function, {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(call_count, 1);
}

TEST_P(HostFunctionTest, TheUserPointerMayBeNull) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const hal::HostFunction function = {[](void* user) -> Result<> { return user == nullptr ? Result<>() : fail_with("user is not null"); },
                                      nullptr, nullptr};
  queue->host_function(function, {}).value();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
}

TEST_P(HostFunctionTest, AFunctionThatFailedIsDroppedToo) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::atomic<int> drop_count{0};
  const hal::HostFunction function = {[](void*) { return fail_with("this is meant to fail"); },
                                      [](void* user) { ++*static_cast<std::atomic<int>*>(user); }, &drop_count};
  queue->host_function(function, {}).value();
  EXPECT_FALSE(queue->synchronize_blocking());
  EXPECT_EQ(drop_count, 1);
}

TEST_P(HostFunctionTest, ItSeesTheEffectsOfTheOperationsBeforeIt) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const values = allocate_zeros<std::uint8_t>(1'000);
  const std::byte pattern{7};
  int sum = 0;
  queue->fill(values, {&pattern, 1}, 1'000, {}).value();
  submit_action(*queue, [&] {
    for (int index = 0; index < 1'000; ++index) sum += values[index];
  }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(sum, 7'000);
}

TEST_P(HostFunctionTest, OperationsBehindItSeeItsEffects) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const source = allocate_zeros<std::uint64_t>(1);
  auto* const destination = allocate_zeros<std::uint64_t>(1);
  submit_action(*queue, [source] { *source = 99; }).value();
  queue->copy(destination, source, sizeof(*source), {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(*destination, 99u);
}

TEST_P(HostFunctionTest, ItMaySubmitToAnotherQueue) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Queue> other = new_queue();
  std::atomic<bool> has_run{false};
  std::atomic<bool> is_submitted{false};
  submit_action(*queue, [&] { is_submitted = submit_action(*other, [&] { has_run = true; }).has_value(); }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  ASSERT_TRUE(is_ok(other->synchronize_blocking()));
  EXPECT_TRUE(is_submitted);
  EXPECT_TRUE(has_run);
}

TEST_P(HostFunctionTest, ItMaySubmitToItsOwnQueue) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::vector<int> order;
  submit_action(*queue, [&] {
    static_cast<void>(submit_action(*queue, [&order] { order.push_back(2); }));
    order.push_back(1);
  }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));  // for what was submitted while the first one waited
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST_P(HostFunctionTest, AQueueKnowsThatItsOwnFunctionCannotWaitForIt) {
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  EXPECT_FALSE(queue->would_wait_for_itself());
  std::atomic<bool> can_wait{true};
  std::atomic<bool> has_ended{true};
  submit_action(*queue, [&] {
    can_wait = !queue->would_wait_for_itself();
    has_ended = queue->query().value();
  }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_FALSE(can_wait);
  EXPECT_FALSE(has_ended);
  EXPECT_FALSE(queue->would_wait_for_itself());
}

TEST_P(HostFunctionTest, ItMayWaitForAQueueThatDoesNotSayItWouldWaitForItself) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Queue> other = new_queue();
  for (hal::Queue* const waited_for : {queue.get(), other.get()}) {
    std::atomic<bool> may_wait{false};
    std::atomic<bool> had_run{false};
    std::atomic<bool> has_run{false};
    submit_function(*queue, [&, waited_for]() -> Result<> {
      XPU_TRY(submit_action(*waited_for, [&] { has_run = true; }));
      if (waited_for->would_wait_for_itself()) return {};
      may_wait = true;
      XPU_TRY(waited_for->synchronize_blocking());
      had_run = has_run.load();
      return {};
    }).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    ASSERT_TRUE(is_ok(waited_for->synchronize_blocking()));
    EXPECT_TRUE(has_run);
    EXPECT_EQ(had_run, may_wait);
    EXPECT_TRUE(may_wait || waited_for == queue.get() || !device().capabilities().concurrent_operations);
  }
}

TEST_P(HostFunctionTest, ItMayAllocateMemoryAndMakeObjects) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  submit_function(*queue, [this]() -> Result<> {
    XPU_TRY_ASSIGN(void* const block, memory(kinds()[0]).allocate(1'000, 64));
    memory(kinds()[0]).free(block);
    XPU_TRY_ASSIGN(const auto made_queue, device().create_queue({}));
    XPU_TRY_ASSIGN(const auto made_event, device().create_event({}));
    XPU_TRY(made_queue->record(*made_event));
    return {};
  }).value();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
}

TEST_P(HostFunctionTest, ItMayReadTheClockAndAskAboutOtherQueues) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Queue> other = new_queue();
  submit_function(*queue, [&]() -> Result<> {
    XPU_TRY(device().read_clock());
    XPU_TRY(other->query());
    return {};
  }).value();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
}

TEST_P(HostFunctionTest, ItRunsOutsideOfTheSubmittersProbeScope) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::atomic<int> inside_count{0};
  const probe::Scope scope;
  for (const bool is_short : {false, true}) {
    submit_action(*queue, [&] { inside_count += probe::inside_scope() ? 1 : 0; }, {.token = 0, .short_and_independent = is_short}).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  }
  EXPECT_EQ(inside_count, 0);
  EXPECT_TRUE(probe::inside_scope()) << "the submitter's own scope is gone";
}

TEST_P(HostFunctionTest, AnErrorIsNotThatOfTheSubmission) {
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  EXPECT_TRUE(is_ok(submit_function(*queue, [] { return fail_with("the first failure"); })));
  EXPECT_TRUE(is_ok(submit_action(*queue, [] {})));
  EXPECT_FALSE(queue->synchronize_blocking());
}

TEST_P(HostFunctionTest, AnErrorComesFromSynchronizeAsItWasReturned) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  submit_function(*queue, []() -> Result<> { return Error{ErrorCode::not_found, "the thing is not there", 17}; }).value();
  const Result<> result = queue->synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::not_found);
  EXPECT_EQ(result.error().message, "the thing is not there");
  EXPECT_EQ(result.error().native_code, 17);
}

TEST_P(HostFunctionTest, AnErrorIsReturnedOnce) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  submit_function(*queue, [] { return fail_with("only once"); }).value();
  EXPECT_FALSE(queue->synchronize_blocking());
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
}

TEST_P(HostFunctionTest, QueriesNeitherReturnNorClearAnError) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  submit_function(*queue, [] { return fail_with("it stays"); }).value();
  EXPECT_TRUE(eventually([&] { return queue->query().value(); }));
  EXPECT_TRUE(is_ok(queue->query()));
  EXPECT_FALSE(queue->synchronize_blocking());
}

TEST_P(HostFunctionTest, TheFirstErrorWins) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const char* message : {"the first", "the second", "the third"}) {
    submit_function(*queue, [message] { return fail_with(message); }).value();
  }
  const Result<> result = queue->synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "the first");
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
}

TEST_P(HostFunctionTest, OperationsBehindAFailureStillRun) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const value = allocate_zeros<std::uint8_t>(1);
  const std::byte pattern{6};
  std::atomic<bool> has_run{false};
  submit_function(*queue, [] { return fail_with("a failure before others"); }).value();
  submit_action(*queue, [&] { has_run = true; }).value();
  queue->fill(value, {&pattern, 1}, 1, {}).value();
  EXPECT_FALSE(queue->synchronize_blocking());
  EXPECT_TRUE(has_run);
  EXPECT_EQ(*value, 6);
}

TEST_P(HostFunctionTest, AQueueWorksOnAfterItsErrorWasReturned) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (int round = 0; round < 10; ++round) {
    submit_function(*queue, [] { return fail_with("every other time"); }).value();
    EXPECT_FALSE(queue->synchronize_blocking()) << round;
    submit_action(*queue, [] {}).value();
    EXPECT_TRUE(is_ok(queue->synchronize_blocking())) << round;
  }
}

TEST_P(HostFunctionTest, AnErrorDoesNotReachAnotherQueue) {
  const std::unique_ptr<hal::Queue> failing = new_queue();
  const std::unique_ptr<hal::Queue> other = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  submit_function(*failing, [] { return fail_with("of this queue alone"); }).value();
  failing->record(*event).value();
  other->wait(*event).value();
  std::atomic<bool> has_run{false};
  submit_action(*other, [&] { has_run = true; }).value();
  EXPECT_TRUE(is_ok(other->synchronize_blocking()));
  EXPECT_TRUE(has_run);
  EXPECT_FALSE(failing->synchronize_blocking());
}

TEST_P(HostFunctionTest, TheDeviceReturnsTheErrorOfAQueueAndClearsIt) {
  const std::unique_ptr<hal::Queue> failing = new_queue();
  const std::unique_ptr<hal::Queue> other = new_queue();
  submit_function(*failing, [] { return fail_with("seen by the device"); }).value();
  submit_action(*other, [] {}).value();
  const Result<> result = device().synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "seen by the device");
  EXPECT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_TRUE(is_ok(failing->synchronize_blocking()));
}

TEST_P(HostFunctionTest, AnErrorThatAQueueReturnedTheDeviceDoesNotReturnAgain) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  submit_function(*queue, [] { return fail_with("returned by the queue"); }).value();
  EXPECT_FALSE(queue->synchronize_blocking());
  EXPECT_TRUE(is_ok(device().synchronize_blocking()));
}

TEST_P(HostFunctionTest, FunctionsOfADestroyedQueueAreCalledAndDropped) {
  CallLog log;
  std::unique_ptr<hal::Queue> queue = new_queue();
  for (int index = 0; index < 3; ++index) queue->host_function(log.function(), {}).value();
  queue.reset();
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(log.get(), "cdcdcd");
}

}  // namespace
}  // namespace xpu::conformance
