#include "xpu/trace/view/selection.hpp"

#include <gtest/gtest.h>

#include "xpu/trace/view/records.hpp"

namespace xpu::trace::view {
namespace {

constexpr auto kDriver = ViewKind::driver_api;
constexpr auto kRuntime = ViewKind::runtime_api;

bool wants(const Selection& selection, const char* name) { return selection.wants(identify_api(name)); }
std::uint32_t id_of(const char* name) { return identify_api(name).id; }

TEST(SelectionTest, NothingIsWantedAtFirst) {
  const Selection selection;
  for (std::uint32_t kind = 0; kind < 40; ++kind) EXPECT_FALSE(selection.is_enabled(static_cast<ViewKind>(kind)));
  EXPECT_FALSE(wants(selection, "clFinish"));
}

TEST(SelectionTest, KindsAreASet) {
  Selection selection;
  EXPECT_EQ(selection.enable(ViewKind::kernel), ResultCode::success);
  EXPECT_EQ(selection.enable(ViewKind::kernel), ResultCode::success);
  EXPECT_TRUE(selection.is_enabled(ViewKind::kernel));
  EXPECT_EQ(selection.disable(ViewKind::kernel), ResultCode::success);
  EXPECT_FALSE(selection.is_enabled(ViewKind::kernel));
  EXPECT_EQ(selection.disable(ViewKind::kernel), ResultCode::success);
}

TEST(SelectionTest, RefusesKindsThatAreNoneAndSaysWhichAreNotThereYet) {
  Selection selection;
  for (const std::uint32_t kind : {0u, 4u, 13u, 0x7fffffffu}) {
    EXPECT_EQ(selection.enable(static_cast<ViewKind>(kind)), ResultCode::bad_argument);
    EXPECT_EQ(selection.disable(static_cast<ViewKind>(kind)), ResultCode::bad_argument);
  }
  EXPECT_EQ(selection.enable(ViewKind::cpu_kernel), ResultCode::not_implemented);
  EXPECT_EQ(selection.enable(ViewKind::communication), ResultCode::success);
}

TEST(SelectionTest, EnablingAnApiKindWantsAllOfItsFunctions) {
  Selection selection;
  ASSERT_EQ(selection.enable(kDriver), ResultCode::success);
  EXPECT_TRUE(wants(selection, "clFinish"));
  EXPECT_TRUE(wants(selection, "clNobodyKnows"));
  EXPECT_TRUE(wants(selection, "zeInit"));
  EXPECT_FALSE(wants(selection, "xpu::Stream::launch"));
}

TEST(SelectionTest, TheFirstFunctionNamedEmptiesItsGroup) {
  Selection selection;
  ASSERT_EQ(selection.enable(kDriver), ResultCode::success);
  ASSERT_EQ(selection.enable_api(kDriver, true, ApiGroup::opencl, id_of("clFinish")), ResultCode::success);
  EXPECT_TRUE(wants(selection, "clFinish"));
  EXPECT_FALSE(wants(selection, "clFlush"));
  EXPECT_FALSE(wants(selection, "clNobodyKnows"));
  EXPECT_TRUE(wants(selection, "zeInit"));
  ASSERT_EQ(selection.enable_api(kDriver, true, ApiGroup::opencl, id_of("clFlush")), ResultCode::success);
  EXPECT_TRUE(wants(selection, "clFinish"));
  EXPECT_TRUE(wants(selection, "clFlush"));
  ASSERT_EQ(selection.enable_api(kDriver, false, ApiGroup::opencl, id_of("clFinish")), ResultCode::success);
  EXPECT_FALSE(wants(selection, "clFinish"));
  ASSERT_EQ(selection.enable(kDriver), ResultCode::success);
  EXPECT_TRUE(wants(selection, "clNobodyKnows"));
}

TEST(SelectionTest, AClassNarrowsEveryGroupThatItNames) {
  Selection selection;
  ASSERT_EQ(selection.enable(kRuntime), ResultCode::success);
  ASSERT_EQ(selection.enable(kDriver), ResultCode::success);
  ASSERT_EQ(selection.enable_api_class(kRuntime, true, ApiClass::gpu_operation_core, ApiGroup::all), ResultCode::success);
  EXPECT_TRUE(wants(selection, "xpu::Stream::launch"));
  EXPECT_FALSE(wants(selection, "xpu::Stream::synchronize"));
  EXPECT_FALSE(wants(selection, "urInit"));
  EXPECT_TRUE(wants(selection, "clFinish")) << "another kind";

  ASSERT_EQ(selection.enable_api_class(kDriver, true, ApiClass::host_operation_synchronization, ApiGroup::opencl), ResultCode::success);
  EXPECT_TRUE(wants(selection, "clFinish"));
  EXPECT_FALSE(wants(selection, "clEnqueueNDRangeKernel"));
  ASSERT_EQ(selection.enable_api_class(kDriver, true, ApiClass::gpu_operation_core, ApiGroup::opencl), ResultCode::success);
  EXPECT_TRUE(wants(selection, "clFinish"));
  EXPECT_TRUE(wants(selection, "clEnqueueNDRangeKernel"));
  EXPECT_FALSE(wants(selection, "clCreateBuffer"));
}

TEST(SelectionTest, TheClassOfAllIsEveryFunctionAlsoWithoutAnId) {
  Selection selection;
  ASSERT_EQ(selection.enable(kDriver), ResultCode::success);
  ASSERT_EQ(selection.enable_api_class(kDriver, false, ApiClass::all, ApiGroup::all), ResultCode::success);
  EXPECT_FALSE(wants(selection, "clFinish"));
  EXPECT_FALSE(wants(selection, "clNobodyKnows"));
  ASSERT_EQ(selection.enable_api_class(kDriver, true, ApiClass::all, ApiGroup::opencl), ResultCode::success);
  EXPECT_TRUE(wants(selection, "clFinish"));
  EXPECT_TRUE(wants(selection, "clNobodyKnows"));
}

TEST(SelectionTest, FiltersAnswerWithTheCodesOfTheInterface) {
  Selection selection;
  const std::uint32_t finish = id_of("clFinish");
  EXPECT_EQ(selection.enable_api(kDriver, true, ApiGroup::level_zero, 39), ResultCode::not_implemented);
  EXPECT_EQ(selection.enable_api(kRuntime, true, ApiGroup::sycl, 17), ResultCode::not_implemented);
  EXPECT_EQ(selection.enable_api(kRuntime, true, ApiGroup::hybrid_sycl_opencl, 17), ResultCode::bad_argument);
  EXPECT_EQ(selection.enable_api(kDriver, true, ApiGroup::reserved, finish), ResultCode::bad_argument);
  EXPECT_EQ(selection.enable_api(kDriver, true, static_cast<ApiGroup>(77), finish), ResultCode::bad_argument);
  EXPECT_EQ(selection.enable_api(kDriver, true, ApiGroup::all, finish), ResultCode::bad_argument);
  EXPECT_EQ(selection.enable_api(kRuntime, true, ApiGroup::opencl, finish), ResultCode::bad_argument);
  EXPECT_EQ(selection.enable_api(ViewKind::kernel, true, ApiGroup::opencl, finish), ResultCode::bad_argument);
  EXPECT_EQ(selection.enable_api(kDriver, true, ApiGroup::opencl, 0), ResultCode::bad_api_id);
  EXPECT_EQ(selection.enable_api(kDriver, true, ApiGroup::opencl, 10'000), ResultCode::bad_api_id);
  EXPECT_EQ(selection.enable_api(kDriver, true, ApiGroup::opencl, kUnknownApiId), ResultCode::bad_api_id);
  EXPECT_EQ(selection.enable_api_class(kDriver, true, ApiClass::reserved, ApiGroup::opencl), ResultCode::bad_argument);
  EXPECT_EQ(selection.enable_api_class(kDriver, true, static_cast<ApiClass>(3), ApiGroup::all), ResultCode::bad_argument);
  EXPECT_EQ(selection.enable_api_class(kDriver, true, ApiClass::all, ApiGroup::level_zero), ResultCode::not_implemented);
  EXPECT_EQ(selection.enable_api_class(ViewKind::overhead, true, ApiClass::all, ApiGroup::all), ResultCode::bad_argument);
  ASSERT_EQ(selection.enable(kDriver), ResultCode::success);
  EXPECT_TRUE(wants(selection, "clFlush")) << "what was refused changed nothing";
}

}  // namespace
}  // namespace xpu::trace::view
