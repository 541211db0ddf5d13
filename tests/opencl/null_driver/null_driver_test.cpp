// The null driver through the loader, as programs use it. Each test runs in a process of its own with the environment that CTest sets;
// tests of faults look at one variable to know what to expect.

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "null_driver/null_clock.hpp"
#include "programs/support.hpp"

namespace xpu::null_driver {
namespace {

using opencl_programs::launch;
using OpenCl = opencl_programs::Setup;  // GoogleTest reserves the name Setup inside a test

constexpr std::uint64_t kDurationNs = 1'000'000;  // XPU_NULL_DURATION_NS of these tests

struct Times {
  cl_ulong queued = 0, submit = 0, start = 0, end = 0;
};

cl_int read_times(cl_event event, Times& times) {
  cl_int code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, 8, &times.queued, nullptr);
  if (code == CL_SUCCESS) code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_SUBMIT, 8, &times.submit, nullptr);
  if (code == CL_SUCCESS) code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 8, &times.start, nullptr);
  if (code == CL_SUCCESS) code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &times.end, nullptr);
  return code;
}

Times times_of(cl_event event) {
  Times times;
  EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
  EXPECT_EQ(read_times(event, times), CL_SUCCESS);
  return times;
}

cl_int status_of(cl_event event) {
  cl_int status = 99;
  EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), CL_SUCCESS);
  return status;
}

class NullDriverTest : public testing::Test {
 protected:
  cl_event launch_one(cl_command_queue queue, const std::vector<cl_event>& wait_list = {}) {
    const std::size_t one = 1;
    cl_event event = nullptr;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, static_cast<cl_uint>(wait_list.size()),
                                     wait_list.empty() ? nullptr : wait_list.data(), &event),
              CL_SUCCESS);
    return event;
  }
  cl_event user_event() {
    cl_int error = CL_SUCCESS;
    cl_event event = clCreateUserEvent(setup.context, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    return event;
  }

  OpenCl setup;
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  cl_command_queue in_order = setup.queue(CL_QUEUE_PROFILING_ENABLE);
  cl_command_queue out_of_order = setup.queue(CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
};

TEST_F(NullDriverTest, InOrderCommandsFollowOneAnotherWithoutGaps) {
  std::vector<Times> times;
  std::vector<cl_event> events;
  for (int i = 0; i < 5; ++i) events.push_back(launch_one(in_order));
  for (cl_event event : events) times.push_back(times_of(event));
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_LE(times[i].queued, times[i].submit);
    EXPECT_LE(times[i].submit, times[i].start);
    EXPECT_EQ(times[i].end, times[i].start + kDurationNs);
    const cl_ulong previous_end = i > 0 ? times[i - 1].end : 0;
    EXPECT_EQ(times[i].start, std::max(previous_end, times[i].submit));
  }
}

TEST_F(NullDriverTest, OutOfOrderCommandsOverlapUntilABarrier) {
  cl_event first = launch_one(out_of_order);
  cl_event second = launch_one(out_of_order, {first}), third = launch_one(out_of_order, {first}), barrier = nullptr, marker = nullptr;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(out_of_order, 0, nullptr, &marker), CL_SUCCESS);
  ASSERT_EQ(clEnqueueBarrierWithWaitList(out_of_order, 0, nullptr, &barrier), CL_SUCCESS);
  cl_event behind = launch_one(out_of_order);
  const Times a = times_of(second), b = times_of(third);
  const cl_ulong first_end = times_of(first).end;
  EXPECT_EQ(a.start, std::max(first_end, a.submit));
  EXPECT_EQ(b.start, std::max(first_end, b.submit)) << "the third does not wait for the second";
  EXPECT_GE(times_of(marker).start, std::max(a.end, b.end)) << "a marker without list waits for all";
  EXPECT_GE(times_of(behind).start, times_of(barrier).end);
}

TEST_F(NullDriverTest, ACommandStartsAfterItsWaitList) {
  cl_event first = launch_one(in_order);
  cl_event second = launch_one(out_of_order, {first});
  EXPECT_GE(times_of(second).start, times_of(first).end);
}

TEST_F(NullDriverTest, ACommandBehindAUserEventHasNoTimesBeforeItIsSet) {
  cl_event gate = user_event();
  cl_event gated = launch_one(in_order, {gate});
  cl_event behind = launch_one(in_order);
  cl_event elsewhere = launch_one(out_of_order, {behind});
  cl_event free = launch_one(out_of_order);
  EXPECT_EQ(status_of(gate), CL_SUBMITTED);
  EXPECT_EQ(status_of(gated), CL_QUEUED);
  EXPECT_EQ(status_of(behind), CL_QUEUED) << "an in-order queue stands still";
  EXPECT_EQ(status_of(elsewhere), CL_QUEUED);
  EXPECT_EQ(clWaitForEvents(1, &free), CL_SUCCESS) << "nothing gates it";
  const std::uint64_t opened_ns = host_now_ns();
  EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_INVALID_OPERATION);
  const Times a = times_of(gated), b = times_of(behind), c = times_of(elsewhere);
  EXPECT_LT(a.queued, opened_ns);
  EXPECT_GE(a.submit, opened_ns);
  EXPECT_GE(b.start, a.end);
  EXPECT_GE(c.start, b.end);
}

TEST_F(NullDriverTest, FinishWaitsForAGateThatAnotherThreadOpens) {
  cl_event gate = user_event();
  cl_event gated = launch_one(in_order, {gate});
  std::thread opener([&] { clSetUserEventStatus(gate, CL_COMPLETE); });
  EXPECT_EQ(clFinish(in_order), CL_SUCCESS);
  EXPECT_EQ(status_of(gated), CL_COMPLETE);
  opener.join();
}

TEST_F(NullDriverTest, AFailedDependencyFailsTheCommandAndHasNoTimes) {
  cl_event gate = user_event();
  cl_event gated = launch_one(in_order, {gate});
  cl_event next = launch_one(in_order);
  EXPECT_EQ(clSetUserEventStatus(gate, -99), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, &gated), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_LT(status_of(gated), 0);
  Times times;
  EXPECT_EQ(read_times(gated, times), CL_PROFILING_INFO_NOT_AVAILABLE);
  EXPECT_EQ(clWaitForEvents(1, &next), CL_SUCCESS) << "order alone does not hand on a failure";
  cl_event late = launch_one(in_order, {gated});
  EXPECT_EQ(clWaitForEvents(1, &late), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}

void CL_CALLBACK add_one(void* argument) { ++**static_cast<int**>(argument); }

TEST_F(NullDriverTest, ANativeKernelRunsOnceItsGateIsOpen) {
  int calls = 0;
  int* argument = &calls;
  cl_event gate = user_event();
  ASSERT_EQ(clEnqueueNativeKernel(in_order, add_one, &argument, sizeof argument, 0, nullptr, nullptr, 1, &gate, nullptr), CL_SUCCESS);
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clFinish(in_order), CL_SUCCESS);
  EXPECT_EQ(calls, 1);
}

struct Callbacks {
  std::atomic<int> statuses[4] = {-1, -1, -1, -1};
  static void CL_CALLBACK arrived(cl_event, cl_int status, void* slot) { static_cast<std::atomic<int>*>(slot)->store(status); }
  bool all_arrived() const { return statuses[0] >= 0 && statuses[1] >= 0 && statuses[2] >= 0 && statuses[3] >= 0; }
};

TEST_F(NullDriverTest, CallbacksArriveForEveryStateAlsoBehindAGate) {
  Callbacks callbacks;
  cl_event gate = user_event();
  cl_event gated = launch_one(in_order, {gate});
  for (const cl_int status : {CL_COMPLETE, CL_RUNNING, CL_SUBMITTED}) {
    ASSERT_EQ(clSetEventCallback(gated, status, Callbacks::arrived, &callbacks.statuses[status]), CL_SUCCESS);
  }
  ASSERT_EQ(clSetEventCallback(gate, CL_COMPLETE, Callbacks::arrived, &callbacks.statuses[3]), CL_SUCCESS);
  EXPECT_EQ(callbacks.statuses[CL_COMPLETE], -1);
  clSetUserEventStatus(gate, CL_COMPLETE);
  clReleaseEvent(gated);
  while (!callbacks.all_arrived()) std::this_thread::yield();
  EXPECT_EQ(callbacks.statuses[CL_COMPLETE], CL_COMPLETE);
  EXPECT_EQ(callbacks.statuses[CL_RUNNING], CL_RUNNING);
  EXPECT_EQ(callbacks.statuses[CL_SUBMITTED], CL_SUBMITTED);
  EXPECT_EQ(callbacks.statuses[3], CL_COMPLETE);
}

TEST_F(NullDriverTest, MapsGiveTheMemoryOfTheObjectAndOfItsPart) {
  cl_mem whole = setup.buffer(1024);
  const cl_buffer_region region{256, 256};
  cl_int error = CL_SUCCESS;
  cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  auto* bytes = static_cast<char*>(clEnqueueMapBuffer(in_order, whole, CL_TRUE, CL_MAP_WRITE, 0, 1024, 0, nullptr, nullptr, &error));
  ASSERT_NE(bytes, nullptr);
  bytes[256] = 42;
  auto* in_part = static_cast<char*>(clEnqueueMapBuffer(in_order, part, CL_TRUE, CL_MAP_READ, 0, 256, 0, nullptr, nullptr, &error));
  ASSERT_NE(in_part, nullptr);
  EXPECT_EQ(in_part[0], 42);
  EXPECT_EQ(clEnqueueUnmapMemObject(in_order, part, in_part, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(clEnqueueUnmapMemObject(in_order, whole, bytes, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(clEnqueueUnmapMemObject(in_order, whole, bytes, 0, nullptr, nullptr), CL_INVALID_VALUE) << "it is not mapped any more";
}

// With skew, drift and tick: the truth of every stamp can be computed, and lies inside what the host saw.
TEST_F(NullDriverTest, EveryStampIsTheDeviceTimeOfATrueHostTime) {
  const ClockParameters clock = clock_parameters_from_environment();
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before_ns = host_now_ns();
    cl_event event = launch_one(in_order);
    const std::uint64_t after_ns = host_now_ns();
    const Times times = times_of(event);
    const std::uint64_t done_ns = host_now_ns();
    const HostRange queued = host_from_device(clock, times.queued);
    const HostRange end = host_from_device(clock, times.end);
    ASSERT_FALSE(queued.empty() || end.empty());
    EXPECT_LE(before_ns, queued.last_ns);
    EXPECT_GE(after_ns, queued.first_ns);
    EXPECT_GE(done_ns, end.first_ns);
    EXPECT_EQ(times.queued % clock.tick_ns, 0u);
  }
  cl_ulong device_ns = 0, host_ns = 0;
  ASSERT_EQ(clGetDeviceAndHostTimer(setup.device, &device_ns, &host_ns), CL_SUCCESS);
  EXPECT_EQ(device_ns, device_from_host(clock, host_ns));
  std::size_t tick_ns = 0;
  XPU_CL(clGetDeviceInfo(setup.device, CL_DEVICE_PROFILING_TIMER_RESOLUTION, sizeof tick_ns, &tick_ns, nullptr));
  EXPECT_EQ(tick_ns, clock.tick_ns);
}

class NullDriverFaultTest : public NullDriverTest {};

TEST_F(NullDriverFaultTest, NoProfiling) {
  cl_event event = launch_one(in_order);
  Times times;
  EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
  EXPECT_EQ(read_times(event, times), CL_PROFILING_INFO_NOT_AVAILABLE);
}

TEST_F(NullDriverFaultTest, ZeroTimes) {
  const Times times = times_of(launch_one(in_order));
  EXPECT_EQ(times.queued, 0u);
  EXPECT_EQ(times.end, 0u);
}

TEST_F(NullDriverFaultTest, Backward) {
  const Times times = times_of(launch_one(in_order));
  EXPECT_EQ(times.end, times.start - 1000);
}

TEST_F(NullDriverFaultTest, NoTimer) {
  cl_ulong device_ns = 0, host_ns = 0;
  EXPECT_EQ(clGetDeviceAndHostTimer(setup.device, &device_ns, &host_ns), CL_INVALID_OPERATION);
  EXPECT_EQ(clGetHostTimer(setup.device, &host_ns), CL_INVALID_OPERATION);
}

TEST_F(NullDriverFaultTest, FailEnqueue) {  // =3
  const std::size_t one = 1;
  for (int i = 1; i <= 9; ++i) {
    const cl_int code = clEnqueueNDRangeKernel(in_order, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
    EXPECT_EQ(code, i % 3 == 0 ? CL_OUT_OF_RESOURCES : CL_SUCCESS) << i;
  }
}

TEST_F(NullDriverFaultTest, FailCommand) {  // =2
  cl_event good = launch_one(in_order), bad = launch_one(in_order);
  EXPECT_EQ(clFinish(in_order), CL_SUCCESS);
  EXPECT_EQ(status_of(good), CL_COMPLETE);
  EXPECT_EQ(status_of(bad), -5);
  Times times;
  EXPECT_EQ(read_times(bad, times), CL_PROFILING_INFO_NOT_AVAILABLE);
}

TEST_F(NullDriverFaultTest, NullEvent) {  // =2
  EXPECT_NE(launch_one(in_order), nullptr);
  EXPECT_EQ(launch_one(in_order), nullptr);
  EXPECT_NE(launch_one(in_order), nullptr);
}

TEST(NullDriverQueueFaultTest, RefuseProfilingQueues) {
  const OpenCl setup;
  const cl_queue_properties profiling[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_int error = CL_SUCCESS;
  EXPECT_EQ(clCreateCommandQueueWithProperties(setup.context, setup.device, profiling, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_QUEUE_PROPERTIES);
  EXPECT_NE(clCreateCommandQueueWithProperties(setup.context, setup.device, nullptr, &error), nullptr);
}

TEST_F(NullDriverFaultTest, Late) {  // =1
  cl_event event = launch_one(in_order);
  EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
  Times times;
  while (read_times(event, times) == CL_PROFILING_INFO_NOT_AVAILABLE) std::this_thread::yield();
  EXPECT_GE(host_now_ns(), times.end + 1'000'000) << "the times were there too early";
}

TEST_F(NullDriverFaultTest, Step) {  // =5000000000@2
  using StepTime = cl_ulong (*)();
  const auto step_time = reinterpret_cast<StepTime>(clGetExtensionFunctionAddressForPlatform(setup.platform, "clNullStepHostTimeXPU"));
  ASSERT_NE(step_time, nullptr);
  ClockParameters clock = clock_parameters_from_environment();
  const Times before = times_of(launch_one(in_order));
  EXPECT_EQ(step_time(), ClockParameters::kNoStep);
  const Times after = times_of(launch_one(in_order));
  clock.step_ns = 5'000'000'000;
  clock.step_at_host_ns = step_time();
  ASSERT_NE(clock.step_at_host_ns, ClockParameters::kNoStep);
  EXPECT_GT(after.end, before.end + 5'000'000'000);
  EXPECT_FALSE(host_from_device(clock, after.end, true).empty());
}

}  // namespace
}  // namespace xpu::null_driver
