#define CL_TARGET_OPENCL_VERSION 300
#include "xpu/api/opencl.hpp"

#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace xpu::api::opencl {
namespace {

TEST(EntryPoints, HaveOneRowPerSlotOfTheDispatchTable) { EXPECT_EQ(entry_points().size(), sizeof(cl_icd_dispatch) / sizeof(void*)); }

TEST(EntryPoints, StandAtTheSlotOfTheirName) {
  const auto slot = [](std::size_t offset) { return entry_points()[offset / sizeof(void*)].name; };
  EXPECT_EQ(slot(offsetof(cl_icd_dispatch, clGetPlatformIDs)), "clGetPlatformIDs");
  EXPECT_EQ(slot(offsetof(cl_icd_dispatch, clEnqueueNDRangeKernel)), "clEnqueueNDRangeKernel");
  EXPECT_EQ(slot(offsetof(cl_icd_dispatch, clEnqueueSVMMigrateMem)), "clEnqueueSVMMigrateMem");
  EXPECT_EQ(slot(offsetof(cl_icd_dispatch, clSetContextDestructorCallback)), "clSetContextDestructorCallback");
}

TEST(EntryPoints, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (const auto entries : {entry_points(), extension_entry_points()}) {
    for (const EntryPoint& entry : entries) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
  }
}

TEST(EntryPoints, OfTheCoreThatSubmitOrWaitAreTraced) {
  for (const EntryPoint& entry : entry_points()) {
    const bool is_core = entry.since.find('.') != std::string_view::npos;
    if (!is_core || entry.name == "clFlush") continue;
    if (entry.entry_class == EntryClass::submit) {
      EXPECT_EQ(entry.treatment, Treatment::command) << entry.name;
    }
    if (entry.entry_class == EntryClass::wait) {
      EXPECT_EQ(entry.treatment, Treatment::wait) << entry.name;
    }
  }
}

TEST(EntryPoints, ThatArePassedThroughHaveAReason) {
  for (const auto entries : {entry_points(), extension_entry_points()}) {
    for (const EntryPoint& entry : entries) {
      if (entry.treatment == Treatment::passed) {
        EXPECT_FALSE(entry.reason.empty()) << entry.name;
      }
    }
  }
}

TEST(EntryPoints, AreFoundByName) {
  ASSERT_NE(find_entry_point("clFinish"), nullptr);
  EXPECT_EQ(find_entry_point("clFinish")->entry_class, EntryClass::wait);
  ASSERT_NE(find_entry_point("clEnqueueMemcpyINTEL"), nullptr);
  EXPECT_EQ(find_entry_point("clEnqueueMemcpyINTEL")->treatment, Treatment::passed);
  EXPECT_EQ(find_entry_point("clNoSuchThing"), nullptr);
}

TEST(ErrorName, IsTheNameThatTheHeaderGivesTheNumber) {
  EXPECT_EQ(error_name(CL_SUCCESS), "CL_SUCCESS");
  EXPECT_EQ(error_name(CL_OUT_OF_RESOURCES), "CL_OUT_OF_RESOURCES");
  EXPECT_EQ(error_name(CL_PROFILING_INFO_NOT_AVAILABLE), "CL_PROFILING_INFO_NOT_AVAILABLE");
  EXPECT_EQ(error_name(CL_MAX_SIZE_RESTRICTION_EXCEEDED), "CL_MAX_SIZE_RESTRICTION_EXCEEDED");
  EXPECT_EQ(error_name(CL_BUILD_PROGRAM_FAILURE), "CL_BUILD_PROGRAM_FAILURE");
  EXPECT_EQ(error_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
  EXPECT_EQ(error_name(-9999), "");
}

TEST(CommandName, IsTheNameThatTheHeaderGivesTheNumber) {
  EXPECT_EQ(command_name(CL_COMMAND_NDRANGE_KERNEL), "CL_COMMAND_NDRANGE_KERNEL");
  EXPECT_EQ(command_name(CL_COMMAND_SVM_MIGRATE_MEM), "CL_COMMAND_SVM_MIGRATE_MEM");
  EXPECT_EQ(command_name(1), "");
}

}  // namespace
}  // namespace xpu::api::opencl
