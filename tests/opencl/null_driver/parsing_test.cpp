#include <gtest/gtest.h>

#include "null_driver/settings.hpp"
#include "null_driver/source_parser.hpp"

namespace xpu::null_driver {
namespace {

TEST(SourceParserTest, FindsKernelsWithTheirArguments) {
  const auto kernels = kernels_of_source(R"(
    // kernel void in_a_comment(int x) {}
    /* kernel void in_another(int x) {} */
    #define kernel_name kernel void in_a_macro(int x)
    float helper(float x) { return x; }
    __kernel void first(__global const float* restrict input, local int* scratch, uint4 size) {}
    kernel __attribute__((reqd_work_group_size(8, 4, 1))) void second(read_only image2d_t image, sampler_t how) {}
    kernel void third(void) {}
    kernel void fourth() {}
  )");
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0].name, "first");
  ASSERT_EQ(kernels[0].arguments.size(), 3u);
  EXPECT_EQ(kernels[0].arguments[0].name, "input");
  EXPECT_EQ(kernels[0].arguments[0].type, "float*");
  EXPECT_EQ(kernels[0].arguments[0].address, static_cast<cl_uint>(CL_KERNEL_ARG_ADDRESS_GLOBAL));
  EXPECT_EQ(kernels[0].arguments[0].qualifiers, static_cast<cl_ulong>(CL_KERNEL_ARG_TYPE_CONST | CL_KERNEL_ARG_TYPE_RESTRICT));
  EXPECT_EQ(kernels[0].arguments[1].address, static_cast<cl_uint>(CL_KERNEL_ARG_ADDRESS_LOCAL));
  EXPECT_EQ(kernels[0].arguments[2].type, "uint4");
  EXPECT_EQ(kernels[1].name, "second");
  EXPECT_EQ(kernels[1].required_work_group, (std::array<std::size_t, 3>{8, 4, 1}));
  EXPECT_EQ(kernels[1].arguments.at(0).access, static_cast<cl_uint>(CL_KERNEL_ARG_ACCESS_READ_ONLY));
  EXPECT_TRUE(kernels[2].arguments.empty());
  EXPECT_TRUE(kernels[3].arguments.empty());
}

TEST(SourceParserTest, SurvivesTextThatIsNoProgram) {
  for (const char* text :
       {"", "kernel", "kernel void", "kernel void f", "kernel void f(", "kernel void f(int", "/* kernel void f() {}", "\"kernel"}) {
    EXPECT_LE(kernels_of_source(text).size(), 1u) << text;
  }
  EXPECT_TRUE(kernels_of_intermediate_language("no module").empty());
}

TEST(FaultsTest, ReadsEachWordOfTheList) {
  const Faults faults = parse_faults("no_profiling,fail_enqueue=7,,late,step=-250@12,backward");
  EXPECT_TRUE(faults.no_profiling);
  EXPECT_TRUE(faults.backward);
  EXPECT_FALSE(faults.no_timer);
  EXPECT_FALSE(faults.zero_times);
  EXPECT_EQ(faults.fail_enqueue, 7u);
  EXPECT_EQ(faults.fail_command, 0u);
  EXPECT_EQ(faults.late, 1u) << "without a number every command is meant";
  EXPECT_EQ(faults.step_ns, -250);
  EXPECT_EQ(faults.step_after_commands, 12u);
  EXPECT_TRUE(faults.any_on_enqueue());
  EXPECT_FALSE(parse_faults("no_profiling,no_timer").any_on_enqueue());
  EXPECT_FALSE(parse_faults(nullptr).any_on_enqueue());
}

TEST(FaultsTest, SaysWhenItDoesNotKnowAWord) {
  testing::internal::CaptureStderr();
  parse_faults("no_profilling");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("no_profilling"), std::string::npos);
}

}  // namespace
}  // namespace xpu::null_driver
