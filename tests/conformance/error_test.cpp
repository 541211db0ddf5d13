#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// What errors say. That they are sentences, and which code they have, is checked by every test that expects one (`fails_with`).
class ErrorTest : public DeviceTest {};
XPU_CONFORMANCE_SUITE(ErrorTest);

TEST_P(ErrorTest, AnExhaustedMemoryNamesWhatWasAskedFor) {
  for (const hal::MemoryKind kind : kinds()) {
    const std::size_t bytes = memory(kind).info().value().total_bytes + 12'345;
    const Result<void*> block = memory(kind).allocate(bytes, 64);
    ASSERT_FALSE(block) << to_string(kind);
    EXPECT_THAT(block.error().message, ::testing::ContainsRegex("[0-9]")) << to_string(kind);
  }
}

TEST_P(ErrorTest, AnErrorKnowsWhereItWasMade) {
  for (const hal::MemoryKind kind : kinds()) {
    const Result<void*> block = memory(kind).allocate(memory(kind).info().value().total_bytes + 1, 64);
    ASSERT_FALSE(block) << to_string(kind);
    EXPECT_STRNE(block.error().where.file_name(), "") << to_string(kind);
    EXPECT_GT(block.error().where.line(), 0u) << to_string(kind);
  }
}

TEST_P(ErrorTest, AnUnknownKernelIsNamed) {
  XPU_NEEDS(registered_modules);
  const Result<std::shared_ptr<const hal::Kernel>> kernel = device().create_module({}).value()->kernel("conformance_no_such_kernel");
  ASSERT_TRUE(fails_with(ErrorCode::not_found, kernel));
  EXPECT_THAT(kernel.error().message, ::testing::HasSubstr("conformance_no_such_kernel"));
}

TEST_P(ErrorTest, AFailureOfAHostFunctionIsPassedOnUnchanged) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  // A text with everything that a careless printf or log would trip over.
  const std::string message = "100 % of {} failed: \"quoted\", tab\tand \xc3\xa4";
  submit_function(*queue, [&]() -> Result<> { return Error{ErrorCode::timeout, message}; }).value();
  const Result<> result = queue->synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, message);
  EXPECT_EQ(result.error().code, ErrorCode::timeout);
}

TEST_P(ErrorTest, ErrorsOfTwoQueuesAreReturnedByEachQueue) {
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  submit_function(*first, []() -> Result<> { return Error{ErrorCode::internal, "of the first"}; }).value();
  submit_function(*second, []() -> Result<> { return Error{ErrorCode::internal, "of the second"}; }).value();
  const Result<> of_second = second->synchronize_blocking();
  const Result<> of_first = first->synchronize_blocking();
  ASSERT_FALSE(of_first);
  ASSERT_FALSE(of_second);
  EXPECT_EQ(of_first.error().message, "of the first");
  EXPECT_EQ(of_second.error().message, "of the second");
}

}  // namespace
}  // namespace xpu::conformance
