#include "xpu/profiler/capabilities.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "base/probe.hpp"
#include "xpu/profiler/activity_kind.hpp"
#include "xpu/trace/live_capture.hpp"

namespace xpu::profiler {
namespace {

constexpr std::string_view kLayer = "libxpu_layer_opencl";

bool is_loaded(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  dlclose(handle);
  return true;
}

bool announces(probe::PublisherKind kind) { return (probe::announced_publishers() & kind) != 0; }

Capability session_itself() {
  Capability session{"a session in this process", true};
  if (std::string why = trace::why_no_capture(); !why.empty()) session = {session.what, false, std::move(why)};
  return session;
}

Capability work_of_runtime() {
  if (announces(probe::kRuntimePublishes)) return {"work of libxpu's runtime", true};
  return {"work of libxpu's runtime", true, "it has not been used yet"};
}

Capability work_of_opencl() {
  Capability opencl{"OpenCL used by others"};
  opencl.is_available = announces(probe::kOpenClLayerPublishes);
  if (opencl.is_available) return opencl;
  const char* layers = secure_getenv("OPENCL_LAYERS");
  if (layers == nullptr || std::string_view(layers).find(kLayer) == std::string_view::npos) {
    opencl.reason = "OPENCL_LAYERS does not name libxpu_layer_opencl.so, which the loader of OpenCL reads at the program's first call";
  } else if (is_loaded("libOpenCL.so.1")) {
    opencl.reason =
        "a session that is prepared before the program's first call of OpenCL will see it; if that call is past, nobody listened then, and "
        "the layer "
        "has stepped back for good";
  } else {
    opencl.reason = "OpenCL has not been used yet: a session that is prepared before the first call will see it";
  }
  return opencl;
}

Capability collecting(ActivityKind kind) {
  Capability capability{std::string(to_string(kind)), has_producer(kind)};
  switch (kind) {
    case ActivityKind::xpu_driver:
      capability = {capability.what, false, "calls of Level Zero are told apart, but nothing in libxpu intercepts them yet"};
      break;
    case ActivityKind::cpu_op:
    case ActivityKind::python_function:
    case ActivityKind::cpu_instant_event:
      capability.reason = "a framework has to transfer it to the session (Session::transfer_cpu_trace)";
      break;
    case ActivityKind::collective_comm: capability = {capability.what, false, "a framework has to tell of it, and none does yet"}; break;
    case ActivityKind::xpu_scope_profiler: capability = {capability.what, false, "nothing measures hardware counters yet"}; break;
    default:
      if (!capability.is_available) capability.reason = "it belongs to devices of another kind";
  }
  return capability;
}

}  // namespace

std::vector<Capability> capabilities() {
  std::vector<Capability> all = {session_itself(), work_of_runtime(), work_of_opencl()};
  for (unsigned number = 0; number < kActivityKinds; ++number) all.push_back(collecting(static_cast<ActivityKind>(number)));
  return all;
}

}  // namespace xpu::profiler
