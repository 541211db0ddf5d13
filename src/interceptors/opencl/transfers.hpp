#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/probe.hpp"
#include "interceptors/opencl/objects.hpp"

namespace xpu::interceptors::opencl {

/// One end of a transfer.
struct Place {
  std::uint64_t address = 0;  ///< Or native handle.
  probe::MemoryType type = probe::MemoryType::unknown;
};

Place in_memory(cl_mem handle) noexcept;
inline Place in_host(const void* address) noexcept { return {reinterpret_cast<std::uintptr_t>(address), probe::MemoryType::host}; }
/// Shared memory when `address` lies in a block of it, else the host's.
Place in_shared_or_host(const void* address) noexcept;

/// What a memory object allocated, 0 when unknown.
std::uint64_t bytes_of(cl_mem handle) noexcept;
/// Of one element of an image, 0 when unknown.
std::uint32_t element_bytes_of(cl_mem handle) noexcept;

/// Products and rectangles of what the program passed; arrays of three that may be null, which is the driver's to refuse.
std::uint64_t volume_of(const std::size_t* region) noexcept;
probe::Rectangle rectangle_of(const std::size_t* source_origin, const std::size_t* destination_origin, const std::size_t* region,
                              const std::array<std::size_t, 4>& pitches) noexcept;

// `rectangle` and `pattern` must outlive the detail.
probe::CopyDetail copy_between(Place source, Place destination, std::uint64_t bytes, probe::CopyForm form = probe::CopyForm::linear,
                               const probe::Rectangle* rectangle = nullptr) noexcept;
probe::CopyDetail fill_of(Place destination, const void* pattern, std::size_t pattern_bytes, std::uint64_t bytes) noexcept;
/// A map brings memory to the host, unless the host only writes to it.
probe::CopyDetail map_of(Place memory, const void* mapped, cl_map_flags flags, std::uint64_t bytes) noexcept;
probe::CopyDetail migration_of(Place memory, bool to_host, std::uint64_t bytes) noexcept;

}  // namespace xpu::interceptors::opencl
