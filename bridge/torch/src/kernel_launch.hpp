#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "check.hpp"
#include "devices.hpp"

/// Operators with a kernel of their own. What a launch does is a `Work`: a trivially copyable structure of addresses and numbers, which is
/// the kernel's one argument, with
///
///     static constexpr const char* name();              // as records show it; not the operator's name, or a profile would show the two as
///     one void run(const xpu::WorkGroup& group) const;      // on some thread, maybe later
///
/// It owns nothing: memory that its addresses point to goes back to the allocator of the stream, which gives it to later work only.
namespace xpu_torch {

/// With fewer elements a kernel promises to be short and to wait for nothing: it may run on the thread that submits it.
inline constexpr std::int64_t kShortElements = 32 * 1024;

/// The name of a kernel as a template argument.
template <std::size_t length>
struct KernelName {
  char text[length];
  constexpr KernelName(const char (&name)[length]) { std::copy_n(name, length, text); }  // NOLINT: from a literal, without a word
};

/// One kernel of one device in its two forms, made when first asked for, kept for ever.
struct DeviceKernel {
  xpu::Kernel short_one, long_one;
  std::uint64_t most_group_items;  ///< What a single work-group may have, whatever its shape.
};

/// Thread-safe.
class KernelOfDevices {
 public:
  constexpr KernelOfDevices(const char* name, xpu::KernelFunction function, std::uint32_t argument_bytes)
      : name_(name), function_(function), argument_bytes_(argument_bytes) {}

  const DeviceKernel& on(int device) {
    if (const DeviceKernel* const made = made_[static_cast<std::size_t>(device)].load(std::memory_order_acquire)) [[likely]] {
      return *made;
    }
    return make(device);
  }

 private:
  const DeviceKernel& make(int device);

  const char* const name_;
  const xpu::KernelFunction function_;
  const std::uint32_t argument_bytes_;
  std::array<std::atomic<const DeviceKernel*>, kMostDevices> made_{};
};

template <typename Work>
void run_work(const std::byte* arguments, const xpu::WorkGroup* group) {
  static_assert(std::is_trivially_copyable_v<Work> && alignof(Work) <= 16, "arguments are copied byte by byte to a place aligned to 16");
  reinterpret_cast<const Work*>(arguments)->run(*group);
}

template <typename Work>
inline constinit KernelOfDevices kernel_of_work{Work::name(), &run_work<Work>, sizeof(Work)};

/// Launches work of so many elements on a stream of the device. The groups of the geometry may run at the same time.
template <typename Work>
void launch(const Work& work, int device, const xpu::Stream& stream, std::int64_t elements, const xpu::Geometry& geometry) {
  const DeviceKernel& kernel = kernel_of_work<Work>.on(device);
  check(stream.launch(elements < kShortElements ? kernel.short_one : kernel.long_one, geometry, work));
}

/// The same for work that cannot be cut into groups: there is one, where the device allows one of this size; else all but the first have to
/// do nothing (`is_first`).
template <typename Work>
void launch_whole(const Work& work, int device, const xpu::Stream& stream, std::int64_t elements, xpu::Geometry geometry) {
  const DeviceKernel& kernel = kernel_of_work<Work>.on(device);
  if (geometry.global[0] * geometry.global[1] * geometry.global[2] <= kernel.most_group_items) {
    std::copy_n(geometry.global, geometry.dimensions, geometry.local);
  }
  check(stream.launch(elements < kShortElements ? kernel.short_one : kernel.long_one, geometry, work));
}
inline bool is_first(const xpu::WorkGroup& group) { return (group.id[0] | group.id[1] | group.id[2]) == 0; }

/// A contiguous tensor of the device with memory of this stream.
at::Tensor empty_on(int device, const xpu::Stream& stream, c10::IntArrayRef sizes, caffe2::TypeMeta type);
/// One that lies as another, dense one does, as results of operators on elements do.
at::Tensor empty_as(const at::Tensor& dense, const xpu::Stream& stream);

}  // namespace xpu_torch
