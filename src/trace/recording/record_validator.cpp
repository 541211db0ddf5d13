#include "trace/recording/record_validator.hpp"

#include <array>
#include <cstring>

#include "xpu/trace/records.hpp"

namespace xpu::trace {
namespace {

constexpr std::size_t kKnownKinds = 64;

constexpr auto kMinimumBytes = [] {
  std::array<std::uint8_t, kKnownKinds> bytes{};
  bytes.fill(sizeof(RecordHeader));
  const auto set = [&](RecordKind kind, std::size_t size) { bytes[static_cast<std::size_t>(kind)] = static_cast<std::uint8_t>(size); };
  set(RecordKind::string, sizeof(StringRecord));
  set(RecordKind::process, sizeof(ProcessRecord));
  set(RecordKind::thread, sizeof(ThreadRecord));
  set(RecordKind::device, sizeof(DeviceRecord));
  set(RecordKind::context, sizeof(ContextRecord));
  set(RecordKind::queue, sizeof(QueueRecord));
  set(RecordKind::module, sizeof(ModuleRecord));
  set(RecordKind::kernel, sizeof(KernelRecord));
  set(RecordKind::geometry, sizeof(GeometryRecord));
  set(RecordKind::fact, sizeof(FactRecord));
  set(RecordKind::object_end, sizeof(ObjectEndRecord));
  set(RecordKind::operation_submitted, sizeof(OperationSubmittedRecord));
  set(RecordKind::operation_completed, sizeof(OperationCompletedRecord));
  set(RecordKind::copy_detail, sizeof(CopyDetailRecord));
  set(RecordKind::rectangle, sizeof(RectangleRecord));
  set(RecordKind::call_begin, sizeof(CallBeginRecord));
  set(RecordKind::api_call, sizeof(ApiCallRecord));
  set(RecordKind::synchronization, sizeof(SynchronizationRecord));
  set(RecordKind::memory, sizeof(MemoryRecord));
  set(RecordKind::external_correlation, sizeof(ExternalCorrelationRecord));
  set(RecordKind::annotation, sizeof(AnnotationRecord));
  set(RecordKind::clock_reading, sizeof(ClockReadingRecord));
  set(RecordKind::loss, sizeof(LossRecord));
  set(RecordKind::graph_node, sizeof(GraphNodeRecord));
  set(RecordKind::communication, sizeof(CommunicationRecord));
  set(RecordKind::overhead, sizeof(OverheadRecord));
  set(RecordKind::session, sizeof(SessionRecord));
  return bytes;
}();

/// Bytes of what follows the structure, as the record itself says.
std::uint64_t announced_tail(const RecordHeader& header, const std::byte* record) {
  std::uint32_t count = 0;
  const auto read = [&](std::size_t offset) { std::memcpy(&count, record + offset, sizeof(count)); };
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::string: read(offsetof(StringRecord, bytes)); return count;
    case RecordKind::process: read(offsetof(ProcessRecord, name_bytes)); return count;
    case RecordKind::context: read(offsetof(ContextRecord, device_count)); return std::uint64_t{count} * sizeof(std::uint32_t);
    default: return 0;
  }
}

}  // namespace

std::size_t minimum_record_bytes(std::uint16_t kind) noexcept { return kind < kKnownKinds ? kMinimumBytes[kind] : sizeof(RecordHeader); }

ValidPrefix valid_prefix(std::span<const std::byte> bytes) noexcept {
  ValidPrefix prefix;
  while (bytes.size() - prefix.bytes >= sizeof(RecordHeader)) {
    const std::byte* record = bytes.data() + prefix.bytes;
    RecordHeader header{};
    std::memcpy(&header, record, sizeof(header));
    const std::size_t minimum = minimum_record_bytes(header.kind);
    if (header.size % 8 != 0 || header.size < minimum || header.size > bytes.size() - prefix.bytes) break;
    if (announced_tail(header, record) > header.size - minimum) break;
    prefix.bytes += header.size;
    ++prefix.records;
  }
  return prefix;
}

}  // namespace xpu::trace
