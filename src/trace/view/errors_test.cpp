#include "xpu/trace/view/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace xpu::trace::view {
namespace {

using testing::HasSubstr;

TEST(ViewErrorsTest, EveryCodeThatIsAnErrorHasOneOfTheLibrary) {
  int codes = 0;
  for (std::uint32_t number = 0; number < 400; ++number) {
    const auto code = static_cast<ResultCode>(number);
    if (std::string(to_string(code)) == "INVALID") continue;
    ++codes;
    const Error error = to_error(code, "the call");
    EXPECT_THAT(error.message, HasSubstr(to_string(code)));
    const bool is_none = code == ResultCode::success || code == ResultCode::end_of_buffer;
    EXPECT_EQ(error.message.find("no error") != std::string::npos, is_none) << error.message;
    EXPECT_EQ(error.native_code, static_cast<std::int64_t>(number));
  }
  EXPECT_EQ(codes, 37);
  EXPECT_EQ(to_error(ResultCode::bad_api_id, "x").code, ErrorCode::not_found);
  EXPECT_EQ(to_error(ResultCode::no_callbacks_set, "x").code, ErrorCode::failed_precondition);
  EXPECT_EQ(to_error(ResultCode::external_id_queue_empty, "x").code, ErrorCode::failed_precondition);
  EXPECT_EQ(to_result_code(ErrorCode::invalid_argument), ResultCode::bad_argument);
  EXPECT_EQ(to_result_code(ErrorCode::unavailable), ResultCode::tracing_not_initialized);
  EXPECT_EQ(to_result_code(ErrorCode::internal), ResultCode::internal);
}

}  // namespace
}  // namespace xpu::trace::view
