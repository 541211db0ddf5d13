#include "runtime/launch_check.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/state.hpp"

namespace xpu {

namespace runtime {
namespace {

const char* name_of(ArgumentType type) {
  switch (type) {
    case ArgumentType::none: return "void";
    case ArgumentType::boolean: return "bool";
    case ArgumentType::i8: return "i8";
    case ArgumentType::u8: return "u8";
    case ArgumentType::i16: return "i16";
    case ArgumentType::u16: return "u16";
    case ArgumentType::i32: return "i32";
    case ArgumentType::u32: return "u32";
    case ArgumentType::i64: return "i64";
    case ArgumentType::u64: return "u64";
    case ArgumentType::f32: return "f32";
    case ArgumentType::f64: return "f64";
    case ArgumentType::pointer: return "pointer";
    case ArgumentType::structure: return "structure";
  }
  return "unknown";
}

std::string describe_type(ArgumentType type, ArgumentType pointee, std::uint32_t size_bytes) {
  if (type == ArgumentType::pointer) return pointee == ArgumentType::none ? "pointer" : fmt::format("pointer to {}", name_of(pointee));
  if (type == ArgumentType::structure) return fmt::format("structure of {} bytes", size_bytes);
  return name_of(type);
}

std::string describe_place(const KernelState& kernel, std::size_t index) {
  const char* name = kernel.kernel->info().arguments[index].name;
  return fmt::format("argument {}{} of kernel '{}'", index, *name == '\0' ? "" : fmt::format(" '{}'", name), kernel.kernel->info().name);
}

[[gnu::cold, gnu::noinline]] Error wrong_type(const KernelState& kernel, std::size_t index, const ArgumentValue& given) {
  const KernelArgument& wanted = kernel.kernel->info().arguments[index];
  return {ErrorCode::invalid_argument, fmt::format("{} is a {}, but a {} was given", describe_place(kernel, index), to_string(wanted),
                                                   describe_type(given.type, given.pointee, given.size_bytes))};
}

/// Exactly the type, except that a pointer to void fits every pointer and the other way round.
bool fits(const KernelArgument& wanted, const ArgumentValue& given, bool has_types) noexcept {
  if (given.size_bytes != wanted.size_bytes) return false;
  if (!has_types) return true;
  if (given.type != wanted.type) return false;
  return given.type != ArgumentType::pointer || given.pointee == wanted.pointee || given.pointee == ArgumentType::none ||
         wanted.pointee == ArgumentType::none;
}

[[gnu::cold, gnu::noinline]] Error wrong_count(const KernelState& kernel, std::size_t given) {
  const hal::KernelInfo& info = kernel.kernel->info();
  return {ErrorCode::invalid_argument, fmt::format("kernel '{}' takes {} argument{}, but {} {} given", info.name, info.arguments.size(),
                                                   info.arguments.size() == 1 ? "" : "s", given, given == 1 ? "was" : "were")};
}

template <typename... Values>
[[gnu::cold, gnu::noinline]] Error wrong_geometry(const KernelState& kernel, fmt::format_string<Values...> format, Values&&... values) {
  return {ErrorCode::invalid_argument,
          fmt::format("launch of kernel '{}': ", kernel.kernel->info().name) + fmt::format(format, std::forward<Values>(values)...)};
}

Result<> check_local(const KernelState& kernel, const DeviceProperties& device, const Geometry& geometry) {
  const hal::KernelInfo& info = kernel.kernel->info();
  std::uint64_t items = 1;
  for (std::uint32_t dimension = 0; dimension < geometry.dimensions; ++dimension) {
    const std::uint64_t local = geometry.local[dimension];
    if (local == 0) {
      return wrong_geometry(kernel, "the work-group size of dimension {} is 0; give all of them, or none", dimension);
    }
    const std::uint64_t limit = device.max_work_item_sizes[dimension];
    if (limit != 0 && local > limit) {
      return wrong_geometry(kernel, "the work-group size of dimension {} is {}, the device takes at most {}", dimension, local, limit);
    }
    items *= local;  // each factor is at most 2^32 where a device has a limit; the product is looked at after each
    const std::uint64_t most = info.max_work_group_size != 0 ? info.max_work_group_size : device.max_work_group_size;
    if (most != 0 && items > most) {
      return wrong_geometry(kernel, "a work-group of {} items was asked for, at most {} are possible", items, most);
    }
  }
  return {};
}

Result<> check_groups(const KernelState& kernel, const DeviceProperties& device, const Geometry& geometry) {
  for (std::uint32_t dimension = 0; dimension < geometry.dimensions; ++dimension) {
    const std::uint64_t limit = device.max_group_count[dimension];
    if (limit == 0) continue;
    const std::uint64_t local = geometry.local[dimension], global = geometry.global[dimension];
    const std::uint64_t groups = global / local + (global % local != 0 ? 1 : 0);
    if (groups > limit)
      return wrong_geometry(kernel, "{} work-groups in dimension {}, the device takes at most {}", groups, dimension, limit);
  }
  return {};
}

Result<> check_geometry(const KernelState& kernel, const DeviceProperties& device, const Geometry& geometry) {
  if (geometry.dimensions < 1 || geometry.dimensions > 3) [[unlikely]] {
    return wrong_geometry(kernel, "the index space has {} dimensions, it must have 1 to 3", geometry.dimensions);
  }
  for (std::uint32_t dimension = 0; dimension < 3; ++dimension) {
    const std::uint64_t global = geometry.global[dimension], offset = geometry.offset[dimension];
    if (dimension >= geometry.dimensions) {
      if (global > 1 || offset != 0 || geometry.local[dimension] > 1) [[unlikely]] {
        return wrong_geometry(kernel, "dimension {} has {} items, a group of {} and an offset of {}, but there are {} dimensions",
                              dimension, global, geometry.local[dimension], offset, geometry.dimensions);
      }
      continue;
    }
    if (global == 0) [[unlikely]]
      return wrong_geometry(kernel, "dimension {} has 0 items, it must have at least 1", dimension);
    if (offset + global < offset) [[unlikely]] {
      return wrong_geometry(kernel, "dimension {} has an offset of {} and {} items, together they pass 2^64", dimension, offset, global);
    }
  }
  const KernelFacts& facts = kernel.kernel->info().facts;
  if (facts.required_local[0] != 0) [[unlikely]] {
    for (std::uint32_t dimension = 0; dimension < geometry.dimensions; ++dimension) {
      if (geometry.local[dimension] != 0 && geometry.local[dimension] != facts.required_local[dimension]) {
        return wrong_geometry(kernel, "the work-group size of dimension {} is {}, the kernel takes {} only", dimension,
                              geometry.local[dimension], facts.required_local[dimension]);
      }
    }
  }
  if ((geometry.local[0] | geometry.local[1] | geometry.local[2]) == 0) return {};
  XPU_TRY(check_local(kernel, device, geometry));
  return check_groups(kernel, device, geometry);
}

Result<> check_rest_of_launch(const KernelState& kernel, const DeviceState& device, const Geometry& geometry,
                              std::uint32_t local_memory_bytes) {
  XPU_TRY(check_geometry(kernel, device.properties, geometry));
  const std::uint64_t local_bytes = std::uint64_t{local_memory_bytes} + kernel.local_memory_bytes;
  if (local_bytes > device.properties.local_memory_bytes) [[unlikely]] {
    return wrong_geometry(kernel, "{} bytes of local memory are needed, the device has {}", local_bytes,
                          device.properties.local_memory_bytes);
  }
  return {};
}

/// A row of items whose groups the driver chooses, and no local memory: nothing of it can be wrong.
bool is_plain(const KernelState& kernel, const Geometry& geometry, std::uint32_t local_memory_bytes) noexcept {
  return geometry.dimensions == 1 && geometry.global[0] != 0 && (geometry.global[1] | geometry.global[2]) <= 1 &&
         (geometry.local[0] | geometry.local[1] | geometry.local[2] | geometry.offset[0] | geometry.offset[1] | geometry.offset[2] |
          local_memory_bytes | kernel.local_memory_bytes) == 0 &&
         kernel.takes_any_group_size;
}

std::uint64_t front_word(const ArgumentValue& value) noexcept {
  static_assert(offsetof(ArgumentValue, value) == sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

}  // namespace

KernelState::KernelState(std::shared_ptr<const hal::Kernel> of_driver, const DeviceState* its_device, probe::Id id)
    : kernel(std::move(of_driver)), device(its_device), probe_id(id) {
  const hal::KernelInfo& info = kernel->info();
  for (const KernelArgument& argument : info.arguments) {
    const ArgumentValue as_given{argument.type, argument.pointee, 0, argument.size_bytes, nullptr};
    wanted_.push_back({front_word(as_given), argument.offset_bytes, argument.size_bytes});
  }
  wanted = wanted_.data();
  argument_count = static_cast<std::uint32_t>(wanted_.size());
  argument_bytes = info.argument_bytes;
  local_memory_bytes = info.facts.local_memory_bytes;
  takes_any_group_size = info.facts.required_local[0] == 0;
  is_short_and_independent = info.facts.short_and_independent;
}

KernelState::~KernelState() {
  if (!is_running()) keep_for_ever(std::move(kernel));
}

Result<> prepare_launch(const KernelState& kernel, const DeviceState& device, const Geometry& geometry,
                        std::span<const ArgumentValue> arguments, std::uint32_t local_memory_bytes, std::byte (&block)[kMaxArgumentBytes]) {
  if (kernel.device != &device) [[unlikely]] {
    return Error{ErrorCode::invalid_argument, fmt::format("kernel '{}' is of device {}, it cannot be launched on a stream of device {}",
                                                          kernel.kernel->info().name, kernel.device->index, device.index)};
  }
  if (arguments.size() != kernel.argument_count) [[unlikely]]
    return wrong_count(kernel, arguments.size());
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const ArgumentValue& given = arguments[index];
    const KernelState::Wanted& wanted = kernel.wanted[index];
    if (front_word(given) != wanted.word) [[unlikely]] {
      const hal::KernelInfo& info = kernel.kernel->info();
      if (!fits(info.arguments[index], given, info.has_argument_types)) return wrong_type(kernel, index, given);
    }
    std::byte* const place = block + wanted.offset_bytes;
    // Nearly all are of these sizes, and a copy of a known size is one instruction.
    if (wanted.size_bytes == 8) {
      std::memcpy(place, given.value, 8);
    } else if (wanted.size_bytes == 4) {
      std::memcpy(place, given.value, 4);
    } else {
      std::memcpy(place, given.value, wanted.size_bytes);
    }
  }
  if (is_plain(kernel, geometry, local_memory_bytes)) [[likely]]
    return {};
  return check_rest_of_launch(kernel, device, geometry, local_memory_bytes);
}

}  // namespace runtime

std::string to_string(const KernelArgument& argument) {
  return runtime::describe_type(argument.type, argument.pointee, argument.size_bytes);
}

}  // namespace xpu
