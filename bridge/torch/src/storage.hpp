#pragma once

#include <c10/core/Storage.h>

#include <cstddef>

namespace xpu_torch {

/// Gives a storage of the device so many bytes, in the order of the current stream; what fits of the former ones is kept.
void resize_storage(const c10::Storage& storage, std::size_t bytes);

}  // namespace xpu_torch
