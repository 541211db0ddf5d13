#include "runtime/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/process.hpp"
#include "runtime/memory_debug.hpp"
#include "runtime/memory_snapshot.hpp"
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

void MemoryPublisher::allocated(const void* address, std::size_t bytes) noexcept {
  if (!is_memory_listened_to()) return;
  publish_memory(device_, probe::MemoryAction::allocate, kind_, address, bytes, device_.memory.allocated_bytes());
}

void MemoryPublisher::freeing(const void* address, std::size_t bytes) noexcept {
  if (!is_memory_listened_to()) return;
  publish_memory(device_, probe::MemoryAction::release, kind_, address, bytes, device_.memory.allocated_bytes() - bytes);
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

Result<> check_settings() {
  if (!memory_config()) return memory_config().error();
  if (!memory_debug()) return memory_debug().error();
  return {};
}

// What a vector of four floats needs: the smaller it is, the closer a block ends to the guard.
constexpr std::size_t kGuardAlignment = 16;

Result<std::unique_ptr<MemorySource>> make_source(DeviceState& device, hal::MemoryKind kind) {
  hal::MemoryProvider* memory = device.device.load(std::memory_order_acquire)->memory(kind);
  if (memory == nullptr) {
    return Error{ErrorCode::unsupported,
                 fmt::format("device {} ({}) has no {} memory", device.index, device.properties.name, to_string(kind))};
  }
  return std::make_unique<MemorySource>(*memory, kind, device);
}

/// What the environment asks of a new allocator.
Result<> set_up(memory::DeviceCachingAllocator& allocator, const MemoryDebug& debug, int device) {
  if (!debug.out_of_memory_snapshot.empty()) {
    allocator.write_snapshot_at_out_of_memory(device == 0 ? debug.out_of_memory_snapshot
                                                          : fmt::format("{}.{}", debug.out_of_memory_snapshot, device));
  }
  if (!debug.checks && !debug.lists_live_blocks) return {};
  memory::CheckOptions checks;
  checks.stacks = memory::make_call_stack_recorder();
  return allocator.start_checks(checks);
}

}  // namespace

Result<memory::DeviceCachingAllocator*> DeviceMemory::caching_allocator(DeviceState& device, hal::MemoryKind kind) {
  std::atomic<memory::DeviceCachingAllocator*>& place = kind == hal::MemoryKind::shared ? shared_ : device_;
  if (memory::DeviceCachingAllocator* known = place.load(std::memory_order_acquire)) return known;
  const base::MutexLock lock(mutex_);
  if (memory::DeviceCachingAllocator* known = place.load(std::memory_order_acquire)) return known;
  XPU_TRY(check_settings());
  XPU_TRY_ASSIGN(std::unique_ptr<MemorySource> source, make_source(device, kind));
  XPU_TRY_ASSIGN(auto made, memory::DeviceCachingAllocator::create(*source, StreamProgress::instance(), *memory_config(), device.index));
  XPU_TRY(set_up(*made, *memory_debug(), device.index));
  made->set_listener(*new MemoryPublisher(device, kind));
  static_cast<void>(source.release());  // as long as the allocator: for ever
  place.store(made.get(), std::memory_order_release);
  // Now that it can be found: a profile that begins here finds it, or was there before and is told of it.
  note_new_allocator(*made);
  return made.release();
}

Result<memory::HostCachingAllocator*> DeviceMemory::host_allocator(DeviceState& device) {
  if (memory::HostCachingAllocator* known = host_.load(std::memory_order_acquire)) return known;
  const base::MutexLock lock(mutex_);
  if (memory::HostCachingAllocator* known = host_.load(std::memory_order_acquire)) return known;
  XPU_TRY(check_settings());
  XPU_TRY_ASSIGN(std::unique_ptr<MemorySource> source, make_source(device, hal::MemoryKind::host));
  auto* made = new memory::HostCachingAllocator(*source.release(), StreamProgress::instance(), host_options(*memory_config()));
  host_.store(made, std::memory_order_release);
  return made;
}

Result<memory::Allocator*> DeviceMemory::make_buffer_allocator(DeviceState& device, hal::MemoryKind kind) {
  std::atomic<memory::Allocator*>& place = buffer_place(kind);
  XPU_TRY(check_settings());
  if (kind == hal::MemoryKind::device && memory_debug()->guards) {
    const base::MutexLock lock(mutex_);
    if (memory::Allocator* known = place.load(std::memory_order_acquire)) return known;
    XPU_TRY_ASSIGN(std::unique_ptr<MemorySource> source, make_source(device, kind));
    memory::GuardOptions options;
    options.alignment_bytes = kGuardAlignment;
    options.is_host_accessible = device.device.load(std::memory_order_acquire)->capabilities().host_memory_access;
    options.checks.stacks = memory::make_call_stack_recorder();
    XPU_TRY_ASSIGN(auto made, memory::GuardedAllocator::create(*source, StreamProgress::instance(), options));
    static_cast<void>(source.release());
    guarded_.store(made.get(), std::memory_order_release);
    place.store(made.get(), std::memory_order_release);
    return made.release();
  }
  XPU_TRY_ASSIGN(memory::Allocator * made, caching_allocator(device, kind));
  const base::MutexLock lock(mutex_);
  memory::Allocator* expected = nullptr;
  return place.compare_exchange_strong(expected, made, std::memory_order_acq_rel) ? made : expected;
}

bool DeviceMemory::is_published(hal::MemoryKind kind) const noexcept {
  if (kind == hal::MemoryKind::host) return false;
  if (kind == hal::MemoryKind::shared) return true;
  return device_buffers_.load(std::memory_order_acquire) == device_.load(std::memory_order_acquire);
}

void DeviceMemory::publish_buffer(const DeviceState& device, hal::MemoryKind kind, const void* address, std::size_t bytes) noexcept {
  if (is_published(kind)) return;
  other_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (is_memory_listened_to()) publish_memory(device, probe::MemoryAction::allocate, kind, address, bytes, allocated_bytes());
}

void DeviceMemory::publish_end_of_buffer(const DeviceState& device, hal::MemoryKind kind, const void* address, std::size_t bytes) noexcept {
  if (is_published(kind)) return;
  other_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (is_memory_listened_to()) publish_memory(device, probe::MemoryAction::release, kind, address, bytes, allocated_bytes());
}

std::uint64_t DeviceMemory::allocated_bytes() const noexcept {
  std::uint64_t bytes = other_bytes_.load(std::memory_order_relaxed);
  for (const auto* place : {&device_, &shared_}) {
    if (const memory::DeviceCachingAllocator* allocator = place->load(std::memory_order_acquire)) bytes += allocator->requested_bytes();
  }
  return bytes;
}

Result<> DeviceMemory::replace(std::shared_ptr<memory::Allocator> allocator) {
  const base::MutexLock lock(mutex_);
  if (device_buffers_.load(std::memory_order_acquire) != nullptr) {
    return Error{ErrorCode::failed_precondition,
                 "the device's buffers come from an allocator already: it can be replaced once, before the first buffer"};
  }
  device_buffers_.store(allocator.get(), std::memory_order_release);
  keep_for_ever(std::move(allocator));
  return {};
}

void DeviceMemory::close(const char* why) noexcept {
  for (auto* place : {&device_, &shared_}) {
    if (memory::DeviceCachingAllocator* allocator = place->load(std::memory_order_acquire)) allocator->close(why);
  }
  if (memory::HostCachingAllocator* allocator = host_.load(std::memory_order_acquire)) allocator->close(why);
}

void DeviceMemory::list_live_blocks(int device) const {
  if (!memory_debug() || !memory_debug()->lists_live_blocks) return;
  const auto list = [&](const char* kind, const memory::LiveBlockReport& live) {
    const std::string text = to_string(live);
    if (!text.empty()) std::fprintf(stderr, "xpu: %s memory of device %d at exit: %s\n", kind, device, text.c_str());
  };
  if (const auto* allocator = device_.load(std::memory_order_acquire)) list("device", allocator->report_live_blocks());
  if (const auto* allocator = shared_.load(std::memory_order_acquire)) list("shared", allocator->report_live_blocks());
  if (const auto* allocator = guarded_.load(std::memory_order_acquire)) list("device", allocator->report_live_blocks());
}

}  // namespace xpu::runtime
