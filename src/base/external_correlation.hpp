#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "xpu/base/export.hpp"

/// What a program calls the work that it is submitting: numbers of its own (of an operator, of a user's range), pushed and popped per
/// thread. What a thread submits while there is one on top of a family's stack is recorded with it.
namespace xpu::probe {

/// Families of such numbers, each with a stack of its own on every thread. The numbers are written to recordings.
enum class CorrelationFamily : std::uint32_t { unknown = 1, custom_0 = 2, custom_1 = 3, custom_2 = 4, custom_3 = 5 };
inline constexpr std::size_t kCorrelationFamilies = 5;

struct ExternalCorrelation {
  CorrelationFamily family = CorrelationFamily::unknown;
  std::uint64_t id = 0;
};
/// The top of each family's stack, as many as have one.
struct TopCorrelations {
  std::array<ExternalCorrelation, kCorrelationFamilies> all;
  std::size_t count = 0;
};

namespace internal {
// Initial-exec, as the probe's own: every launch of a recorded program looks at it.
XPU_EXPORT extern constinit thread_local std::uint32_t t_correlated_families __attribute__((tls_model("initial-exec")));
}  // namespace internal

/// False, and nothing is pushed, for a number that is no family and when there is no memory. Any thread; whether or not anybody listens.
XPU_EXPORT bool push_correlation(CorrelationFamily family, std::uint64_t id) noexcept;
/// What was pushed last on this thread; nothing when its stack is empty or there is no such family.
XPU_EXPORT std::optional<std::uint64_t> pop_correlation(CorrelationFamily family) noexcept;

/// Of this thread, the number of families whose stack is not empty.
inline std::size_t correlated_families() noexcept { return internal::t_correlated_families; }
XPU_EXPORT TopCorrelations top_correlations() noexcept;

}  // namespace xpu::probe
