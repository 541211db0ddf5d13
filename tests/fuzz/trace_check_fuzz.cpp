#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "tests/fuzz/expect.hpp"
#include "xpu/profiler/trace_checker.hpp"

/// Any text is no trace, or is examined: findings are whole, in the order of the rules and the same when asked again, and what does not
/// hold is said of the file as it is.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace profiler = xpu::profiler;
  const std::string text(reinterpret_cast<const char*>(data), size);
  profiler::TraceChecker::Options options;
  options.places = 2;
  options.now_unix_ns = 1'800'000'000'000'000'000;
  const profiler::TraceChecker checker(options);
  std::istringstream input(text), same_input(text);
  const auto check = checker.check(input);
  if (!check) {
    XPU_FUZZ_EXPECT(check.error().code == xpu::ErrorCode::invalid_argument);
    return 0;
  }
  XPU_FUZZ_EXPECT(check->kernels <= check->device_slices && check->device_slices <= check->slices);
  XPU_FUZZ_EXPECT(check->device_slices_with_call <= check->device_slices_with_correlation);
  XPU_FUZZ_EXPECT(check->device_slices_with_correlation <= check->device_slices);
  XPU_FUZZ_EXPECT(check->calls_with_device_slice <= check->calls_with_correlation && check->calls_with_correlation <= check->calls);
  const profiler::TraceRule* last = nullptr;
  for (const profiler::TraceFinding& finding : check->findings) {
    XPU_FUZZ_EXPECT(finding.rule != nullptr && (last == nullptr || last < finding.rule));
    last = finding.rule;
    XPU_FUZZ_EXPECT(finding.count >= finding.places.size() && !finding.places.empty() && finding.places.size() <= options.places);
    for (const profiler::TracePlace& place : finding.places) XPU_FUZZ_EXPECT(!place.event || *place.event < check->events);
  }
  const auto again = checker.check(same_input);
  XPU_FUZZ_EXPECT(again.has_value() && again->findings.size() == check->findings.size());
  for (std::size_t i = 0; i < check->findings.size(); ++i) {
    XPU_FUZZ_EXPECT(again->findings[i].count == check->findings[i].count);
    XPU_FUZZ_EXPECT(again->findings[i].places[0].detail == check->findings[i].places[0].detail);
  }
  return 0;
}
