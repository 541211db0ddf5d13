#include "xpu/trace/view/enums.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace xpu::trace::view {
namespace {

/// Every number below `end` that has a text.
template <typename Enum>
std::map<std::uint32_t, std::string> texts(std::uint32_t end = 2'000) {
  std::map<std::uint32_t, std::string> found;
  for (std::uint32_t number = 0; number < end; ++number) {
    const std::string text = to_string(static_cast<Enum>(number));
    if (text != "INVALID") found[number] = text;
  }
  return found;
}
using Texts = std::map<std::uint32_t, std::string>;

TEST(ViewEnumsTest, ResultCodesHaveThePublishedNumbersAndNames) {
  EXPECT_EQ(texts<ResultCode>(), (Texts{{0, "PTI_SUCCESS"},
                                        {1, "PTI_STATUS_END_OF_BUFFER"},
                                        {2, "PTI_ERROR_NOT_IMPLEMENTED"},
                                        {3, "PTI_ERROR_BAD_ARGUMENT"},
                                        {4, "PTI_ERROR_NO_CALLBACKS_SET"},
                                        {5, "PTI_ERROR_EXTERNAL_ID_QUEUE_EMPTY"},
                                        {6, "PTI_ERROR_BAD_TIMESTAMP"},
                                        {7, "PTI_ERROR_BAD_API_ID"},
                                        {8, "PTI_ERROR_NO_GPU_VIEWS_ENABLED"},
                                        {50, "PTI_ERROR_DRIVER"},
                                        {51, "PTI_ERROR_TRACING_NOT_INITIALIZED"},
                                        {52, "PTI_ERROR_L0_LOCAL_PROFILING_NOT_SUPPORTED"},
                                        {100, "PTI_ERROR_METRICS_COLLECTION_NOT_ENABLED"},
                                        {101, "PTI_ERROR_METRICS_COLLECTION_NOT_DISABLED"},
                                        {102, "PTI_ERROR_METRICS_COLLECTION_NOT_PAUSED"},
                                        {103, "PTI_ERROR_METRICS_COLLECTION_ALREADY_PAUSED"},
                                        {104, "PTI_ERROR_METRICS_COLLECTION_ALREADY_ENABLED"},
                                        {105, "PTI_ERROR_METRICS_BAD_COLLECTION_CONFIGURATION"},
                                        {106, "PTI_ERROR_METRICS_NO_DATA_COLLECTED"},
                                        {151, "PTI_ERROR_METRICS_SCOPE_METRIC_NOT_FOUND"},
                                        {152, "PTI_ERROR_METRICS_SCOPE_NOT_A_SINGLE_GROUP"},
                                        {153, "PTI_ERROR_METRICS_SCOPE_OUT_OF_MEMORY"},
                                        {154, "PTI_ERROR_METRICS_SCOPE_COLLECTION_BUFFER_TOO_SMALL"},
                                        {155, "PTI_ERROR_METRICS_SCOPE_INSUFFICIENT_BUFFER"},
                                        {156, "PTI_ERROR_METRICS_SCOPE_INVALID_COLLECTION_BUFFER"},
                                        {157, "PTI_WARN_METRICS_SCOPE_PARTIAL_BUFFER"},
                                        {158, "PTI_WARN_BUFFER_NOT_FINALIZED"},
                                        {159, "PTI_ERROR_METRICS_SCOPE_DEVICE_TYPE_NOT_UNIFORM"},
                                        {200, "PTI_ERROR_INTERNAL"},
                                        {250, "PTI_ERROR_PC_SAMPLING_ALREADY_ENABLED"},
                                        {251, "PTI_ERROR_PC_SAMPLING_NOT_CONFIGURED"},
                                        {252, "PTI_ERROR_PC_SAMPLING_ALREADY_CONFIGURED"},
                                        {253, "PTI_ERROR_PC_SAMPLING_ALREADY_STARTED"},
                                        {254, "PTI_ERROR_PC_SAMPLING_NOT_STARTED"},
                                        {255, "PTI_ERROR_PC_SAMPLING_ALREADY_STOPPED"},
                                        {256, "PTI_ERROR_PC_SAMPLING_NOT_STOPPED"},
                                        {257, "PTI_ERROR_PC_SAMPLING_UNSUPPORTED"}}));
}

TEST(ViewEnumsTest, KindsAndTypesHaveThePublishedNumbers) {
  EXPECT_EQ(texts<ViewKind>(), (Texts{{1, "kernel"},
                                      {2, "cpu_kernel"},
                                      {3, "driver_api"},
                                      {4, "reserved"},
                                      {5, "overhead"},
                                      {6, "runtime_api"},
                                      {7, "external_correlation"},
                                      {8, "memory_copy"},
                                      {9, "memory_fill"},
                                      {10, "peer_copy"},
                                      {11, "synchronization"},
                                      {12, "communication"}}));
  EXPECT_EQ(texts<SynchronizationType>(), (Texts{{0, "unknown"},
                                                 {1, "barrier_execution"},
                                                 {2, "barrier_memory"},
                                                 {3, "host_fence"},
                                                 {4, "host_event"},
                                                 {5, "host_command_list"},
                                                 {6, "host_command_queue"},
                                                 {7, "host_device"}}));
  EXPECT_EQ(texts<ExternalKind>(), (Texts{{1, "unknown"}, {2, "custom_0"}, {3, "custom_1"}, {4, "custom_2"}, {5, "custom_3"}}));
  EXPECT_EQ(texts<OverheadKind>(), (Texts{{1, "unknown"}, {2, "resource"}, {3, "buffer_flush"}, {4, "driver"}, {5, "time"}}));
}

TEST(ViewEnumsTest, MemoryTypesAndRoutesReadAsPtiHasThem) {
  EXPECT_EQ(texts<ViewMemoryType>(), (Texts{{0, "Host (User Allocated)"}, {1, "Host (Driver Allocated)"}, {2, "Device"}, {3, "Shared"}}));
  const Texts routes = texts<CopyType>();
  ASSERT_EQ(routes.size(), 16u);
  constexpr std::string_view kLetters = "MHDS";
  for (std::uint32_t source = 0; source < 4; ++source) {
    for (std::uint32_t destination = 0; destination < 4; ++destination) {
      const std::string expected = {kLetters[source], '2', kLetters[destination]};
      EXPECT_EQ(routes.at(4 * source + destination), expected);
      EXPECT_STREQ(to_string(copy_type(static_cast<ViewMemoryType>(source), static_cast<ViewMemoryType>(destination))), expected.c_str());
    }
  }
}

TEST(ViewEnumsTest, ApisCallbacksAndMetricsHaveThePublishedNumbers) {
  EXPECT_EQ(texts<ApiGroup>(), (Texts{{0, "reserved"},
                                      {1, "level_zero"},
                                      {2, "opencl"},
                                      {3, "sycl"},
                                      {4, "hybrid_sycl_level_zero"},
                                      {5, "hybrid_sycl_opencl"},
                                      {256, "xpu"}}));
  EXPECT_STREQ(to_string(static_cast<ApiGroup>(0x7fffffff)), "all");
  EXPECT_EQ(texts<ApiClass>(), (Texts{{0, "reserved"}, {1, "gpu_operation_core"}, {2, "host_operation_synchronization"}}));
  EXPECT_STREQ(to_string(static_cast<ApiClass>(0x7fffffff)), "all");
  EXPECT_EQ(texts<CallbackDomain>(), (Texts{{1, "context_created"},
                                            {2, "module_loaded"},
                                            {3, "module_unloaded"},
                                            {4, "operation_appended"},
                                            {5, "operation_dispatched"},
                                            {6, "operation_completed"},
                                            {7, "host_synchronization"},
                                            {8, "kernel_created"},
                                            {9, "kernel_destroyed"},
                                            {1023, "driver_api"},
                                            {1024, "internal_threads"},
                                            {1025, "internal_event"}}));
  EXPECT_EQ(texts<CallbackPhase>(),
            (Texts{{1, "api_enter"}, {2, "api_exit"}, {3, "thread_start"}, {4, "thread_end"}, {5, "internal_event"}}));
  EXPECT_EQ(
      texts<MetricValueType>(),
      (Texts{{0, "uint32"}, {1, "uint64"}, {2, "float32"}, {3, "float64"}, {4, "bool8"}, {5, "string"}, {6, "uint8"}, {7, "uint16"}}));
  EXPECT_EQ(texts<MetricGroupType>(), (Texts{{1, "event"}, {2, "time"}, {4, "trace"}}));
  EXPECT_EQ(texts<MetricScopeMode>(), (Texts{{1, "auto_kernel"}, {2, "user"}}));
}

TEST(ViewEnumsTest, WhatIsNoNumberOfAnEnumerationIsInvalid) {
  EXPECT_STREQ(to_string(static_cast<ResultCode>(0x7fffffff)), "INVALID");
  EXPECT_STREQ(to_string(static_cast<ViewKind>(UINT32_MAX)), "INVALID");
  EXPECT_STREQ(to_string(static_cast<ViewMemoryType>(4)), "INVALID");
  EXPECT_STREQ(to_string(static_cast<CopyType>(16)), "INVALID");
}

}  // namespace
}  // namespace xpu::trace::view
