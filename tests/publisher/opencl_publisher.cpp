#include "programs/support.hpp"
#include "publisher/publisher.hpp"

namespace xpu::publisher_tests {
namespace {

/// Never released, as the programs of the OpenCL tests leave theirs.
const opencl_programs::Setup& setup() {
  static const auto& setup = *new opencl_programs::Setup;
  return setup;
}

class OpenClQueue final : public PublishedQueue {
 public:
  OpenClQueue() : queue_(setup().queue()), kernel_(setup().ready_kernel("tiny", 1)) {}
  ~OpenClQueue() override {
    XPU_CL(clReleaseKernel(kernel_));
    XPU_CL(clReleaseCommandQueue(queue_));
  }

  void launch() override { opencl_programs::launch(queue_, kernel_); }
  void flush() override { XPU_CL(clFlush(queue_)); }
  void finish() override { XPU_CL(clFinish(queue_)); }

 private:
  cl_command_queue queue_;
  cl_kernel kernel_;
};

class OpenClPublisher final : public Publisher {
 public:
  std::unique_ptr<PublishedQueue> new_queue() override { return std::make_unique<OpenClQueue>(); }
  std::string launch_api() const override { return "clEnqueueNDRangeKernel"; }
  bool publishes_calls_inside_scopes() const override { return true; }
};

}  // namespace

std::unique_ptr<Publisher> make_publisher() { return std::make_unique<OpenClPublisher>(); }

}  // namespace xpu::publisher_tests
