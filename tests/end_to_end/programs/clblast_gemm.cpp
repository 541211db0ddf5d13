// A program of the kind that users have: twenty single-precision matrix products with CLBlast, checked against a plain loop.
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <clblast_c.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t kSize = 64;
constexpr int kRounds = 20;

void check(cl_int result, const char* what) {
  if (result == CL_SUCCESS) return;
  std::fprintf(stderr, "clblast_gemm: %s: %d\n", what, result);
  std::exit(1);
}

}  // namespace

int main() {
  cl_platform_id platform;
  cl_device_id device;
  cl_int error;
  check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  check(error, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
  check(error, "clCreateCommandQueue");

  std::vector<float> a(kSize * kSize), b(kSize * kSize), c(kSize * kSize, 0.0f);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 7) - 3.0f;
    b[i] = static_cast<float>(i % 5) - 2.0f;
  }
  const std::size_t bytes = a.size() * sizeof(float);
  cl_mem buffers[3];
  const float* contents[3] = {a.data(), b.data(), c.data()};
  for (int i = 0; i < 3; ++i) {
    buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
    check(error, "clCreateBuffer");
    check(clEnqueueWriteBuffer(queue, buffers[i], CL_TRUE, 0, bytes, contents[i], 0, nullptr, nullptr), "clEnqueueWriteBuffer");
  }
  for (int round = 0; round < kRounds; ++round) {
    check(static_cast<cl_int>(CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, kSize, kSize, kSize, 1.0f,
                                           buffers[0], 0, kSize, buffers[1], 0, kSize, 0.0f, buffers[2], 0, kSize, &queue, nullptr)),
          "CLBlastSgemm");
  }
  check(clFinish(queue), "clFinish");
  check(clEnqueueReadBuffer(queue, buffers[2], CL_TRUE, 0, bytes, c.data(), 0, nullptr, nullptr), "clEnqueueReadBuffer");

  double sum = 0;
  for (std::size_t row = 0; row < kSize; ++row) {
    for (std::size_t column = 0; column < kSize; ++column) {
      float expected = 0;
      for (std::size_t k = 0; k < kSize; ++k) expected += a[row * kSize + k] * b[k * kSize + column];
      const float got = c[row * kSize + column];
      if (std::fabs(got - expected) > 1e-3f * (1.0f + std::fabs(expected))) {
        std::fprintf(stderr, "clblast_gemm: [%zu][%zu] is %g, expected %g\n", row, column, static_cast<double>(got),
                     static_cast<double>(expected));
        return 1;
      }
      sum += static_cast<double>(got);
    }
  }
  std::printf("%d products of %zu x %zu, checksum %.0f\n", kRounds, kSize, kSize, sum);
  for (cl_mem buffer : buffers) clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
