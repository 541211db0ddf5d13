#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <optional>

/// Tensors and numbers as a launch carries them: plain bytes, from which PyTorch's own are made where the kernel runs.
namespace xpu_torch {

/// Where a tensor's elements lie. Undefined (an optional tensor that is not there) when `type` is.
struct Operand {
  static constexpr std::int64_t kMostDimensions = 6;

  void* elements;
  alignas(8) std::byte number[8];  ///< The element itself, where it is a number that became a tensor on the way.
  std::int64_t sizes[kMostDimensions], strides[kMostDimensions];
  at::ScalarType type;
  std::int8_t dimensions;
  bool is_number;
};

/// Whether the tensor can be an operand: dense layout, few dimensions, elements that mean what they are.
inline bool can_be_operand(const at::Tensor& tensor) {
  return tensor.dim() <= Operand::kMostDimensions && tensor.layout() == c10::Layout::Strided && !tensor.is_quantized() &&
         !tensor.is_neg() && !tensor.is_conj();
}
/// A number that PyTorch has made a tensor of: it lies in the host's memory, has no dimension, and takes the type of what it meets.
inline bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number() && tensor.device().is_cpu() && !tensor.is_complex();
}
/// Of a tensor that is read, and of one that is written to.
Operand operand_of(const at::Tensor& tensor);
Operand operand_of(const std::optional<at::Tensor>& tensor);
Operand result_operand_of(const at::Tensor& tensor);
/// The value of a number (`is_number`).
double value_of(const at::Tensor& number);

/// A real number with its kind.
struct Number {
  enum class Kind : std::uint8_t { floating, integral, boolean } kind;
  double floating;
  std::int64_t integral;

  c10::Scalar scalar() const {
    if (kind == Kind::floating) return floating;
    return kind == Kind::integral ? c10::Scalar(integral) : c10::Scalar(integral != 0);
  }
};
inline bool is_real(const c10::Scalar& scalar) { return !scalar.isComplex() && !scalar.isSymbolic(); }
inline Number number_of(const c10::Scalar& scalar) {
  if (scalar.isFloatingPoint()) return {Number::Kind::floating, scalar.toDouble(), 0};
  return {scalar.isBoolean() ? Number::Kind::boolean : Number::Kind::integral, 0, scalar.toLong()};
}

/// CPU tensors over operands, for the length of one kernel: they are the thread's, used again and again, so that one costs no allocation.
/// Autograd does not look at what is done with them. One lives on the stack of the function that runs the kernel; they nest.
class CpuTensors {
 public:
  CpuTensors();
  ~CpuTensors();
  CpuTensors(const CpuTensors&) = delete;
  CpuTensors& operator=(const CpuTensors&) = delete;

  /// Good until this object goes, and not to be kept.
  at::Tensor& of(const Operand& operand);

 private:
  const std::size_t begin_;
  const c10::impl::ExcludeDispatchKeyGuard without_autograd_;
};

}  // namespace xpu_torch
