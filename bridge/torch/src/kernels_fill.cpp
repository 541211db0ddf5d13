#include <ATen/core/Tensor.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/zero_ops.h>
#include <c10/util/complex.h>
#include <torch/library.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "elementwise.hpp"
#include "run_on_stream.hpp"

// One value in every element: a fill of bytes, where the elements are one run of them.
namespace xpu_torch {
namespace {

using at::Tensor;
using c10::Scalar;

// The bytes of one element of that value; nothing where they are not to be had from a number alone.
struct Pattern {
  alignas(16) std::array<std::byte, 16> bytes;
  std::size_t size = 0;
};
template <typename T>
std::optional<Pattern> pattern_of(T value) {
  Pattern pattern;
  pattern.size = sizeof(T);
  std::memcpy(pattern.bytes.data(), &value, sizeof(T));
  return pattern;
}
std::optional<Pattern> pattern_of(const Scalar& value, at::ScalarType type) {
  if (!is_real(value)) return std::nullopt;
  switch (type) {
    case at::ScalarType::Float: return pattern_of(value.to<float>());
    case at::ScalarType::Double: return pattern_of(value.to<double>());
    case at::ScalarType::BFloat16: return pattern_of(value.to<c10::BFloat16>());
    case at::ScalarType::Half: return pattern_of(value.to<c10::Half>());
    case at::ScalarType::Long: return pattern_of(value.to<std::int64_t>());
    case at::ScalarType::Int: return pattern_of(value.to<std::int32_t>());
    case at::ScalarType::Bool: return pattern_of(value.to<bool>());
    default: return std::nullopt;
  }
}

bool is_run_of_bytes(const Tensor& self) {
  return self.device().type() == kDeviceType && self.layout() == c10::Layout::Strided && self.is_non_overlapping_and_dense() &&
         !self.is_quantized() && !self.is_neg() && !self.is_conj();
}
void fill_bytes(const Tensor& self, std::span<const std::byte> pattern) {
  if (self.numel() == 0) return;
  check(current_stream(self.device().index()).fill_bytes(self.mutable_data_ptr(), pattern, self.nbytes()));
}

Tensor& fill(Tensor& self, const Scalar& value) {
  const std::optional<Pattern> pattern = is_run_of_bytes(self) ? pattern_of(value, self.scalar_type()) : std::nullopt;
  if (!pattern) return fall_back_to_cpu<at::_ops::fill__Scalar>(self, value);
  fill_bytes(self, std::span(pattern->bytes).first(pattern->size));
  return self;
}
Tensor& zero(Tensor& self) {
  if (!is_run_of_bytes(self)) return fall_back_to_cpu<at::_ops::zero_>(self);
  constexpr std::byte nothing{0};
  fill_bytes(self, {&nothing, 1});
  return self;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("fill_.Scalar", &fill);
  library.impl("zero_", &zero);
}

}  // namespace xpu_torch
