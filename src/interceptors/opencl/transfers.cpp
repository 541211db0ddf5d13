#include "interceptors/opencl/transfers.hpp"

#include <algorithm>

namespace xpu::interceptors::opencl {
namespace {

bool is_host(probe::MemoryType type) noexcept { return type == probe::MemoryType::host || type == probe::MemoryType::pinned; }

probe::CopyDirection direction_of(Place source, Place destination) noexcept {
  if (source.type == probe::MemoryType::unknown || destination.type == probe::MemoryType::unknown) return probe::CopyDirection::unknown;
  if (is_host(source.type)) return is_host(destination.type) ? probe::CopyDirection::host_to_host : probe::CopyDirection::host_to_device;
  return is_host(destination.type) ? probe::CopyDirection::device_to_host : probe::CopyDirection::device_to_device;
}

}  // namespace

Place in_memory(cl_mem handle) noexcept {
  const Memory* memory = memory_of(handle);
  return {reinterpret_cast<std::uintptr_t>(handle), memory != nullptr ? memory->type : probe::MemoryType::unknown};
}

Place in_shared_or_host(const void* address) noexcept {
  return {reinterpret_cast<std::uintptr_t>(address),
          shared_block_at(address) != nullptr ? probe::MemoryType::shared : probe::MemoryType::host};
}

std::uint64_t bytes_of(cl_mem handle) noexcept {
  const Memory* memory = memory_of(handle);
  return memory != nullptr ? memory->bytes : 0;
}

std::uint32_t element_bytes_of(cl_mem handle) noexcept {
  const Memory* memory = memory_of(handle);
  return memory != nullptr ? memory->element_bytes : 0;
}

std::uint64_t volume_of(const std::size_t* region) noexcept {
  return region == nullptr ? 0 : std::uint64_t{region[0]} * std::uint64_t{region[1]} * std::uint64_t{region[2]};
}

probe::Rectangle rectangle_of(const std::size_t* source_origin, const std::size_t* destination_origin, const std::size_t* region,
                              const std::array<std::size_t, 4>& pitches) noexcept {
  probe::Rectangle rectangle;
  if (source_origin != nullptr) std::copy_n(source_origin, 3, rectangle.origins[0]);
  if (destination_origin != nullptr) std::copy_n(destination_origin, 3, rectangle.origins[1]);
  if (region != nullptr) std::copy_n(region, 3, rectangle.region);
  std::copy_n(pitches.begin(), pitches.size(), rectangle.pitches);
  return rectangle;
}

probe::CopyDetail copy_between(Place source, Place destination, std::uint64_t bytes, probe::CopyForm form,
                               const probe::Rectangle* rectangle) noexcept {
  return {.bytes = bytes,
          .source = source.address,
          .destination = destination.address,
          .source_type = source.type,
          .destination_type = destination.type,
          .direction = direction_of(source, destination),
          .form = form,
          .rectangle = rectangle};
}

probe::CopyDetail fill_of(Place destination, const void* pattern, std::size_t pattern_bytes, std::uint64_t bytes) noexcept {
  constexpr std::size_t kLongestPattern = 128;  // of a long16; more is an error that the driver refuses
  return {.bytes = bytes,
          .destination = destination.address,
          .destination_type = destination.type,
          .form = probe::CopyForm::pattern,
          .pattern = pattern_bytes <= kLongestPattern ? pattern : nullptr,
          .pattern_bytes = pattern != nullptr && pattern_bytes <= kLongestPattern ? static_cast<std::uint32_t>(pattern_bytes) : 0};
}

probe::CopyDetail map_of(Place memory, const void* mapped, cl_map_flags flags, std::uint64_t bytes) noexcept {
  const Place host = in_host(mapped);
  return flags == CL_MAP_WRITE_INVALIDATE_REGION ? copy_between(host, memory, bytes) : copy_between(memory, host, bytes);
}

probe::CopyDetail migration_of(Place memory, bool to_host, std::uint64_t bytes) noexcept {
  return to_host ? copy_between(memory, in_host(nullptr), bytes) : copy_between(in_host(nullptr), memory, bytes);
}

}  // namespace xpu::interceptors::opencl
