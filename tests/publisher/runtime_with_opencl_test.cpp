#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "programs/support.hpp"
#include "publisher/runtime_support.hpp"

/// Two publishers in one process: an OpenCL program, on the null driver with our layer, inside the runtime's streams.
namespace xpu::publisher_tests {
namespace {

std::size_t count_of(const std::vector<SeenOperation>& operations, const std::string& api) {
  return static_cast<std::size_t>(
      std::count_if(operations.begin(), operations.end(), [&](const SeenOperation& operation) { return operation.api == api; }));
}

class RuntimeWithOpenClTest : public RuntimeTest {
 protected:
  RuntimeWithOpenClTest() : queue_(setup().queue()), kernel_(setup().ready_kernel("tiny", 1)) { subscriber_.forget_events(); }
  ~RuntimeWithOpenClTest() override {
    XPU_CL(clReleaseKernel(kernel_));
    XPU_CL(clReleaseCommandQueue(queue_));
  }
  static const opencl_programs::Setup& setup() {
    static const auto& setup = *new opencl_programs::Setup;
    return setup;
  }

  cl_command_queue queue_;
  cl_kernel kernel_;
};

TEST_F(RuntimeWithOpenClTest, OpenClInsideAFunctionHasItsOwnOperationsExactlyOnce) {
  constexpr std::size_t kRounds = 20;
  const Stream stream = fresh_stream();
  for (std::size_t round = 0; round < kRounds; ++round) {
    const OperationInfo info{.name = "calls OpenCL", .short_and_independent = round % 2 == 0};
    stream.run(info, [this] { opencl_programs::launch(queue_, kernel_); }).value();
    stream.run_blocking(info, [this] { opencl_programs::launch(queue_, kernel_); }).value();
  }
  stream.synchronize().value();
  XPU_CL(clFinish(queue_));
  const auto operations = finished();
  EXPECT_EQ(count_of(operations, "xpu::Stream::run"), kRounds);
  EXPECT_EQ(count_of(operations, "xpu::Stream::run_blocking"), kRounds);
  EXPECT_EQ(count_of(operations, "clEnqueueNDRangeKernel"), 2 * kRounds);
  EXPECT_EQ(operations.size(), 4 * kRounds);
}

TEST_F(RuntimeWithOpenClTest, EachHasDevicesAndQueuesOfItsOwn) {
  const Stream stream = fresh_stream();
  stream.run_blocking({}, [this] { opencl_programs::launch(queue_, kernel_); }).value();
  XPU_CL(clFinish(queue_));
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_NE(operations[0].queue, operations[1].queue);
  EXPECT_NE(object(probe::ObjectKind::queue, operations[0].queue).device, object(probe::ObjectKind::queue, operations[1].queue).device);
  EXPECT_NE(operations[0].kernel, operations[1].kernel);
}

TEST_F(RuntimeWithOpenClTest, OpenClBesideTheRuntimeIsUntouchedByIt) {
  const Stream stream = fresh_stream();
  opencl_programs::launch(queue_, kernel_);
  stream.launch(tiny_kernel(), items(1), &number_).value();
  opencl_programs::launch(queue_, kernel_);
  stream.synchronize().value();
  XPU_CL(clFinish(queue_));
  const auto operations = finished();
  EXPECT_EQ(count_of(operations, "clEnqueueNDRangeKernel"), 2u);
  EXPECT_EQ(count_of(operations, "xpu::Stream::launch"), 1u);
}

TEST_F(RuntimeWithOpenClTest, WaitsInsideAFunctionAreItsOwn) {
  const Stream stream = fresh_stream();
  stream
      .run_blocking({},
                    [this] {
                      opencl_programs::launch(queue_, kernel_);
                      XPU_CL(clFinish(queue_));
                    })
      .value();
  EXPECT_THAT(subscriber_.waits(), testing::ElementsAre("clFinish", "xpu::Stream::run_blocking"));
  finished();
}

}  // namespace
}  // namespace xpu::publisher_tests
