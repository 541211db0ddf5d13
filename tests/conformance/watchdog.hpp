#pragma once

namespace xpu::conformance {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define XPU_CONFORMANCE_IS_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define XPU_CONFORMANCE_IS_SLOW 1
#endif
#endif

/// How long one test may take.
#if defined(XPU_CONFORMANCE_IS_SLOW)
inline constexpr int kTestLimitSeconds = 200;
#else
inline constexpr int kTestLimitSeconds = 20;
#endif

/// Prints the test that hangs and aborts the process, when one takes longer than the limit. Called once, before the tests. In the process
/// of a death test, which must not have a thread more than its test, the kernel's alarm ends it instead.
void start_watchdog(bool is_death_test_process);

}  // namespace xpu::conformance
