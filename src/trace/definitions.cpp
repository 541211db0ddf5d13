#include "trace/definitions.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace xpu::trace {
namespace {

using base::MutexLock;

constexpr std::size_t kMaxProcessNameBytes = 256;
constexpr std::uint32_t kMaxContextDevices = 16'000;  // a record's size is 16 bits

std::int32_t rank_of_process() noexcept {
  for (const char* name : {"XPU_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* text = secure_getenv(name);
    if (text == nullptr || *text == '\0') continue;
    char* end = nullptr;
    const long rank = std::strtol(text, &end, 10);
    if (*end == '\0' && rank >= 0 && rank <= INT32_MAX) return static_cast<std::int32_t>(rank);
  }
  return -1;
}

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

template <typename Record>
std::vector<std::byte> bytes_of(const Record& record) {
  const auto* begin = reinterpret_cast<const std::byte*>(&record);
  return {begin, begin + sizeof record};
}

template <typename Record>
RecordHeader header_of(RecordKind kind, std::uint32_t flags = 0) {
  return {static_cast<std::uint16_t>(kind), static_cast<std::uint16_t>(sizeof(Record)), flags};
}

probe::Id intern_unless_empty(std::string_view text) { return text.empty() ? 0 : probe::intern(text); }

std::vector<std::byte> encode(probe::Id id, const probe::DeviceDescription& device) {
  DeviceRecord record{};
  record.header = header_of<DeviceRecord>(RecordKind::device);
  record.device = id;
  record.parent = device.parent;
  record.name = intern_unless_empty(device.name);
  record.driver = intern_unless_empty(device.driver);
  std::memcpy(record.uuid, device.uuid, sizeof record.uuid);
  record.pci_domain = device.pci_domain;
  std::memcpy(record.pci, device.pci, sizeof record.pci);
  record.tick_numerator = device.tick_numerator;
  record.tick_denominator = device.tick_denominator;
  record.valid_bits = device.valid_bits;
  record.clock_domain = static_cast<std::uint32_t>(device.clock_domain);
  record.native = device.native;
  std::vector<std::byte> all = bytes_of(record);
  const auto add_fact = [&](FactKey key, FactType type, std::uint64_t value) {
    if (value == 0) return;
    FactRecord fact{};
    fact.header = header_of<FactRecord>(RecordKind::fact);
    fact.subject = id;
    fact.key = static_cast<std::uint32_t>(key);
    fact.type = static_cast<std::uint32_t>(type);
    fact.value = value;
    const std::vector<std::byte> bytes = bytes_of(fact);
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  add_fact(FactKey::device_vendor, FactType::text, intern_unless_empty(device.vendor));
  add_fact(FactKey::device_driver_version, FactType::text, intern_unless_empty(device.driver_version));
  add_fact(FactKey::device_total_memory_bytes, FactType::number, device.total_memory_bytes);
  add_fact(FactKey::device_max_allocation_bytes, FactType::number, device.max_allocation_bytes);
  add_fact(FactKey::device_local_memory_bytes, FactType::number, device.local_memory_bytes);
  add_fact(FactKey::device_max_work_group_size, FactType::number, device.max_work_group_size);
  add_fact(FactKey::device_compute_units, FactType::number, device.compute_units);
  add_fact(FactKey::device_max_clock_mhz, FactType::number, device.max_clock_mhz);
  return all;
}

std::vector<std::byte> encode(probe::Id id, const probe::ContextDescription& context) {
  const std::uint32_t count = context.devices == nullptr ? 0 : std::min(context.device_count, kMaxContextDevices);
  ContextRecord record{};
  record.header = header_of<ContextRecord>(RecordKind::context);
  const std::size_t bytes = padded(sizeof record + count * sizeof(std::uint32_t));
  record.header.size = static_cast<std::uint16_t>(bytes);
  record.context = id;
  record.device_count = count;
  record.native = context.native;
  std::vector<std::byte> whole = bytes_of(record);
  whole.resize(bytes);
  if (count != 0) std::memcpy(whole.data() + sizeof record, context.devices, count * sizeof(std::uint32_t));
  return whole;
}

std::vector<std::byte> encode(probe::Id id, const probe::QueueDescription& queue) {
  QueueRecord record{};
  record.header = header_of<QueueRecord>(RecordKind::queue, queue.out_of_order ? kFlagQueueOutOfOrder : 0);
  record.queue = id;
  record.context = queue.context;
  record.device = queue.device;
  record.properties = queue.properties;
  record.native = queue.native;
  record.priority = queue.priority;
  record.published_before = queue.published_before;
  return bytes_of(record);
}

std::vector<std::byte> encode(probe::Id id, const probe::ModuleDescription& module) {
  ModuleRecord record{};
  record.header = header_of<ModuleRecord>(RecordKind::module);
  record.module = id;
  record.context = module.context;
  record.name = intern_unless_empty(module.name);
  record.source_bytes = module.source_bytes;
  record.hash = module.hash;
  return bytes_of(record);
}

std::vector<std::byte> encode(probe::Id id, const probe::KernelDescription& kernel) {
  KernelRecord record{};
  record.header = header_of<KernelRecord>(RecordKind::kernel);
  record.what = id;
  record.name = intern_unless_empty(kernel.name);
  record.module = kernel.module;
  record.device = kernel.device;
  record.native = kernel.native;
  record.local_bytes = kernel.local_bytes;
  record.private_bytes = kernel.private_bytes;
  record.sub_group = kernel.sub_group;
  return bytes_of(record);
}

}  // namespace

std::size_t string_record_bytes(std::string_view text) noexcept { return sizeof(StringRecord) + padded(text.size()); }

void fill_string_record(std::byte* place, probe::Id id, std::string_view text, bool continues) noexcept {
  StringRecord record{};
  record.header = {static_cast<std::uint16_t>(RecordKind::string), static_cast<std::uint16_t>(string_record_bytes(text)),
                   continues ? kFlagContinues : 0};
  record.id = id;
  record.bytes = static_cast<std::uint32_t>(text.size());
  std::memcpy(place, &record, sizeof record);
  if (text.empty()) return;
  std::memset(place + record.header.size - 8, 0, 8);
  std::memcpy(place + sizeof record, text.data(), text.size());
}

void append_string_records(std::vector<std::byte>& records, probe::Id id, std::string_view text) {
  do {
    const std::string_view part = text.substr(0, kMaxStringBytes);
    text.remove_prefix(part.size());
    const std::size_t end = records.size();
    records.resize(end + string_record_bytes(part));
    fill_string_record(records.data() + end, id, part, !text.empty());
  } while (!text.empty());
}

std::vector<std::byte> encode_process(std::uint64_t pid, std::uint64_t start_ns) noexcept {
  const std::size_t name_bytes = std::strlen(program_invocation_short_name);
  ProcessRecord record{};
  const std::size_t bytes = sizeof record + padded(std::min(name_bytes, kMaxProcessNameBytes));
  record.header = {static_cast<std::uint16_t>(RecordKind::process), static_cast<std::uint16_t>(bytes), 0};
  record.pid = static_cast<std::uint32_t>(pid);
  record.parent = static_cast<std::uint32_t>(getppid());
  record.start_ns = start_ns;
  record.rank = rank_of_process();
  record.name_bytes = static_cast<std::uint32_t>(std::min(name_bytes, kMaxProcessNameBytes));
  try {
    std::vector<std::byte> whole = bytes_of(record);
    whole.resize(bytes);
    std::memcpy(whole.data() + sizeof record, program_invocation_short_name, record.name_bytes);
    return whole;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

std::vector<std::byte> encode_object(probe::ObjectKind kind, probe::Id id, const void* description) noexcept {
  if (description == nullptr) return {};
  try {
    switch (kind) {
      case probe::ObjectKind::device: return encode(id, *static_cast<const probe::DeviceDescription*>(description));
      case probe::ObjectKind::context: return encode(id, *static_cast<const probe::ContextDescription*>(description));
      case probe::ObjectKind::queue: return encode(id, *static_cast<const probe::QueueDescription*>(description));
      case probe::ObjectKind::module: return encode(id, *static_cast<const probe::ModuleDescription*>(description));
      case probe::ObjectKind::kernel: return encode(id, *static_cast<const probe::KernelDescription*>(description));
      case probe::ObjectKind::memory:
      case probe::ObjectKind::count: break;
    }
  } catch (const std::bad_alloc&) {
    // As if it had not been published: the reader shows the bare id.
  }
  return {};
}

ObjectEndRecord encode_object_end(probe::ObjectKind kind, probe::Id id, std::uint64_t time_ns) noexcept {
  ObjectEndRecord record{};
  record.header = header_of<ObjectEndRecord>(RecordKind::object_end);
  record.kind = static_cast<std::uint32_t>(kind);
  record.id = id;
  record.time_ns = time_ns;
  return record;
}

void Definitions::put(probe::ObjectKind kind, probe::Id id, std::span<const std::byte> record) noexcept {
  try {
    const MutexLock lock(mutex_);
    objects_[key(kind, id)].records.assign(record.begin(), record.end());  // newer facts about the same object; its sequence stays
  } catch (const std::bad_alloc&) {
    // It has been written once; only a rewrite would miss it.
  }
}

void Definitions::end(probe::ObjectKind kind, probe::Id id, const ObjectEndRecord& record, bool keep_until_written) noexcept {
  try {
    const MutexLock lock(mutex_);
    const auto found = objects_.find(key(kind, id));
    if (found == objects_.end()) return;
    if (!keep_until_written) {
      objects_.erase(found);
      return;
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(&record);
    found->second.records.insert(found->second.records.end(), bytes, bytes + sizeof record);
    found->second.ended = true;
  } catch (const std::bad_alloc&) {
    // It stays in the list as if it lived.
  }
}

void Definitions::forget_ended() noexcept {
  const MutexLock lock(mutex_);
  std::erase_if(objects_, [](const auto& object) { return object.second.in_snapshot; });
}

void Definitions::note_sequence(probe::Id queue, std::uint32_t sequence) noexcept {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(key(probe::ObjectKind::queue, queue));
  if (found != objects_.end()) found->second.sequence = std::max(found->second.sequence, sequence);
}

void Definitions::begin_child() noexcept {
  const MutexLock lock(mutex_);
  for (auto& [name, object] : objects_) {
    if (object.sequence == 0 || object.records.size() < sizeof(QueueRecord)) continue;
    auto* record = reinterpret_cast<QueueRecord*>(object.records.data());
    record->published_before = std::max(record->published_before, object.sequence);
  }
}

void Definitions::clear() noexcept {
  const MutexLock lock(mutex_);
  objects_.clear();
}

std::vector<std::byte> Definitions::find(probe::ObjectKind kind, probe::Id id) noexcept {
  try {
    const MutexLock lock(mutex_);
    const auto found = objects_.find(key(kind, id));
    if (found != objects_.end()) return found->second.records;
  } catch (const std::bad_alloc&) {
    // Nobody knows it then.
  }
  return {};
}

std::vector<std::byte> Definitions::snapshot() noexcept {
  std::vector<std::byte> all;
  try {
    const MutexLock lock(mutex_);
    std::size_t bytes = 0;
    for (const auto& object : objects_) bytes += object.second.records.size();
    all.reserve(bytes);
    for (auto& [name, object] : objects_) {
      all.insert(all.end(), object.records.begin(), object.records.end());
      object.in_snapshot = object.ended;
    }
  } catch (const std::bad_alloc&) {
    all.clear();
  }
  return all;
}

std::vector<std::byte> Definitions::copy() noexcept {
  std::vector<std::byte> all;
  try {
    const MutexLock lock(mutex_);
    for (const auto& [name, object] : objects_) all.insert(all.end(), object.records.begin(), object.records.end());
  } catch (const std::bad_alloc&) {
    all.clear();
  }
  return all;
}

Definitions& definitions() noexcept {
  alignas(Definitions) static std::byte storage[sizeof(Definitions)];
  static auto* const instance = new (storage) Definitions;
  return *instance;
}

}  // namespace xpu::trace
