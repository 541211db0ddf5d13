#include <cstdio>
#include <vector>

#include "programs/transparency/transparency.hpp"

namespace xpu::opencl_programs::transparency {
namespace {

void print_queue(const char* label, cl_command_queue queue, cl_int created) {
  std::printf("queue %s: create %d", label, created);
  if (queue == nullptr) {
    std::printf(" null\n");
    return;
  }
  cl_command_queue_properties properties = 0;
  cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr);
  std::printf("; properties %d 0x%llx", code, static_cast<unsigned long long>(properties));

  std::size_t bytes = 99;
  code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 0, nullptr, &bytes);
  std::printf("; array %d size %zu [", code, bytes);
  if (code == CL_SUCCESS) {
    std::vector<cl_queue_properties> list(16, 0xAAAA);
    code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, list.size() * sizeof list[0], list.data(), &bytes);
    for (std::size_t i = 0; i < bytes / sizeof list[0]; ++i) std::printf(" 0x%llx", static_cast<unsigned long long>(list[i]));
    // Nothing behind the answer may be touched.
    std::printf(" ] %d beyond 0x%llx", code, static_cast<unsigned long long>(list[bytes / sizeof list[0]]));
    if (bytes != 0) {
      code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, bytes - 1, list.data(), nullptr);
      std::printf("; array in too little room %d", code);
    }
  }
  cl_uint references = 0;
  code = clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references, nullptr);
  std::printf("; references %d %u", code, references);
  code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, 1, &properties, nullptr);
  std::printf("; properties in too little room %d", code);
  bytes = 99;
  code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, 0, nullptr, &bytes);
  std::printf("; size of properties %d %zu", code, bytes);
  code = clGetCommandQueueInfo(queue, 0x9999, 0, nullptr, &bytes);
  std::printf("; unknown query %d; release %d\n", code, clReleaseCommandQueue(queue));
}

struct List {
  const char* label;
  std::vector<cl_queue_properties> values;
};

void print_with_properties(const Setup& setup) {
  constexpr cl_queue_properties kProfiling = CL_QUEUE_PROFILING_ENABLE;
  constexpr cl_queue_properties kOutOfOrder = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  const List lists[] = {
      {"empty", {0}},
      {"none", {CL_QUEUE_PROPERTIES, 0, 0}},
      {"profiling", {CL_QUEUE_PROPERTIES, kProfiling, 0}},
      {"out of order", {CL_QUEUE_PROPERTIES, kOutOfOrder, 0}},
      {"both", {CL_QUEUE_PROPERTIES, kOutOfOrder | kProfiling, 0}},
      {"twice", {CL_QUEUE_PROPERTIES, 0, CL_QUEUE_PROPERTIES, kProfiling, 0}},
      {"priority first", {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_HIGH_KHR, CL_QUEUE_PROPERTIES, 0, 0}},
      {"priority last", {CL_QUEUE_PROPERTIES, kProfiling, CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR, 0}},
      {"only priority", {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_MED_KHR, 0}},
      {"unknown key", {0x7777, 1, 0}},
      {"unknown bit", {CL_QUEUE_PROPERTIES, cl_queue_properties{1} << 40, 0}},
      {"value equal to a key", {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PROPERTIES, 0}},
  };
  cl_int error = 99;
  cl_command_queue queue = clCreateCommandQueueWithProperties(setup.context, setup.device, nullptr, &error);
  print_queue("null", queue, error);
  for (const List& list : lists) {
    const std::vector<cl_queue_properties> before = list.values;
    error = 99;
    queue = clCreateCommandQueueWithProperties(setup.context, setup.device, list.values.data(), &error);
    print_queue(list.label, queue, error);
    if (list.values != before) std::printf("the list itself was changed\n");
  }
  queue = clCreateCommandQueueWithProperties(setup.context, setup.device, nullptr, nullptr);
  print_queue("without error pointer", queue, 0);
  error = 99;
  queue = clCreateCommandQueueWithProperties(setup.context, nullptr, nullptr, &error);
  print_queue("without device", queue, error);
}

/// The extension that drivers before OpenCL 2.0 have: its queues do not come through the dispatch table.
void print_with_extension(const Setup& setup) {
  using Create = cl_command_queue (*)(cl_context, cl_device_id, const cl_queue_properties*, cl_int*);
  void* address = clGetExtensionFunctionAddressForPlatform(setup.platform, "clCreateCommandQueueWithPropertiesKHR");
  std::printf("clCreateCommandQueueWithPropertiesKHR: %s\n", address != nullptr ? "there" : "not there");
  if (address == nullptr) return;
  const auto create = reinterpret_cast<Create>(address);
  const cl_queue_properties none[] = {CL_QUEUE_PROPERTIES, 0, 0};
  cl_int error = 99;
  cl_command_queue queue = create(setup.context, setup.device, none, &error);
  print_queue("KHR none", queue, error);
  queue = create(setup.context, setup.device, nullptr, &error);
  print_queue("KHR null", queue, error);
}

}  // namespace

void print_queues(const Setup& setup) {
  print_with_properties(setup);
  for (const int bits : {0, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
    const auto properties = static_cast<cl_command_queue_properties>(bits);
    cl_int error = 99;
    cl_command_queue queue = clCreateCommandQueue(setup.context, setup.device, properties, &error);
    print_queue("of OpenCL 1.0", queue, error);
  }
  print_with_extension(setup);
  std::printf("unknown extension function: %d\n", clGetExtensionFunctionAddressForPlatform(setup.platform, "clNoSuchFunction") != nullptr);
}

}  // namespace xpu::opencl_programs::transparency
