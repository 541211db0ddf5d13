#include "trace/writer.hpp"

#include <unistd.h>

#include <algorithm>

#include "trace/definitions.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::trace {
namespace {

/// How long a writer that found no chunk drops records without looking again, where looking touches a page per chunk.
constexpr std::uint64_t kRetryNs = 200'000;

/// Geometry ids are unique in the process, across forks and attachments.
constinit std::atomic<std::uint32_t> g_geometries{0};

std::size_t hash_of(const probe::Geometry& geometry) {
  std::uint64_t hash = geometry.dimensions;
  for (int axis = 0; axis < 3; ++axis) {
    hash = (hash ^ geometry.global[axis]) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ geometry.local[axis]) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ geometry.offset[axis]) * 0x9e3779b97f4a7c15u;
  }
  return static_cast<std::size_t>(hash >> 32);
}

}  // namespace

std::byte* Writer::reserve_in_next_chunk(std::size_t bytes) noexcept {
  if (bytes > kChunkRecordsEnd - kChunkHeaderBytes || segment_.is_off()) return nullptr;
  const std::uint64_t now = now_ns();
  if (now < retry_at_ns_ && !segment_.is_known_to_have_room()) return nullptr;
  ChunkHeader* taken = segment_.take_chunk(id_, next_chunk_sequence_, now);
  if (taken == nullptr) {
    retry_at_ns_ = now + kRetryNs;
    return nullptr;
  }
  release_chunk();
  ++next_chunk_sequence_;
  chunk_ = taken;
  auto* base = reinterpret_cast<std::byte*>(taken);
  cursor_ = base + kChunkHeaderBytes;
  end_ = base + kChunkRecordsEnd;

  if (!thread_is_written_) {
    thread_is_written_ = true;  // so that a name that needs a chunk of its own does not come here again
    thread_is_written_ = write_thread();
  }
  // A capture in memory is told what is missing when it ends.
  if (!segment_.is_in_memory() && segment_.definitions_missing.exchange(false, std::memory_order_acq_rel)) write_definitions_(*this);
  if (!segment_.is_paused()) write_cost_of_chunk(now);
  return reserve(bytes);
}

void Writer::write_cost_of_chunk(std::uint64_t begin_ns) noexcept {
  OverheadRecord record{};
  record.header = {static_cast<std::uint16_t>(RecordKind::overhead), sizeof record, 0};
  record.begin_ns = begin_ns;
  record.end_ns = now_ns();
  record.count = 1;
  record.type = static_cast<std::uint32_t>(probe::OverheadType::resource);
  record.thread = id_;
  // Definitions may have filled it, and another one would have a cost of its own.
  if (has_room(sizeof record) && !append(record)) count_dropped({.flags = kFlagNotOperation});
}

void Writer::introduce_to_reader() noexcept {
  epoch_ = header_.epoch.load(std::memory_order_acquire);
  last_geometry_id_ = 0;
  for (KnownGeometry& known : geometries_) known.id = 0;
  thread_is_written_ = chunk_ != nullptr && write_thread();
}

bool Writer::write_thread() noexcept {
  // The name goes along, because a thread is named at its first record, where the text itself may not be published.
  if (thread_name_ != 0 && !append_string(thread_name_, probe::text_of(thread_name_))) segment_.definitions_missing.store(true);
  ThreadRecord record{};
  record.header = {static_cast<std::uint16_t>(RecordKind::thread), sizeof record, 0};
  record.thread = id_;
  record.os_thread = static_cast<std::uint32_t>(gettid());
  record.name = thread_name_;
  record.process = static_cast<std::uint32_t>(header_.pid);
  if (append(record)) return true;
  segment_.definitions_missing.store(true);
  return false;
}

void Writer::release_chunk() noexcept {
  if (chunk_ == nullptr) return;
  segment_.hand_over_full(*chunk_);
  chunk_ = nullptr;
  cursor_ = end_ = nullptr;
}

bool Writer::append_string(probe::Id id, std::string_view text) noexcept {
  do {
    const std::string_view part = text.substr(0, kMaxStringBytes);
    text.remove_prefix(part.size());
    std::byte* place = reserve(string_record_bytes(part));
    if (place == nullptr) return false;
    fill_string_record(place, id, part, !text.empty());
    commit(string_record_bytes(part));
  } while (!text.empty());
  return true;
}

bool Writer::append_records(std::span<const std::byte> records) noexcept {
  while (records.size() >= sizeof(RecordHeader)) {
    RecordHeader header;
    std::memcpy(&header, records.data(), sizeof header);
    std::byte* place = reserve(header.size);
    if (place == nullptr) return false;
    std::memcpy(place, records.data(), header.size);
    commit(header.size);
    records = records.subspan(header.size);
  }
  return true;
}

void Writer::count_dropped(const Dropped& dropped) noexcept {
  if (chunk_ == nullptr) {
    header_.lost_before_any_chunk.fetch_add(dropped.count, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t now = now_ns();
  auto* slots = reinterpret_cast<LossRecord*>(reinterpret_cast<std::byte*>(chunk_) + kChunkRecordsEnd);
  // Slot 0 is for records that are no operations, the last one for operations whose queue has no slot of its own: they have no queue, and
  // the two must not be mixed, because only operations enter the books.
  const bool is_operation = (dropped.flags & kFlagNotOperation) == 0;
  std::uint32_t used = chunk_->loss_count.load(std::memory_order_relaxed);
  const auto start_slot = [&](std::uint32_t flags, std::uint32_t queue) {
    LossRecord& slot = slots[used++];
    slot = LossRecord{};
    slot.header = {static_cast<std::uint16_t>(RecordKind::loss), sizeof slot, flags};
    slot.queue = queue;
    slot.cause = static_cast<std::uint32_t>(dropped.cause);
    slot.first_operation = dropped.first_operation;
    slot.time_ns = now;
  };
  if (used == 0) start_slot(kFlagNotOperation, 0);
  const auto matches = [&](const LossRecord& slot) {
    return slot.queue == dropped.queue && slot.header.flags == dropped.flags && slot.cause == static_cast<std::uint32_t>(dropped.cause);
  };
  std::uint32_t index = 0;
  if (is_operation) {
    index = 1;
    while (index < used && !matches(slots[index])) ++index;
    if (index == kMaxLossSlots) --index;
    if (index == used) start_slot(dropped.flags, index == kMaxLossSlots - 1 ? 0 : dropped.queue);
  }
  // A capture reads them meanwhile.
  const auto store = [](auto& field, auto value) { std::atomic_ref(field).store(value, std::memory_order_relaxed); };
  LossRecord& slot = slots[index];
  store(slot.last_operation, dropped.last_operation);
  if (slot.queue != 0) store(slot.last_sequence, std::max(slot.last_sequence, dropped.last_sequence));
  store(slot.time_ns, now);
  // The counts last: a process that is killed in between has counted too little, never something that was not.
  std::atomic_ref(slot.count).store(slot.count + dropped.count, std::memory_order_release);
  chunk_->loss_count.store(used, std::memory_order_release);
}

void Writer::count_filtered() noexcept {
  if (chunk_ == nullptr) {
    header_.filtered.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  // One writer per chunk, so no atomic addition is needed.
  chunk_->filtered.store(chunk_->filtered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

std::uint32_t Writer::find_geometry(const probe::Geometry& geometry, bool* is_new) noexcept {
  *is_new = false;
  if (const std::uint32_t last = find_last_geometry(geometry)) return last;
  const KnownGeometry& known = geometries_[hash_of(geometry) % kGeometries];
  if (known.id != 0 && same(known.geometry, geometry)) {
    last_geometry_ = geometry;
    last_geometry_id_ = known.id;
    return known.id;
  }
  *is_new = true;
  return g_geometries.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Writer::remember_geometry(const probe::Geometry& geometry, std::uint32_t id) noexcept {
  geometries_[hash_of(geometry) % kGeometries] = {geometry, id};
  last_geometry_ = geometry;
  last_geometry_id_ = id;
}

probe::Id Writer::intern_pattern(std::string_view pattern) noexcept {
  if (pattern_id_ != 0 && pattern == std::string_view(pattern_, pattern_bytes_)) return pattern_id_;
  const probe::Id id = probe::intern(pattern);
  if (pattern.size() <= kMaxPatternBytes) {
    pattern_id_ = 0;  // what is half written is nobody's
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::memcpy(pattern_, pattern.data(), pattern.size());
    pattern_bytes_ = static_cast<std::uint32_t>(pattern.size());
    std::atomic_signal_fence(std::memory_order_seq_cst);
    pattern_id_ = id;
  }
  return id;
}

void Writer::change_queue(std::uint32_t queue) noexcept {
  QueueSequence& left = other_queues_[last_queue_.queue % kQueues];
  if (left.queue != last_queue_.queue && left.queue != 0) definitions().note_sequence(left.queue, left.sequence);
  left = last_queue_;
  const QueueSequence& entered = other_queues_[queue % kQueues];
  last_queue_ = entered.queue == queue ? entered : QueueSequence{queue, 0};
}

Writer::~Writer() {
  release_chunk();
  change_queue(0);  // the last one is among the others now
  for (const QueueSequence& entry : other_queues_) {
    if (entry.queue != 0) definitions().note_sequence(entry.queue, entry.sequence);
  }
}

}  // namespace xpu::trace
