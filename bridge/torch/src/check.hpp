#pragma once

#include <c10/util/Exception.h>

#include <utility>

#include "xpu/base/result.hpp"

namespace xpu_torch {

/// Throws what PyTorch has for this kind of failure: torch.OutOfMemoryError, NotImplementedError, else RuntimeError. The text is the
/// error's own.
[[noreturn]] void raise(const xpu::Error& error);

/// The value of a result, or the exception for its error.
template <typename T>
T check(xpu::Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}
inline void check(xpu::Result<> result) {
  if (!result) raise(result.error());
}

}  // namespace xpu_torch
