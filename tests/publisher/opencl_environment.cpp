#include <cstdlib>

#include "publisher/scripted_subscriber.hpp"

namespace xpu::publisher_tests {
namespace {

// Before the first OpenCL call: the layer asks when it is loaded whether anybody listens, and what for.
const bool g_prepared = [] {
  setenv("OCL_ICD_VENDORS", XPU_TEST_NULL_ICD_FOLDER, 1);
  setenv("OPENCL_LAYERS", XPU_TEST_LAYER, 1);
  ScriptedSubscriber::get();
  return true;
}();

}  // namespace
}  // namespace xpu::publisher_tests
