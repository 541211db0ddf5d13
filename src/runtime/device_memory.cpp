#include "runtime/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/process.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"
#include "runtime/stream_progress.hpp"

namespace xpu::runtime {

Result<void*> MemorySource::allocate(std::size_t bytes, std::size_t alignment) {
  XPU_TRY(ensure_initialized());
  const probe::Scope scope;
  XPU_TRY_ASSIGN(void* const address, driver_.allocate(bytes, alignment));
  remember_memory(address, bytes, kind_, device_);
  return address;
}

void MemorySource::free(void* address) noexcept {
  forget_memory(address);
  if (!is_running()) return;
  const probe::Scope scope;
  driver_.free(address);
}

Result<void*> MemorySource::reserve(std::size_t bytes) {
  XPU_TRY(ensure_initialized());
  const probe::Scope scope;
  XPU_TRY_ASSIGN(void* const address, driver_.reserve(bytes));
  remember_memory(address, bytes, kind_, device_);
  return address;
}

void MemorySource::unreserve(void* address, std::size_t bytes) noexcept {
  forget_memory(address);
  if (!is_running()) return;
  const probe::Scope scope;
  driver_.unreserve(address, bytes);
}

Result<> MemorySource::map(void* address, std::size_t bytes) {
  XPU_TRY(ensure_initialized());
  const probe::Scope scope;
  return driver_.map(address, bytes);
}

void MemorySource::unmap(void* address, std::size_t bytes) noexcept {
  if (!is_running()) return;
  const probe::Scope scope;
  driver_.unmap(address, bytes);
}

Result<hal::MemoryInfo> MemorySource::info() {
  XPU_TRY(ensure_initialized());
  const probe::Scope scope;
  return driver_.info();
}

namespace {

/// What XPU_MEMORY_CONF says, read once.
const Result<memory::Config>& memory_config() {
  static const auto& config = *new Result<memory::Config>([]() -> Result<memory::Config> {
    const char* text = base::has_raised_privileges() ? nullptr : secure_getenv("XPU_MEMORY_CONF");
    auto parsed = memory::parse_config(text == nullptr ? "" : text);
    if (!parsed) return Error{parsed.error().code, "XPU_MEMORY_CONF: " + parsed.error().message};
    if (parsed->pinned_use_background_threads) {
      return Error{ErrorCode::unsupported,
                   "XPU_MEMORY_CONF: pinned_use_background_threads:True has no meaning here: no allocation waits to find out which blocks "
                   "are free again"};
    }
    return parsed;
  }());
  return config;
}

/// The options of pinned memory by the names of the other structure.
memory::HostCachingOptions host_options(const memory::Config& config) {
  memory::HostCachingOptions options;
  options.max_cached_bytes = std::min(options.max_cached_bytes, config.pinned_max_cached_size_bytes);
  options.max_round_threshold_bytes = std::min(config.pinned_max_round_threshold_bytes, config.pinned_max_cached_size_bytes);
  return options;
}

Result<MemorySource*> make_source(DeviceState& device, hal::MemoryKind kind) {
  hal::MemoryProvider* memory = device.device.load(std::memory_order_acquire)->memory(kind);
  if (memory == nullptr) {
    return Error{ErrorCode::unsupported,
                 fmt::format("device {} ({}) has no {} memory", device.index, device.properties.name, to_string(kind))};
  }
  return new MemorySource(*memory, kind, device);
}

}  // namespace

Result<memory::DeviceCachingAllocator*> DeviceMemory::device_allocator(DeviceState& device, hal::MemoryKind kind) {
  std::atomic<memory::DeviceCachingAllocator*>& place = kind == hal::MemoryKind::shared ? shared_ : device_;
  if (memory::DeviceCachingAllocator* known = place.load(std::memory_order_acquire)) return known;
  const base::MutexLock lock(mutex_);
  if (memory::DeviceCachingAllocator* known = place.load(std::memory_order_acquire)) return known;
  if (!memory_config()) return memory_config().error();
  XPU_TRY_ASSIGN(MemorySource * source, make_source(device, kind));
  auto made = memory::DeviceCachingAllocator::create(*source, StreamProgress::instance(), *memory_config(), device.index);
  if (!made) {
    delete source;
    return std::move(made).error();
  }
  place.store(made->get(), std::memory_order_release);
  return made->release();
}

Result<memory::HostCachingAllocator*> DeviceMemory::host_allocator(DeviceState& device) {
  if (memory::HostCachingAllocator* known = host_.load(std::memory_order_acquire)) return known;
  const base::MutexLock lock(mutex_);
  if (memory::HostCachingAllocator* known = host_.load(std::memory_order_acquire)) return known;
  if (!memory_config()) return memory_config().error();
  XPU_TRY_ASSIGN(MemorySource * source, make_source(device, hal::MemoryKind::host));
  auto* made = new memory::HostCachingAllocator(*source, StreamProgress::instance(), host_options(*memory_config()));
  host_.store(made, std::memory_order_release);
  return made;
}

}  // namespace xpu::runtime
