#include "xpu/trace/view/next_record.hpp"

#include <cstring>

namespace xpu::trace::view {
namespace {

/// The size that the record at `record` says it has; 0 when it is none, or is not all there.
std::size_t whole_record_bytes(const std::byte* record, std::size_t bytes_left) noexcept {
  ViewHeader header{};
  if (bytes_left < sizeof header) return 0;
  std::memcpy(&header, record, sizeof header);
  const std::size_t size = view_bytes(header.kind);
  return size <= bytes_left ? size : 0;
}

}  // namespace

std::size_t view_bytes(ViewKind kind) noexcept {
  switch (kind) {
    case ViewKind::kernel: return sizeof(KernelView);
    case ViewKind::driver_api:
    case ViewKind::runtime_api: return sizeof(ApiView);
    case ViewKind::overhead: return sizeof(OverheadView);
    case ViewKind::external_correlation: return sizeof(ExternalCorrelationView);
    case ViewKind::memory_copy: return sizeof(CopyView);
    case ViewKind::memory_fill: return sizeof(FillView);
    case ViewKind::peer_copy: return sizeof(PeerCopyView);
    case ViewKind::synchronization: return sizeof(SynchronizationView);
    case ViewKind::communication: return sizeof(CommunicationView);
    case ViewKind::invalid:
    case ViewKind::cpu_kernel:
    case ViewKind::reserved: break;
  }
  return 0;
}

ResultCode next_record(const void* buffer, std::size_t bytes, const ViewHeader** record) noexcept {
  if (record == nullptr) return ResultCode::bad_argument;
  if (buffer == nullptr || bytes == 0) return ResultCode::end_of_buffer;
  const auto* begin = static_cast<const std::byte*>(buffer);
  std::size_t place = 0;
  if (*record != nullptr) {
    // Compared as numbers: a pointer into something else has no order with ours.
    const auto offset = reinterpret_cast<std::uintptr_t>(*record) - reinterpret_cast<std::uintptr_t>(begin);
    if (offset >= bytes) return ResultCode::bad_argument;
    const std::size_t size = whole_record_bytes(begin + offset, bytes - offset);
    if (size == 0) return ResultCode::bad_argument;
    place = offset + size;
  }
  if (place == bytes) return ResultCode::end_of_buffer;
  if (whole_record_bytes(begin + place, bytes - place) == 0) return ResultCode::bad_argument;
  *record = reinterpret_cast<const ViewHeader*>(begin + place);
  return ResultCode::success;
}

}  // namespace xpu::trace::view
