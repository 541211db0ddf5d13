// What a stranger writes on the first day: the public headers only, linked with libxpu.so. That everything needed is exported shows at the
// link; the output shows that it is our library that answered.
#include <cstdio>
#include <string>
#include <utility>

#include "xpu/base/result.hpp"
#include "xpu/base/version.hpp"

namespace {

xpu::Result<int> half(int number) {
  if (number % 2 != 0) return xpu::Error{xpu::ErrorCode::invalid_argument, std::to_string(number) + " is odd, it must be even"};
  return number / 2;
}

xpu::Result<int> quarter(int number) {
  XPU_TRY_ASSIGN(const int once, half(number));
  return half(once);
}

}  // namespace

int main() {
  const xpu::Result<int> good = quarter(12);
  if (!good || *good != 3) return 1;
  const xpu::Result<int> bad = quarter(6);
  if (bad) return 1;
  std::printf("xpu %s\n%s\n", xpu::version(), to_string(bad.error()).c_str());
  try {
    quarter(2).value();
    return 1;
  } catch (const xpu::BadResult& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
