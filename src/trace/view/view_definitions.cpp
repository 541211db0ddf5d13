#include "trace/view/view_definitions.hpp"

#include <fmt/format.h>

#include "base/probe.hpp"

namespace xpu::trace::view {
namespace {

template <typename Record>
void keep(DefinitionMap<Record>& map, const RecordHeader& header, std::uint32_t Record::* id) {
  if (const auto* record = view_record_cast<Record>(header)) map.put(record->*id, *record);
}

/// "domain:bus:device.function"; empty when all are 0, which no accelerator has. What does not fit is unknown too.
void write_pci_address(char (&address)[16], const DeviceRecord& record) {
  address[0] = '\0';
  if (record.pci_domain == 0 && record.pci[0] == 0 && record.pci[1] == 0 && record.pci[2] == 0) return;
  const auto written =
      fmt::format_to_n(address, sizeof address - 1, "{:x}:{:x}:{:x}.{:x}", record.pci_domain, record.pci[0], record.pci[1], record.pci[2]);
  address[written.size < sizeof address ? written.size : 0] = '\0';
}

}  // namespace

void ViewDefinitions::add(const RecordHeader& header) {
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::string:
      if (const auto* record = view_record_cast<StringRecord>(header); record != nullptr && source_ == TextSource::records)
        add_text(*record);
      break;
    case RecordKind::process:
      if (const auto* record = view_record_cast<ProcessRecord>(header)) process = record->pid;
      break;
    case RecordKind::thread: keep(threads, header, &ThreadRecord::thread); break;
    case RecordKind::device:
      if (const auto* record = view_record_cast<DeviceRecord>(header)) add_device(*record);
      break;
    case RecordKind::context: keep(contexts, header, &ContextRecord::context); break;
    case RecordKind::queue: keep(queues, header, &QueueRecord::queue); break;
    case RecordKind::kernel: keep(kernels, header, &KernelRecord::what); break;
    case RecordKind::geometry:
      keep(geometries, header, &GeometryRecord::geometry);
      geometries.limit();
      break;
    case RecordKind::object_end:
      if (const auto* record = view_record_cast<ObjectEndRecord>(header)) add_end(*record);
      break;
    case RecordKind::clock_reading:
      if (const auto* record = view_record_cast<ClockReadingRecord>(header)) device_entry(record->device).clock.add(*record);
      break;
    default: break;
  }
}

void ViewDefinitions::add_text(const StringRecord& record) {
  Text& text = texts_[record.id];
  if (text.whole != nullptr) return;
  const std::size_t room = record.header.size - sizeof record;
  text.pieces.append(reinterpret_cast<const char*>(&record + 1), std::min<std::size_t>(record.bytes, room));
  if ((record.header.flags & kFlagContinues) != 0) return;
  text.whole = &*unique_texts_.insert(std::move(text.pieces)).first;
  text.pieces = {};
}

void ViewDefinitions::add_device(const DeviceRecord& record) {
  Device& device = device_entry(record.device);
  // Described again when its clock became known; in which order the two are read is open.
  if (device.is_described && record.clock_domain == 0) return;
  device.record = record;
  device.is_described = true;
  device.clock.describe(record);
  write_pci_address(device.pci_address, record);
}

void ViewDefinitions::add_end(const ObjectEndRecord& record) {
  switch (static_cast<probe::ObjectKind>(record.kind)) {
    case probe::ObjectKind::context: contexts.end(record.id); break;
    case probe::ObjectKind::queue: queues.end(record.id); break;
    case probe::ObjectKind::kernel: kernels.end(record.id); break;
    default: break;  // devices are few and stay
  }
}

ViewDefinitions::Device& ViewDefinitions::device_entry(std::uint32_t id) {
  return devices_.try_emplace(id, Device{{}, false, {}, DeviceClock(host_clock_)}).first->second;
}

ViewDefinitions::Device* ViewDefinitions::device(std::uint32_t id) {
  const auto found = devices_.find(id);
  return found == devices_.end() ? nullptr : &found->second;
}

std::string_view ViewDefinitions::text_bytes(std::uint32_t id) const {
  if (source_ == TextSource::process) return probe::text_of(id);
  const auto found = texts_.find(id);
  return id == 0 || found == texts_.end() || found->second.whole == nullptr ? std::string_view() : *found->second.whole;
}

const char* ViewDefinitions::text(std::uint32_t id) const { return text_bytes(id).data(); }

ApiIdentity ViewDefinitions::api(std::uint32_t name_id) {
  const auto known = apis_.find(name_id);
  if (known != apis_.end()) return known->second;
  const char* name = text(name_id);
  const ApiIdentity identity = identify_api(name == nullptr ? "" : name);
  if (name != nullptr) apis_.emplace(name_id, identity);
  return identity;
}

}  // namespace xpu::trace::view
