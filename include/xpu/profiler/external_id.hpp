#pragma once

#include <cstdint>

namespace xpu::profiler {

/// Families of numbers by which a program names its own work; each has a stack of its own on every thread.
enum class CorrelationFamily : std::uint32_t { unknown = 1, custom_0 = 2, custom_1 = 3, custom_2 = 4, custom_3 = 5 };

/// Whose numbers are whose, as PyTorch has it.
inline constexpr CorrelationFamily kOperationFamily = CorrelationFamily::custom_0;
inline constexpr CorrelationFamily kUserAnnotationFamily = CorrelationFamily::custom_1;

/// A number that the program gave its own work; see `ActivityApi::push_correlation_id`.
struct ExternalId {
  std::uint64_t id = 0;
  std::uint32_t family = 0;  ///< CorrelationFamily.
  bool operator==(const ExternalId&) const = default;
};

}  // namespace xpu::profiler
