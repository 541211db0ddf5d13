#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "programs/support.hpp"
#include "publisher/subscriber_test.hpp"

/// What the OpenCL layer says about commands and objects, beyond that it says something.
namespace xpu::publisher_tests {
namespace {

class OpenClDetailsTest : public SubscriberTest {
 protected:
  opencl_programs::Setup setup_;
};

TEST_F(OpenClDetailsTest, AKernelHasItsNameGeometryQueueAndDevice) {
  cl_command_queue queue = setup_.queue();
  cl_kernel kernel = setup_.ready_kernel("tiny", 1);
  const std::size_t offset[] = {1, 2, 3}, global[] = {8, 4, 2}, local[] = {2, 2, 1};
  XPU_CL(clEnqueueNDRangeKernel(queue, kernel, 3, offset, global, local, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  const SeenOperation operation = only_one();
  EXPECT_EQ(operation.api, "clEnqueueNDRangeKernel");
  EXPECT_EQ(operation.command, probe::Command::ndrange_kernel);
  ASSERT_TRUE(operation.geometry);
  EXPECT_EQ(operation.geometry->dimensions, 3u);
  EXPECT_THAT(operation.geometry->offset, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(operation.geometry->global, testing::ElementsAre(8, 4, 2));
  EXPECT_THAT(operation.geometry->local, testing::ElementsAre(2, 2, 1));
  const auto kernels = subscriber_.objects(probe::ObjectKind::kernel);
  ASSERT_TRUE(kernels.contains(operation.kernel));
  EXPECT_EQ(kernels.at(operation.kernel).name, "tiny");
  const auto queues = subscriber_.objects(probe::ObjectKind::queue);
  ASSERT_TRUE(queues.contains(operation.queue));
  EXPECT_EQ(kernels.at(operation.kernel).device, queues.at(operation.queue).device);
  EXPECT_FALSE(subscriber_.objects(probe::ObjectKind::device).at(queues.at(operation.queue).device).name.empty());
}

TEST_F(OpenClDetailsTest, ALocalSizeThatTheDriverChoosesIsZero) {
  cl_command_queue queue = setup_.queue();
  const std::size_t global = 64;
  XPU_CL(clEnqueueNDRangeKernel(queue, setup_.ready_kernel("tiny", 1), 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  const SeenOperation operation = only_one();
  ASSERT_TRUE(operation.geometry);
  EXPECT_THAT(operation.geometry->global, testing::ElementsAre(64, 1, 1));
  EXPECT_THAT(operation.geometry->local, testing::ElementsAre(0, 0, 0));
}

TEST_F(OpenClDetailsTest, ACopyHasItsRouteAndBytes) {
  cl_command_queue queue = setup_.queue();
  cl_mem buffer = setup_.buffer(4096), other = setup_.buffer(4096);
  char host[256] = {};
  XPU_CL(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, 100, host, 0, nullptr, nullptr));
  XPU_CL(clEnqueueCopyBuffer(queue, buffer, other, 0, 0, 200, 0, nullptr, nullptr));
  XPU_CL(clEnqueueReadBuffer(queue, other, CL_FALSE, 0, 50, host, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[0].copy->direction, probe::CopyDirection::host_to_device);
  EXPECT_EQ(operations[0].copy->bytes, 100u);
  EXPECT_EQ(operations[0].copy->source, reinterpret_cast<std::uintptr_t>(host));
  EXPECT_EQ(operations[0].copy->destination, reinterpret_cast<std::uintptr_t>(buffer));
  EXPECT_EQ(operations[1].copy->direction, probe::CopyDirection::device_to_device);
  EXPECT_EQ(operations[1].copy->bytes, 200u);
  EXPECT_EQ(operations[2].copy->direction, probe::CopyDirection::device_to_host);
  EXPECT_EQ(operations[2].copy->bytes, 50u);
}

TEST_F(OpenClDetailsTest, ARectangleHasItsOriginsRegionAndPitches) {
  cl_command_queue queue = setup_.queue();
  cl_mem buffer = setup_.buffer(4096);
  char host[4096] = {};
  const std::size_t buffer_origin[] = {4, 1, 0}, host_origin[] = {8, 2, 0}, region[] = {16, 3, 1};
  XPU_CL(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, buffer_origin, host_origin, region, 64, 0, 128, 0, host, 0, nullptr, nullptr));
  const SeenOperation operation = only_one();
  EXPECT_EQ(operation.copy->form, probe::CopyForm::rectangle);
  EXPECT_EQ(operation.copy->bytes, 48u);
  ASSERT_TRUE(operation.rectangle);
  EXPECT_THAT(operation.rectangle->origins[0], testing::ElementsAre(4, 1, 0));
  EXPECT_THAT(operation.rectangle->origins[1], testing::ElementsAre(8, 2, 0));
  EXPECT_THAT(operation.rectangle->region, testing::ElementsAre(16, 3, 1));
  EXPECT_THAT(operation.rectangle->pitches, testing::ElementsAre(64, 0, 128, 0));
}

TEST_F(OpenClDetailsTest, AFillHasItsPatternAndAnImageItsBytes) {
  cl_command_queue queue = setup_.queue();
  const cl_uint pattern = 0x01020304;
  XPU_CL(clEnqueueFillBuffer(queue, setup_.buffer(4096), &pattern, sizeof pattern, 0, 64, 0, nullptr, nullptr));
  const cl_image_format format{CL_RGBA, CL_UNORM_INT8};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = description.image_height = 16;
  cl_int error = CL_SUCCESS;
  cl_mem image = clCreateImage(setup_.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
  XPU_CL(error);
  char host[1024] = {};
  const std::size_t origin[3] = {}, region[] = {8, 4, 1};
  XPU_CL(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, host, 0, nullptr, nullptr));
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].copy->bytes, 64u);
  EXPECT_EQ(operations[0].pattern, std::string("\x04\x03\x02\x01"));
  EXPECT_EQ(operations[1].copy->form, probe::CopyForm::image);
  EXPECT_EQ(operations[1].copy->source_type, probe::MemoryType::image);
  EXPECT_EQ(operations[1].copy->bytes, 8u * 4u * 4u);
}

TEST_F(OpenClDetailsTest, ARefusedCallIsPublishedWithItsCodeAndNotCounted) {
  cl_command_queue queue = setup_.queue();
  const std::size_t global = 1;
  EXPECT_EQ(clEnqueueNDRangeKernel(queue, setup_.ready_kernel("tiny", 1), 7, nullptr, &global, nullptr, 0, nullptr, nullptr),
            CL_INVALID_WORK_DIMENSION);
  const SeenOperation operation = only_one();
  EXPECT_EQ(operation.submission->result, CL_INVALID_WORK_DIMENSION);
  EXPECT_EQ(operation.submission->queue_sequence, 0u);
  EXPECT_FALSE(operation.completion);
}

TEST_F(OpenClDetailsTest, ACallOnANullQueueIsPublishedAsRefused) {
  const std::size_t global = 1;
  EXPECT_EQ(clEnqueueNDRangeKernel(nullptr, setup_.ready_kernel("tiny", 1), 1, nullptr, &global, nullptr, 0, nullptr, nullptr),
            CL_INVALID_COMMAND_QUEUE);
  EXPECT_EQ(only_one().submission->result, CL_INVALID_COMMAND_QUEUE);
}

TEST_F(OpenClDetailsTest, ACommandWhoseDependencyFailedHasItsStatus) {
  cl_command_queue queue = setup_.queue();
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(setup_.context, &error);
  XPU_CL(error);
  const std::size_t global = 1;
  XPU_CL(clEnqueueNDRangeKernel(queue, setup_.ready_kernel("tiny", 1), 1, nullptr, &global, nullptr, 1, &gate, nullptr));
  XPU_CL(clSetUserEventStatus(gate, -5));
  clFinish(queue);
  const SeenOperation operation = only_one();
  ASSERT_TRUE(operation.completion);
  EXPECT_EQ(operation.completion->status, probe::CompletionStatus::failed);
  EXPECT_LT(operation.completion->native_status, 0);
  XPU_CL(clReleaseEvent(gate));
}

TEST_F(OpenClDetailsTest, AnOutOfOrderQueueIsSaidToBeOne) {
  cl_command_queue queue = setup_.queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  opencl_programs::launch(queue, setup_.ready_kernel("tiny", 1));
  XPU_CL(clFinish(queue));
  const SeenOperation operation = only_one();
  EXPECT_NE(operation.flags & probe::kOutOfOrderQueue, 0u);
  EXPECT_TRUE(subscriber_.objects(probe::ObjectKind::queue).at(operation.queue).is_out_of_order);
}

TEST_F(OpenClDetailsTest, AQueueIsDescribedAsTheProgramMadeIt) {
  cl_command_queue queue = setup_.queue();
  opencl_programs::launch(queue, setup_.ready_kernel("tiny", 1));
  XPU_CL(clFinish(queue));
  const probe::Id id = only_one().queue;
  EXPECT_EQ(subscriber_.objects(probe::ObjectKind::queue).at(id).properties, 0u);
  EXPECT_FALSE(subscriber_.objects(probe::ObjectKind::queue).at(id).is_destroyed);
  XPU_CL(clReleaseCommandQueue(queue));
  EXPECT_TRUE(subscriber_.objects(probe::ObjectKind::queue).at(id).is_destroyed);
}

TEST_F(OpenClDetailsTest, AKernelThatTakesTheHandleOfAnotherHasItsOwnName) {
  cl_command_queue queue = setup_.queue();
  for (int round = 0; round < 50; ++round) {
    cl_kernel kernel = setup_.kernel(round % 2 == 0 ? "tiny" : "empty");
    cl_mem data = setup_.buffer(64);
    const cl_int value = 1;
    XPU_CL(clSetKernelArg(kernel, 0, sizeof data, &data));
    if (round % 2 == 0) XPU_CL(clSetKernelArg(kernel, 1, sizeof value, &value));
    opencl_programs::launch(queue, kernel);
    XPU_CL(clFinish(queue));
    XPU_CL(clReleaseKernel(kernel));
    XPU_CL(clReleaseMemObject(data));
  }
  const auto kernels = subscriber_.objects(probe::ObjectKind::kernel);
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 50u);
  for (std::size_t round = 0; round < operations.size(); ++round) {
    EXPECT_EQ(kernels.at(operations[round].kernel).name, round % 2 == 0 ? "tiny" : "empty") << "in round " << round;
  }
}

TEST_F(OpenClDetailsTest, MemoryIsSummedPerContextAndBalancesAtTheEnd) {
  cl_mem first = setup_.buffer(1000);
  cl_mem second = setup_.buffer(500);
  XPU_CL(clRetainMemObject(second));
  XPU_CL(clReleaseMemObject(first));
  XPU_CL(clReleaseMemObject(second));
  XPU_CL(clReleaseMemObject(second));
  const auto events = subscriber_.memory_events();
  ASSERT_EQ(events.size(), 4u);
  std::vector<std::uint64_t> totals;
  for (const auto& event : events) totals.push_back(event.total_bytes);
  EXPECT_THAT(totals, testing::ElementsAre(1000, 1500, 500, 0));
  EXPECT_EQ(events[2].action, probe::MemoryAction::release);
  EXPECT_EQ(events[2].address, events[0].address);
}

TEST_F(OpenClDetailsTest, ASubBufferAllocatesNothing) {
  cl_mem buffer = setup_.buffer(4096);
  const cl_buffer_region region{0, 1024};
  cl_int error = CL_SUCCESS;
  cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  XPU_CL(error);
  XPU_CL(clReleaseMemObject(part));
  EXPECT_EQ(subscriber_.memory_events().size(), 1u);
  XPU_CL(clReleaseMemObject(buffer));
}

TEST_F(OpenClDetailsTest, ABlockingCallIsACommandAndAWait) {
  cl_command_queue queue = setup_.queue();
  char host[64] = {};
  XPU_CL(clEnqueueReadBuffer(queue, setup_.buffer(64), CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  EXPECT_EQ(finished().size(), 1u);
  const auto waits = subscriber_.wait_details();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].type, probe::WaitType::blocking_call);
  EXPECT_EQ(waits[0].queue, finished()[0].queue);
}

TEST_F(OpenClDetailsTest, EveryStampEqualsWhatTheProgramReads) {
  cl_command_queue queue = setup_.queue(CL_QUEUE_PROFILING_ENABLE);
  cl_event event = nullptr;
  opencl_programs::launch(queue, setup_.ready_kernel("tiny", 1), &event);
  XPU_CL(clFinish(queue));
  cl_ulong queued = 0, submit = 0, start = 0, end = 0;
  XPU_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof queued, &queued, nullptr));
  XPU_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_SUBMIT, sizeof submit, &submit, nullptr));
  XPU_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr));
  XPU_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr));
  const SeenOperation operation = only_one();
  EXPECT_NE(operation.flags & probe::kUserEvent, 0u);
  EXPECT_EQ(operation.completion->ticks.queued, queued);
  EXPECT_EQ(operation.completion->ticks.submit, submit);
  EXPECT_EQ(operation.completion->ticks.start, start);
  EXPECT_EQ(operation.completion->ticks.end, end);
  XPU_CL(clReleaseEvent(event));
}

TEST_F(OpenClDetailsTest, SharedMemoryIsFollowedFromAllocationToFree) {
  cl_command_queue queue = setup_.queue();
  void* block = clSVMAlloc(setup_.context, CL_MEM_READ_WRITE, 4096, 0);
  if (block == nullptr) GTEST_SKIP() << "the null driver has no shared memory";
  char host[64] = {};
  XPU_CL(clEnqueueSVMMemcpy(queue, CL_TRUE, static_cast<char*>(block) + 128, host, 64, 0, nullptr, nullptr));
  const SeenOperation copy = only_one();
  EXPECT_EQ(copy.copy->destination_type, probe::MemoryType::shared) << "also inside of the block";
  EXPECT_EQ(copy.copy->source_type, probe::MemoryType::host);
  XPU_CL(clEnqueueSVMFree(queue, 1, &block, nullptr, nullptr, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  const auto events = subscriber_.memory_events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].type, probe::MemoryType::shared);
  EXPECT_EQ(events[1].action, probe::MemoryAction::release);
  EXPECT_EQ(events[1].total_bytes, 0u);
}

TEST_F(OpenClDetailsTest, ObjectsOfAGraphicsApiAreAcquiredAndReleasedAsCommands) {
  cl_command_queue queue = setup_.queue();
  cl_mem buffer = setup_.buffer(64);
  if (clEnqueueAcquireGLObjects(queue, 1, &buffer, 0, nullptr, nullptr) != CL_SUCCESS) GTEST_SKIP() << "the null driver refuses";
  XPU_CL(clEnqueueReleaseGLObjects(queue, 1, &buffer, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].command, probe::Command::acquire_external);
  EXPECT_EQ(operations[1].command, probe::Command::release_external);
}

TEST_F(OpenClDetailsTest, ExtensionsThatAreNotRecordedLeaveAMark) {
  clGetExtensionFunctionAddressForPlatform(setup_.platform, "clEnqueueMemcpyINTEL");
  const auto marks = subscriber_.marks();
  // The null driver has no such function; asking for what does not exist is nothing to mark.
  EXPECT_TRUE(marks.empty());
}

TEST_F(OpenClDetailsTest, ASubDeviceIsAnObjectOfItsOwnAndEndsWithItsLastReference) {
  const cl_device_partition_property halves[] = {CL_DEVICE_PARTITION_EQUALLY, 8, 0};
  cl_device_id parts[2] = {};
  cl_uint count = 0;
  if (clCreateSubDevices(setup_.device, halves, 2, parts, &count) != CL_SUCCESS) GTEST_SKIP() << "the null driver has no sub-devices";
  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, parts, nullptr, nullptr, &error);
  XPU_CL(error);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, parts[0], nullptr, &error);
  XPU_CL(error);
  XPU_CL(clEnqueueMarkerWithWaitList(queue, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  const probe::Id device = subscriber_.objects(probe::ObjectKind::queue).at(only_one().queue).device;
  EXPECT_NE(device, 0u);
  XPU_CL(clReleaseCommandQueue(queue));
  XPU_CL(clReleaseContext(context));
  XPU_CL(clRetainDevice(parts[0]));
  XPU_CL(clReleaseDevice(parts[0]));
  EXPECT_FALSE(subscriber_.objects(probe::ObjectKind::device).at(device).is_destroyed);
  XPU_CL(clReleaseDevice(parts[0]));
  EXPECT_TRUE(subscriber_.objects(probe::ObjectKind::device).at(device).is_destroyed);
  XPU_CL(clReleaseDevice(parts[1]));
}

TEST_F(OpenClDetailsTest, ClockReadingsComeFromTheDriversTimer) {
  cl_command_queue queue = setup_.queue();
  opencl_programs::launch(queue, setup_.ready_kernel("tiny", 1));
  XPU_CL(clFinish(queue));
  finished();
  const auto readings = subscriber_.readings();
  ASSERT_FALSE(readings.empty());
  for (const auto& reading : readings) EXPECT_EQ(reading.method, probe::ClockMethod::device_timer);
}

TEST_F(OpenClDetailsTest, TheFirstCommandAfterAPauseHasAReadingBesideIt) {
  cl_command_queue queue = setup_.queue();
  cl_kernel kernel = setup_.ready_kernel("tiny", 1);
  opencl_programs::launch(queue, kernel);
  XPU_CL(clFinish(queue));
  finished();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the pause is the subject
  const std::uint64_t before_ns = now_ns();
  opencl_programs::launch(queue, kernel);
  const std::uint64_t after_ns = now_ns();
  const auto readings = subscriber_.readings();
  EXPECT_TRUE(std::any_of(readings.begin(), readings.end(), [&](const probe::ClockReading& reading) {
    return reading.host_before_ns >= before_ns && reading.host_after_ns <= after_ns;
  }));
  XPU_CL(clFinish(queue));
}

}  // namespace
}  // namespace xpu::publisher_tests
