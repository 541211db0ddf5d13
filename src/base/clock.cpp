#include "xpu/base/clock.hpp"

namespace xpu {

const char* to_string(ClockDomain domain) noexcept {
  switch (domain) {
    case ClockDomain::monotonic: return "monotonic";
    case ClockDomain::monotonic_raw: return "monotonic_raw";
    case ClockDomain::realtime: return "realtime";
    case ClockDomain::device: return "device";
    case ClockDomain::unknown: break;
  }
  return "unknown";
}

}  // namespace xpu
