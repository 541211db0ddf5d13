#include <cstdint>
#include <map>

#include "base/mutex.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

// Which addresses are the runtime's own allocations: asked for each copy that somebody listens to; and what is said of memory.

namespace xpu::runtime {
namespace {

struct Range {
  std::size_t bytes;
  hal::MemoryKind kind;
  const DeviceState* device;
};
constinit base::Mutex g_memory_mutex;

std::map<std::uintptr_t, Range>& ranges() XPU_REQUIRES(g_memory_mutex) {
  static auto* const all = new std::map<std::uintptr_t, Range>();  // never destroyed: buffers of static objects go late
  return *all;
}

probe::MemoryType probe_type(hal::MemoryKind kind) noexcept {
  switch (kind) {
    case hal::MemoryKind::device: return probe::MemoryType::device;
    case hal::MemoryKind::host: return probe::MemoryType::pinned;
    case hal::MemoryKind::shared: return probe::MemoryType::shared;
  }
  return probe::MemoryType::unknown;
}

struct Place {
  probe::MemoryType type = probe::MemoryType::host;
  const DeviceState* device = nullptr;
};

Place place_of(const void* address) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const base::MutexLock lock(g_memory_mutex);
  auto& all = ranges();
  auto next = all.upper_bound(value);
  if (next == all.begin()) return {};
  const auto& [begin, range] = *--next;
  if (value - begin >= range.bytes) return {};
  return {probe_type(range.kind), range.device};
}

bool is_on_device(const Place& place) { return place.type == probe::MemoryType::device || place.type == probe::MemoryType::shared; }

}  // namespace

void remember_memory(const void* address, std::size_t bytes, hal::MemoryKind kind, const DeviceState& device) {
  const base::MutexLock lock(g_memory_mutex);
  ranges()[reinterpret_cast<std::uintptr_t>(address)] = {bytes, kind, &device};
}

bool forget_memory(const void* address) noexcept {
  const base::MutexLock lock(g_memory_mutex);
  return ranges().erase(reinterpret_cast<std::uintptr_t>(address)) != 0;
}

bool is_memory_listened_to() noexcept {
  const probe::Subscriber* subscriber = listener();
  return subscriber != nullptr && (subscriber->wanted.load(std::memory_order_relaxed) & probe::kMemory) != 0;
}

void publish_memory(const DeviceState& device, probe::MemoryAction action, hal::MemoryKind kind, const void* address, std::size_t bytes,
                    std::uint64_t total) noexcept {
  const probe::Subscriber* subscriber = listener();
  if (subscriber == nullptr) return;
  probe::MemoryEvent event;
  event.time_ns = now_ns();
  event.address = reinterpret_cast<std::uintptr_t>(address);
  event.bytes = bytes;
  event.total_bytes = total;
  event.device = device.probe_id;
  event.context = device.context_id;
  event.action = action;
  event.type = probe_type(kind);
  subscriber->memory(event);
}

probe::CopyDetail describe_copy(const DeviceState& device, const void* destination, const void* source, std::size_t bytes) noexcept {
  const Place from = place_of(source), to = place_of(destination);
  probe::CopyDetail detail;
  detail.bytes = bytes;
  detail.source = reinterpret_cast<std::uintptr_t>(source);
  detail.destination = reinterpret_cast<std::uintptr_t>(destination);
  detail.source_type = from.type;
  detail.destination_type = to.type;
  if (is_on_device(from) && is_on_device(to)) {
    const bool is_peer = from.device != to.device;
    detail.direction = is_peer ? probe::CopyDirection::peer : probe::CopyDirection::device_to_device;
    if (is_peer) detail.peer_device = (from.device == &device ? to.device : from.device)->probe_id;
  } else if (is_on_device(from)) {
    detail.direction = probe::CopyDirection::device_to_host;
  } else if (is_on_device(to)) {
    detail.direction = probe::CopyDirection::host_to_device;
  } else {
    detail.direction = probe::CopyDirection::host_to_host;
  }
  return detail;
}

probe::CopyDetail describe_fill(const void* destination, std::size_t bytes, const void* pattern, std::size_t pattern_bytes) noexcept {
  probe::CopyDetail detail;
  detail.bytes = bytes;
  detail.destination = reinterpret_cast<std::uintptr_t>(destination);
  detail.destination_type = place_of(destination).type;
  detail.form = probe::CopyForm::pattern;
  detail.pattern = pattern;
  detail.pattern_bytes = static_cast<std::uint32_t>(pattern_bytes);
  return detail;
}

}  // namespace xpu::runtime
