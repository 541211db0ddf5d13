#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "xpu/base/export.hpp"

/// OpenCL as data: names and numbers, no calls and no headers of OpenCL. Everything here is constant and callable from any thread.
namespace xpu::api::opencl {

/// What a call does.
enum class EntryClass : std::uint8_t { submit, wait, create, destroy, query, other };

/// What the OpenCL interceptor does with a call; docs/opencl_entry_points.md says it in words.
enum class Treatment : std::uint8_t { command, wait, object, answer, call, passed };

struct EntryPoint {
  std::string_view name;   ///< "clEnqueueNDRangeKernel"
  std::string_view since;  ///< "1.0", or the extension that brings it.
  EntryClass entry_class;
  Treatment treatment;
  std::string_view reason;  ///< Why it is passed through; else mostly empty.
};

/// Every entry of the loaders' dispatch table, in its order.
XPU_EXPORT std::span<const EntryPoint> entry_points() noexcept;

/// The entry points of extensions that submit, create or destroy and that programs can reach by name only.
XPU_EXPORT std::span<const EntryPoint> extension_entry_points() noexcept;

/// Either kind by name; null when unknown.
XPU_EXPORT const EntryPoint* find_entry_point(std::string_view name) noexcept;

/// "CL_OUT_OF_RESOURCES" for -5; empty for a number without a name.
XPU_EXPORT std::string_view error_name(std::int32_t code) noexcept;

/// "CL_COMMAND_NDRANGE_KERNEL" for 0x11f0; empty for a number without a name.
XPU_EXPORT std::string_view command_name(std::uint32_t command_type) noexcept;

}  // namespace xpu::api::opencl
