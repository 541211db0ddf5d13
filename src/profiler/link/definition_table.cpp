#include "profiler/link/definition_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/probe.hpp"
#include "profiler/link/demangle.hpp"
#include "profiler/link/record_cast.hpp"

namespace xpu::profiler {
namespace {

constexpr auto kNativeMethod = static_cast<std::uint32_t>(probe::ClockMethod::native);

using trace::RecordKind;

/// What makes a device the same one in two processes.
std::string identity_of(const std::string& name, const std::string& driver, const trace::DeviceRecord& record) {
  std::string identity = name + '\0' + driver + '\0';
  identity.append(reinterpret_cast<const char*>(record.uuid), sizeof record.uuid);
  identity.append(reinterpret_cast<const char*>(&record.pci_domain), sizeof record.pci_domain);
  identity.append(reinterpret_cast<const char*>(record.pci), sizeof record.pci);
  return identity;
}

std::string uuid_text(const std::uint8_t (&uuid)[16]) {
  if (std::all_of(std::begin(uuid), std::end(uuid), [](std::uint8_t byte) { return byte == 0; })) return {};
  std::string text;
  for (std::size_t byte = 0; byte < sizeof uuid; ++byte) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) text += '-';
    text += fmt::format("{:02x}", uuid[byte]);
  }
  return text;
}

std::string pci_text(const trace::DeviceRecord& record) {
  if ((record.pci_domain | record.pci[0] | record.pci[1] | record.pci[2]) == 0) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", record.pci_domain, record.pci[0], record.pci[1], record.pci[2]);
}

/// Where a number of a device goes; null for what is no number, or of a later version.
std::optional<std::uint64_t>* number_of(DeviceDefinition& device, trace::FactKey key) {
  switch (key) {
    case trace::FactKey::device_total_memory_bytes: return &device.total_memory_bytes;
    case trace::FactKey::device_max_allocation_bytes: return &device.max_allocation_bytes;
    case trace::FactKey::device_local_memory_bytes: return &device.local_memory_bytes;
    case trace::FactKey::device_max_work_group_size: return &device.max_work_group_size;
    case trace::FactKey::device_compute_units: return &device.compute_units;
    case trace::FactKey::device_max_clock_mhz: return &device.max_clock_mhz;
    case trace::FactKey::device_vendor:
    case trace::FactKey::device_driver_version: break;
  }
  return nullptr;
}

bool is_of_device(std::uint32_t key) {
  return key >= static_cast<std::uint32_t>(trace::FactKey::device_vendor) &&
         key <= static_cast<std::uint32_t>(trace::FactKey::device_max_clock_mhz);
}

}  // namespace

DefinitionTable::DefinitionTable(const RecordSource& source, std::size_t most_readings)
    : source_processes_(source.processes()),
      most_readings_(most_readings),
      processes_(source_processes_.size()),
      equal_devices_(processes_.size()) {
  for (const trace::ProcessInfo& info : source_processes_) {
    ProcessDefinition& process = definitions_.processes.emplace_back();
    process.index = static_cast<std::uint32_t>(definitions_.processes.size() - 1);
    process.pid = info.pid;
    process.start_ns = info.start_ns;
    process.closed = info.state == trace::SegmentState::closed;
  }
}

void DefinitionTable::add(std::size_t process_index, const trace::RecordHeader& header, bool is_young) {
  if (process_index >= processes_.size()) return;
  Process& process = processes_[process_index];
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::string:
      if (const auto* record = record_cast<trace::StringRecord>(header)) add_text(process, *record);
      break;
    case RecordKind::process:
      if (const auto* record = record_cast<trace::ProcessRecord>(header)) {
        ProcessDefinition& definition = definitions_.processes[process_index];
        definition.name = text_behind(*record, record->name_bytes);
        if (record->rank >= 0) definition.rank = record->rank;
      }
      break;
    case RecordKind::thread:
      if (const auto* record = record_cast<trace::ThreadRecord>(header)) keep(process.threads[record->thread], *record, is_young);
      break;
    case RecordKind::device:
      if (const auto* record = record_cast<trace::DeviceRecord>(header)) {
        Device& device = process.devices[record->device];
        // Described again when its clock became known; in which order the two are read is open.
        if (device.record && record->clock_domain == 0) break;
        if (!device.record) device.is_young = is_young;
        device.record = *record;
        device.is_changed = true;
      }
      break;
    case RecordKind::fact:
      if (const auto* record = record_cast<trace::FactRecord>(header); record != nullptr && is_of_device(record->key)) {
        process.devices[record->subject].facts.push_back(*record);
      }
      break;
    case RecordKind::queue:
      if (const auto* record = record_cast<trace::QueueRecord>(header)) keep(process.queues[record->queue], *record, is_young);
      break;
    case RecordKind::kernel:
      if (const auto* record = record_cast<trace::KernelRecord>(header)) keep(process.kernels[record->what], *record, is_young);
      break;
    case RecordKind::geometry:
      if (const auto* record = record_cast<trace::GeometryRecord>(header)) keep(process.geometries[record->geometry], *record, is_young);
      break;
    case RecordKind::annotation:
      if (const auto* record = record_cast<trace::AnnotationRecord>(header)) {
        const auto type = static_cast<probe::AnnotationType>(header.flags);
        if (type == probe::AnnotationType::name_queue) process.queue_names[record->range] = record->text;
        if (type == probe::AnnotationType::name_thread) process.thread_names[record->thread] = record->text;
      }
      break;
    case RecordKind::clock_reading:
      if (const auto* record = record_cast<trace::ClockReadingRecord>(header)) add_reading(process_index, *record, is_young);
      break;
    default: break;
  }
}

void DefinitionTable::add_text(Process& process, const trace::StringRecord& record) {
  Text& text = process.texts[record.id];
  if (text.known && !text.continues) return;  // told again
  const std::string_view piece = text_behind(record, record.bytes);
  text.text += piece;
  text.known = true;
  text.continues = (record.header.flags & trace::kFlagContinues) != 0;
}

void DefinitionTable::add_reading(std::size_t process, const trace::ClockReadingRecord& record, bool is_young) {
  // A reading against another host clock says nothing about ours.
  if (record.domain != 0 && record.domain != static_cast<std::uint32_t>(source_processes_[process].domain)) return;
  Device& device = processes_[process].devices[record.device];
  if (!device.record && device.readings == 0) device.is_young = is_young;
  if (device.points.size() >= most_readings_) thin_out(device.points);
  device.points.push_back({record.host_before_ns, record.host_after_ns, record.device_ticks, record.error_ps});
  device.is_changed = true;
  ++device.readings;
  if (record.header.flags == kNativeMethod) ++device.own_readings;
}

void DefinitionTable::finish() {
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    Process& process = processes_[index];
    process.devices.for_each([&](std::uint64_t id, Device& entry) {
      if (!entry.record && entry.readings == 0) return;
      if (!std::exchange(entry.is_young, false)) device(index, static_cast<std::uint32_t>(id));
      if (entry.is_changed && entry.definition != nullptr) make_clock(index, entry);
    });
    const auto make_all = [&](auto& entries, auto make) {
      entries.for_each([&](std::uint64_t id, auto& entry) {
        if (entry.record && !std::exchange(entry.is_young, false)) (this->*make)(index, static_cast<std::uint32_t>(id));
      });
    };
    find_parents(index);
    make_all(process.threads, &DefinitionTable::thread);
    make_all(process.queues, &DefinitionTable::queue);
    make_all(process.kernels, &DefinitionTable::kernel);
    make_all(process.geometries, &DefinitionTable::geometry);
  }
}

bool DefinitionTable::has_queue(std::size_t process, std::uint32_t id) const noexcept {
  const auto* entry = processes_[process].queues.find(id);
  return entry != nullptr && entry->definition != nullptr;
}

std::string_view DefinitionTable::text(std::size_t process, std::uint32_t id) const {
  const Text* text = id == 0 ? nullptr : processes_[process].texts.find(id);
  return text == nullptr ? std::string_view() : text->text;
}

/// When a device is described several times, or in several processes, what was known first stays.
void DefinitionTable::add_facts(DeviceDefinition& device, std::size_t process, const Device& entry) const {
  for (const trace::FactRecord& fact : entry.facts) {
    const auto key = static_cast<trace::FactKey>(fact.key);
    if (fact.type == static_cast<std::uint32_t>(trace::FactType::text)) {
      std::string& place = key == trace::FactKey::device_vendor ? device.vendor : device.driver_version;
      const bool is_text = key == trace::FactKey::device_vendor || key == trace::FactKey::device_driver_version;
      if (is_text && place.empty()) place = text(process, static_cast<std::uint32_t>(fact.value));
    } else if (std::optional<std::uint64_t>* place = number_of(device, key)) {
      if (!*place) *place = fact.value;
    }
  }
}

/// Once all devices of the process are there. A damaged file may name any id.
void DefinitionTable::find_parents(std::size_t process) {
  processes_[process].devices.for_each([&](std::uint64_t, Device& entry) {
    if (!entry.record || entry.definition == nullptr || entry.record->parent == 0) return;
    const Device* parent = processes_[process].devices.find(entry.record->parent);
    if (parent == nullptr || parent->definition == nullptr || parent->definition == entry.definition) return;
    definitions_.devices[entry.definition->index].parent = parent->definition;
  });
}

DefinitionTable::Device& DefinitionTable::device(std::size_t process, std::uint32_t id) {
  Device& entry = processes_[process].devices[id];
  if (entry.definition != nullptr) return entry;

  trace::DeviceRecord record{};
  if (entry.record) record = *entry.record;
  const std::string name(text(process, record.name));
  const std::string driver(text(process, record.driver));
  // An undescribed device equals no other one.
  std::string identity =
      entry.record ? identity_of(name, driver, record) : "undescribed " + std::to_string(process) + ' ' + std::to_string(id);
  identity += '#' + std::to_string(equal_devices_[process][identity]++);

  const DeviceDefinition*& merged = devices_by_identity_[identity];
  if (merged == nullptr) {
    DeviceDefinition& made = definitions_.devices.emplace_back();
    made.index = static_cast<std::uint32_t>(definitions_.devices.size() - 1);
    made.name = name.empty() ? "unknown device" : name;
    made.driver = driver;
    made.uuid = uuid_text(record.uuid);
    made.pci_address = pci_text(record);
    merged = &made;
  }
  add_facts(definitions_.devices[merged->index], process, entry);
  entry.definition = merged;

  ClockDefinition& clock = definitions_.clocks.emplace_back();
  clock.index = static_cast<std::uint32_t>(definitions_.clocks.size() - 1);
  clock.process = &definitions_.processes[process];
  clock.device = merged;
  entry.clock = &clock;
  clocks_.emplace_back();
  make_clock(process, entry);
  return entry;
}

void DefinitionTable::make_clock(std::size_t process, Device& entry) {
  const trace::DeviceRecord record = entry.record.value_or(trace::DeviceRecord{});
  ClockDefinition& clock = definitions_.clocks[entry.clock->index];
  clock.domain = static_cast<ClockDomain>(record.clock_domain);
  clock.tick_numerator = record.tick_numerator;
  clock.tick_denominator = record.tick_denominator;
  clock.readings = entry.readings;
  entry.is_changed = false;

  const bool goes_on = most_readings_ != SIZE_MAX;
  std::vector<trace::ClockPoint> points = goes_on ? entry.points : std::exchange(entry.points, {});
  DeviceClock& working = clocks_[clock.index];
  working.counts = record.tick_numerator != 0 && record.tick_denominator != 0 && record.valid_bits >= 1;
  if (!working.counts) return;
  working.unit = {record.tick_numerator, record.tick_denominator, record.valid_bits > 64 ? 64 : record.valid_bits};
  // Where the driver says that its clock is ours there is nothing to map. What was only observed to be so is mapped as any other.
  const bool is_host_clock = record.clock_domain != 0 && clock.domain == source_processes_[process].domain && record.valid_bits >= 64 &&
                             record.tick_numerator == record.tick_denominator && entry.own_readings != 0 &&
                             entry.own_readings == entry.readings;
  if (is_host_clock) {
    working.map = trace::ClockMap::of_host_clock(entry.readings);
    working.known_until_ns = INT64_MAX;
    return;
  }
  for (const trace::ClockPoint& point : points)
    working.known_until_ns = std::max(working.known_until_ns, static_cast<std::int64_t>(point.host_before_ns));
  working.map = trace::ClockMap(std::move(points), working.unit);
}

/// Every second one of the older half goes, so that what is long ago is known the less precisely the longer ago it is.
void DefinitionTable::thin_out(std::vector<trace::ClockPoint>& points) {
  std::sort(points.begin(), points.end(),
            [](const trace::ClockPoint& a, const trace::ClockPoint& b) { return a.host_before_ns < b.host_before_ns; });
  const std::size_t half = points.size() / 2;
  for (std::size_t index = 0; 2 * index < half; ++index) points[index] = points[2 * index];
  points.erase(points.begin() + static_cast<std::ptrdiff_t>((half + 1) / 2), points.begin() + static_cast<std::ptrdiff_t>(half));
}

const ThreadDefinition& DefinitionTable::thread(std::size_t process, std::uint32_t writer) {
  auto& entry = processes_[process].threads[writer];
  if (entry.definition == nullptr) {
    ThreadDefinition& made = definitions_.threads.emplace_back();
    made.index = static_cast<std::uint32_t>(definitions_.threads.size() - 1);
    made.process = &definitions_.processes[process];
    if (entry.record) {
      made.os_thread = entry.record->os_thread;
      made.name = text(process, entry.record->name);
    }
    const auto named = processes_[process].thread_names.find(writer);
    if (named != processes_[process].thread_names.end()) made.name = text(process, named->second);
    entry.definition = &made;
  }
  return *entry.definition;
}

ThreadDefinition& DefinitionTable::made_thread_of_system(std::size_t process_index, std::uint32_t os_thread) {
  Process& process = processes_[process_index];
  if (!process.knows_threads_of_system) {
    process.knows_threads_of_system = true;
    // A number is given again when its thread has ended: the first one stands for all.
    for (ThreadDefinition& thread : definitions_.threads) {
      if (thread.process == &definitions_.processes[process_index]) process.threads_of_system.try_emplace(thread.os_thread, &thread);
    }
  }
  ThreadDefinition*& thread = process.threads_of_system[os_thread];
  if (thread == nullptr) thread = &add_thread(definitions_.processes[process_index], os_thread);
  return *thread;
}

ThreadDefinition& DefinitionTable::add_thread(const ProcessDefinition& process, std::uint32_t os_thread) {
  ThreadDefinition& thread = definitions_.threads.emplace_back();
  thread.index = static_cast<std::uint32_t>(definitions_.threads.size() - 1);
  thread.process = &process;
  thread.os_thread = os_thread;
  return thread;
}

const ThreadDefinition& DefinitionTable::thread_of_system(std::size_t process, std::uint32_t os_thread) {
  return made_thread_of_system(process, os_thread);
}

void DefinitionTable::name_thread(std::size_t process, std::uint32_t os_thread, std::string_view name) {
  std::string& known = made_thread_of_system(process, os_thread).name;
  if (known.empty()) known = name;
}

const QueueDefinition& DefinitionTable::queue(std::size_t process, std::uint32_t id) {
  auto& entry = processes_[process].queues[id];
  if (entry.definition == nullptr) {
    QueueDefinition& made = definitions_.queues.emplace_back();
    made.index = static_cast<std::uint32_t>(definitions_.queues.size() - 1);
    made.id = id;
    made.process = &definitions_.processes[process];
    const Device& its_device = device(process, entry.record ? entry.record->device : 0);
    made.device = its_device.definition;
    made.clock = its_device.clock;
    if (entry.record) {
      made.context = entry.record->context;
      made.name = text(process, entry.record->name);
      made.out_of_order = (entry.record->header.flags & trace::kFlagQueueOutOfOrder) != 0;
      const auto named = processes_[process].queue_names.find(entry.record->native);
      if (named != processes_[process].queue_names.end()) made.name = text(process, named->second);
    }
    entry.definition = &made;
  }
  return *entry.definition;
}

const KernelDefinition& DefinitionTable::kernel(std::size_t process, std::uint32_t id) {
  auto& entry = processes_[process].kernels[id];
  if (entry.definition == nullptr) {
    KernelDefinition& made = definitions_.kernels.emplace_back();
    made.index = static_cast<std::uint32_t>(definitions_.kernels.size() - 1);
    made.process = &definitions_.processes[process];
    if (entry.record) {
      made.raw_name = text(process, entry.record->name);
      made.local_bytes = entry.record->local_bytes;
      made.private_bytes = entry.record->private_bytes;
      made.sub_group = entry.record->sub_group;
    }
    if (made.raw_name.empty()) made.raw_name = id == 0 ? "unnamed kernel" : "kernel " + std::to_string(id);
    made.name = demangle(made.raw_name);
    entry.definition = &made;
  }
  return *entry.definition;
}

const GeometryDefinition* DefinitionTable::geometry(std::size_t process, std::uint32_t id) {
  if (id == 0) return nullptr;
  auto* entry = processes_[process].geometries.find(id);
  if (entry == nullptr || !entry->record) return nullptr;
  if (entry->definition == nullptr) {
    GeometryDefinition& made = definitions_.geometries.emplace_back();
    made.index = static_cast<std::uint32_t>(definitions_.geometries.size() - 1);
    made.dimensions = entry->record->dimensions > 3 ? 3 : entry->record->dimensions;
    std::memcpy(made.offset, entry->record->offset, sizeof made.offset);
    std::memcpy(made.global, entry->record->global, sizeof made.global);
    std::memcpy(made.local, entry->record->local, sizeof made.local);
    entry->definition = &made;
  }
  return entry->definition;
}

const NameDefinition& DefinitionTable::name(std::size_t process, std::uint32_t string) {
  Text* text = string == 0 ? nullptr : processes_[process].texts.find(string);
  if (text == nullptr || !text->known) {
    if (unnamed_ == nullptr) unnamed_ = &make_name("unknown");
    return *unnamed_;
  }
  if (text->definition == nullptr) text->definition = &intern(text->text);
  return *text->definition;
}

const NameDefinition& DefinitionTable::intern(std::string_view text) {
  const auto found = names_.find(text);
  if (found != names_.end()) return *found->second;
  const NameDefinition& made = make_name(text);
  names_.emplace(made.text, &made);
  return made;
}

const NameDefinition& DefinitionTable::make_name(std::string_view text) {
  NameDefinition& made = definitions_.names.emplace_back();
  made.index = static_cast<std::uint32_t>(definitions_.names.size() - 1);
  made.text = text;
  return made;
}

void DefinitionTable::set_error(const ClockDefinition& clock, std::uint64_t median_ns, std::uint64_t max_ns) {
  definitions_.clocks[clock.index].error_median_ns = median_ns;
  definitions_.clocks[clock.index].error_max_ns = max_ns;
}

}  // namespace xpu::profiler
