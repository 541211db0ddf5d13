// xpu_test_every_entry NAME | --list | --list-submitting
// Makes one valid call of a core entry point (and the few calls that it needs) and waits for everything that it submitted.
// Prints "RESULT entry=NAME rc=CODE submitted=N", N being all commands that the driver accepted. Exit code: 0, 77 when the device has no
// such feature, 1 when the call failed.

#include <cstdio>
#include <cstring>

#include "programs/entries/registry.hpp"

namespace {

using xpu::opencl_programs::entries::entry_names;
using xpu::opencl_programs::entries::find_call;

int list(bool submitting_only) {
  int missing = 0;
  for (const auto& entry : entry_names()) {
    if (submitting_only && !entry.submits) continue;
    std::printf("%.*s\n", static_cast<int>(entry.name.size()), entry.name.data());
    if (find_call(entry.name) == nullptr) {
      std::fprintf(stderr, "no call for %.*s\n", static_cast<int>(entry.name.size()), entry.name.data());
      missing = 1;
    }
  }
  return missing;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: xpu_test_every_entry NAME | --list | --list-submitting\n");
    return 2;
  }
  if (std::strcmp(argv[1], "--list") == 0) return list(false);
  if (std::strcmp(argv[1], "--list-submitting") == 0) return list(true);
  const auto* entry = find_call(argv[1]);
  if (entry == nullptr) {
    std::fprintf(stderr, "%s is not a core entry point\n", argv[1]);
    return 2;
  }
  xpu::opencl_programs::entries::Fixture fixture;
  const cl_int code = entry->call(fixture);
  if (fixture.submissions() != 0) XPU_CL(clFinish(fixture.queue()));
  std::printf("RESULT entry=%s rc=%d submitted=%u\n", argv[1], code, fixture.submissions());
  return code == CL_SUCCESS ? 0 : code == xpu::opencl_programs::entries::kUnsupported ? 77 : 1;
}
