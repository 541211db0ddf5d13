#include "xpu/runtime/device.hpp"

#include <utility>

#include "runtime/callbacks.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

namespace xpu {

namespace runtime {
namespace {
constinit thread_local int t_current_device = 0;
}

int current_device() noexcept { return t_current_device; }
void set_current_device(int index) noexcept { t_current_device = index; }

}  // namespace runtime

using namespace runtime;

Result<int> Device::count() {
  const Enumeration& all = enumeration();
  // No device is an answer; a variable that makes no sense is not.
  if (!all.report.error.empty()) return all.error;
  return static_cast<int>(all.devices.size());
}

Result<Device> Device::get(int index) {
  XPU_TRY_ASSIGN(DeviceState * device, find_device(index));
  return Device(device);
}

int Device::current() noexcept { return current_device(); }

Result<> Device::set_current(int index) {
  if (index < 0) return {};
  XPU_TRY(ensure_initialized());
  XPU_TRY_ASSIGN([[maybe_unused]] DeviceState * device, find_device(index));
  set_current_device(index);
  return {};
}

Result<int> Device::exchange_current(int index) {
  if (index < 0) return -1;
  const int before = current_device();
  if (index != before || !is_running()) XPU_TRY(set_current(index));
  return before;
}

int Device::index() const noexcept { return state_->index; }
const DeviceProperties& Device::properties() const noexcept { return state_->properties; }
const char* Device::driver() const noexcept { return state_->driver->name(); }

Result<hal::Device*> Device::native() const {
  XPU_TRY(ensure_initialized());
  return open(*state_);
}

Result<const hal::Capabilities*> Device::capabilities() const {
  XPU_TRY_ASSIGN(hal::Device * device, native());
  return &device->capabilities();
}

Result<> Device::synchronize() const {
  XPU_TRY_ASSIGN(hal::Device * device, native());
  Result<> synchronized;
  {
    PublishedCall call(&ApiNames::synchronize_device, probe::WaitType::device, *state_, nullptr, nullptr);
    const probe::Scope scope;
    for_each_stream(*state_, [&](StreamState& stream) {
      if (synchronized) synchronized = check_can_wait(stream);
    });
    if (!synchronized) return call.finish(std::move(synchronized));
    synchronized = device->synchronize_blocking();
    // What a stream kept from an earlier wait is returned, too: now, or by the next call.
    for_each_stream(*state_, [&](StreamState& stream) {
      if (!synchronized) return;
      if (std::optional<Error> kept = take_kept_error(stream)) synchronized = *std::move(kept);
    });
    synchronized = call.finish(std::move(synchronized));
  }
  publish_clock_if_due(*state_, now_ns());
  reached(gpu_trace::Point::device_synchronization);
  return synchronized;
}

Result<MemoryInfo> Device::memory_info() const {
  XPU_TRY_ASSIGN(hal::Device * device, native());
  hal::MemoryProvider* memory = device->memory(hal::MemoryKind::device);
  if (memory == nullptr) {
    return Error{ErrorCode::unsupported,
                 "The device (" + properties().name + ") doesn't support querying the available free memory: it has no memory of its own."};
  }
  const probe::Scope scope;
  return memory->info();
}

Result<memory::DeviceCachingAllocator*> Device::allocator() const {
  XPU_TRY_ASSIGN([[maybe_unused]] hal::Device * device, native());
  return state_->memory.caching_allocator(*state_, hal::MemoryKind::device);
}

Result<> Device::replace_allocator(std::shared_ptr<memory::Allocator> allocator) const {
  XPU_TRY(ensure_initialized());
  if (allocator == nullptr) return Error{ErrorCode::invalid_argument, "the allocator that is to take the place of another one is null"};
  return state_->memory.replace(std::move(allocator));
}

Result<memory::HostCachingAllocator*> Device::host_allocator() const {
  XPU_TRY_ASSIGN([[maybe_unused]] hal::Device * device, native());
  return state_->memory.host_allocator(*state_);
}

Result<bool> Device::can_access_peer(const Device& peer) const {
  if (*this == peer) return true;
  if (state_->driver != peer.state_->driver) return false;
  XPU_TRY_ASSIGN(hal::Device * device, native());
  XPU_TRY_ASSIGN(hal::Device * other, peer.native());
  const auto place = static_cast<std::size_t>(peer.index());
  PeerAccess known = state_->peers[place].load(std::memory_order_relaxed);
  if (known == PeerAccess::unknown) {
    const probe::Scope scope;
    known = device->can_access_peer(*other) ? PeerAccess::yes : PeerAccess::no;
    state_->peers[place].store(known, std::memory_order_relaxed);
  }
  return known == PeerAccess::yes;
}

Result<> synchronize(int device) {
  XPU_TRY_ASSIGN(const Device found, Device::get(device < 0 ? Device::current() : device));
  return found.synchronize();
}

Result<DeviceGuard> DeviceGuard::make(int index) {
  XPU_TRY_ASSIGN(const int original, Device::exchange_current(index));
  return DeviceGuard(original);
}

DeviceGuard::DeviceGuard(DeviceGuard&& other) noexcept : original_(std::exchange(other.original_, -1)) {}

DeviceGuard::~DeviceGuard() {
  // Even while the process exits, and in a forked child: it is this thread's own variable.
  if (original_ >= 0) set_current_device(original_);
}

}  // namespace xpu
