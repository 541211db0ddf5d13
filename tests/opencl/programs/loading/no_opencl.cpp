// xpu_test_no_opencl [EXIT_CODE]
// A program that has nothing to do with OpenCL.

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  std::printf("no OpenCL here\n");
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
