// The public classes on the host driver, in one process: what needs a process of its own (forks, exits, other drivers) is in
// tests/acceptance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "xpu/xpu.hpp"

namespace xpu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

void scale(const WorkItem& item, float* values, float factor) { values[item.global_id(0)] *= factor; }
XPU_KERNEL(scale, "values", "factor");

void raw_add_one(const std::byte* arguments, const WorkGroup* group) {
  std::int32_t* values = nullptr;
  std::memcpy(&values, arguments, sizeof values);
  for (std::uint64_t item = 0; item < group->items(0); ++item) ++values[group->first(0) + item];
}

template <typename T>
std::string message_of(const Result<T>& result) {
  return result ? "" : result.error().message;
}

class RuntimeTest : public ::testing::Test {
 protected:
  Stream stream_ = Stream::from_pool().value();
};

TEST_F(RuntimeTest, ARegisteredKernelRunsOnItsMemory) {
  const Kernel kernel = Kernel::registered("scale").value();
  const Buffer buffer = Buffer::allocate(1'000 * sizeof(float)).value();
  stream_.fill(buffer.as<float>(), 3.0f, 1'000).value();
  stream_.launch(kernel, items(1'000), buffer.as<float>(), 2.0f).value();
  std::vector<float> back(1'000);
  stream_.copy_blocking(back.data(), buffer.data(), 1'000 * sizeof(float)).value();
  EXPECT_THAT(back, Each(6.0f));
}

TEST_F(RuntimeTest, AKernelFromSourceRuns) {
  const Module module = Module::from_source(R"(
    void fill_index(const xpu::WorkItem& item, int* values, int first) { values[item.global_id(0)] = first + int(item.global_id(0)); }
    XPU_KERNEL(fill_index, "values", "first");
  )")
                            .value();
  const Kernel kernel = module.kernel("fill_index").value();
  std::vector<std::int32_t> values(300);
  stream_.launch(kernel, items(300), values.data(), 5).value();
  stream_.synchronize().value();
  EXPECT_EQ(values[0], 5);
  EXPECT_EQ(values[299], 304);
  EXPECT_THAT(module.kernel_names(), Contains("fill_index"));
  EXPECT_THAT(message_of(module.kernel("fill_indexes")), AllOf(HasSubstr("fill_indexes"), HasSubstr("fill_index")));
}

TEST_F(RuntimeTest, AKernelFromAFunctionHasItsTypesChecked) {
  const Kernel typed = Kernel::from_function<&scale>("twice", {}, "numbers", "by").value();
  std::vector<float> numbers(10, 1.0f);
  stream_.launch(typed, items(10), numbers.data(), 2.0f).value();
  stream_.synchronize().value();
  EXPECT_THAT(numbers, Each(2.0f));
  EXPECT_EQ(message_of(stream_.launch(typed, items(10), numbers.data(), 2)),
            "argument 1 'by' of kernel 'twice' is a f32, but a i32 was given");
}

TEST_F(RuntimeTest, AKernelFromARawFunctionNeedsTypesOnly) {
  const KernelArgument arguments[] = {{"values", ArgumentType::pointer, ArgumentType::i32}};
  const Kernel kernel = Kernel::from_function("raw", raw_add_one, arguments).value();
  std::vector<std::int32_t> values(100, 41);
  stream_.launch(kernel, in_groups(items(100), 16), values.data()).value();
  stream_.synchronize().value();
  EXPECT_THAT(values, Each(42));
}

TEST_F(RuntimeTest, ArgumentsThatCannotBeAreRefused) {
  const KernelArgument impossible[] = {{"values", ArgumentType::f32, ArgumentType::none, 8, 0}};
  EXPECT_EQ(message_of(Kernel::from_function("raw", raw_add_one, impossible)), "argument 0 of kernel 'raw' cannot be a f32 of 8 bytes");
  const KernelArgument overlapping[] = {{"a", ArgumentType::i64}, {"b", ArgumentType::i32, ArgumentType::none, 4, 4}};
  EXPECT_EQ(message_of(Kernel::from_function("raw", raw_add_one, overlapping)),
            "argument 1 of kernel 'raw' lies at byte 4, but the one before ends at 8");
  EXPECT_EQ(message_of(Kernel::from_function("raw", nullptr, {})), "the function of kernel 'raw' is null");
}

TEST_F(RuntimeTest, AFailedFunctionStaysWithTheStreamUntilItIsSynchronised) {
  stream_.run({.name = "first"}, [] { throw std::runtime_error("broken"); }).value();
  stream_.run({.name = "second"}, []() -> Result<> { return Error{ErrorCode::invalid_argument, "second"}; }).value();
  std::atomic<bool> was_run{false};
  stream_.run({.name = "third"}, [&] { was_run = true; }).value();
  const Result<> synchronized = stream_.synchronize();
  ASSERT_FALSE(synchronized);
  EXPECT_EQ(synchronized.error().message, "a host function threw: broken");
  EXPECT_TRUE(was_run);
  EXPECT_TRUE(stream_.synchronize());
}

TEST_F(RuntimeTest, ABufferThatGoesTakesNobodysError) {
  {
    const Buffer buffer = Buffer::allocate(64).value();
    stream_.run({}, [] { throw std::runtime_error("mine"); }).value();
  }
  EXPECT_EQ(message_of(stream_.synchronize()), "a host function threw: mine");
  EXPECT_TRUE(stream_.synchronize());
}

TEST_F(RuntimeTest, RunBlockingReturnsAfterItRanAndLetsItsOutcomeThrough) {
  std::vector<int> order;
  stream_.run({}, [&] { order.push_back(1); }).value();
  stream_.run_blocking({.name = "awaited"}, [&] { order.push_back(2); }).value();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_THROW(static_cast<void>(stream_.run_blocking({}, [] { throw std::out_of_range("far"); })), std::out_of_range);
  EXPECT_EQ(message_of(stream_.run_blocking({}, []() -> Result<> { return Error{ErrorCode::timeout, "late"}; })), "late");
  EXPECT_TRUE(stream_.synchronize()) << "none of it is the stream's error";
}

TEST_F(RuntimeTest, AFunctionMaySubmitToItsOwnStream) {
  bool is_outer_over = false, was_outer_over = false;
  const auto inner = [&] { was_outer_over = is_outer_over; };
  const auto outer = [&] {
    stream_.run({.short_and_independent = true}, inner).value();
    is_outer_over = true;
  };
  stream_.run({.short_and_independent = true}, outer).value();
  stream_.synchronize().value();
  stream_.synchronize().value();  // the first one may have come before the inner submission
  EXPECT_TRUE(was_outer_over) << "what a function submits comes behind it";
}

TEST_F(RuntimeTest, AFunctionDoesNotWaitForItself) {
  const Stream other = Stream::from_pool().value();
  Event before, behind, elsewhere;
  before.record(stream_).value();
  elsewhere.record(other).value();
  std::vector<ErrorCode> refused;
  const auto note = [&](const auto& result) {
    if (!result) refused.push_back(result.error().code);
  };
  std::string message;
  const auto waits = [&] {
    behind.record(stream_).value();
    message = message_of(stream_.synchronize());
    note(behind.synchronize());
    note(synchronize());
    note(stream_.run_blocking({}, [] {}));
    int values[2] = {};
    note(stream_.copy_blocking(&values[0], &values[1], sizeof values[0]));
    before.synchronize().value();
    elsewhere.synchronize().value();
    other.run_blocking({}, [] {}).value();
  };
  for (const bool is_short : {false, true}) {
    refused.clear();
    stream_.run({.short_and_independent = is_short}, waits).value();
    stream_.synchronize().value();
    EXPECT_EQ(refused, std::vector<ErrorCode>(4, ErrorCode::failed_precondition));
    EXPECT_THAT(message, AllOf(HasSubstr("stream 0x"), HasSubstr("cannot be waited for here")));
  }
  behind.synchronize().value();
}

TEST_F(RuntimeTest, OperationsAreNumberedPerStream) {
  const std::uint64_t first = stream_.run({}, [] {}).value().sequence;
  EXPECT_EQ(stream_.run({}, [] {}).value().sequence, first + 1);
  stream_.synchronize().value();
}

TEST_F(RuntimeTest, CopiesAndFillsAreChecked) {
  int value = 0;
  EXPECT_EQ(message_of(stream_.copy(nullptr, &value, 4)), "a copy of 4 bytes has a null destination");
  EXPECT_EQ(message_of(stream_.copy(&value, nullptr, 4)), "a copy of 4 bytes has a null source");
  EXPECT_EQ(message_of(stream_.copy(nullptr, nullptr, 0)), "");
  const std::byte pattern[3] = {};
  EXPECT_EQ(message_of(stream_.fill_bytes(&value, pattern, 3)), "a fill pattern of 3 bytes, it must have 1, 2, 4, 8 or 16");
  EXPECT_EQ(message_of(stream_.fill_bytes(&value, std::span(pattern).first(2), 3)), "a fill of 3 bytes is no multiple of its pattern's 2");
}

TEST_F(RuntimeTest, BuffersAreChecked) {
  EXPECT_EQ(message_of(Buffer::allocate(0)), "a buffer of 0 bytes was asked for, it must have at least 1");
  const auto huge = Buffer::allocate(std::size_t{1} << 60);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, ErrorCode::out_of_device_memory);
  Buffer first = Buffer::allocate(64).value();
  void* const data = first.data();
  Buffer second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);
}

TEST_F(RuntimeTest, ThreadsShareAStream) {
  std::uint64_t count = 0;  // no atomic: the stream is in-order
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int index = 0; index < 500; ++index) stream_.run({}, [&] { ++count; }).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream_.synchronize().value();
  EXPECT_EQ(count, 2'000u);
}

TEST(RuntimeReportTest, TellsEveryDriverAndWhyItIsNotUsed) {
  const RuntimeReport report = describe_runtime();
  EXPECT_EQ(report.error, "");
  bool has_host = false, has_sim = false;
  for (const DriverReport& driver : report.drivers) {
    if (driver.name == "host") {
      has_host = driver.is_selected && !driver.devices.empty() && driver.devices[0].index == 0;
    } else if (driver.name == "sim") {
      has_sim = !driver.is_selected && driver.reason == "not selected by XPU_DRIVER";
    }
  }
  EXPECT_TRUE(has_host);
  EXPECT_TRUE(has_sim);
}

}  // namespace
}  // namespace xpu
