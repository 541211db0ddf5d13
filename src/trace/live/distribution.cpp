#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "base/probe.hpp"
#include "trace/attachment.hpp"
#include "trace/entry.hpp"
#include "trace/live/captures.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {

using base::Mutex;
using base::MutexLock;

constinit Mutex g_transition_mutex;
constinit Mutex g_captures_mutex;
constinit Captures* g_captures = nullptr;
constinit Captures* g_inherited_captures = nullptr;
constinit Segment* g_capture_segment = nullptr;
constinit std::atomic<std::uint32_t> g_fork_generation{0};

void make_room(LiveCapture::Impl& capture) {
  if (capture.waiting.size() == capture.waiting.capacity()) capture.waiting.reserve(2 * capture.waiting.size() + 16);
}

namespace {

std::uint32_t wanted_by(const CaptureOptions& options) {
  std::uint32_t wanted = probe::kOperations;
  if (options.host_exit_times) wanted |= probe::kHostExitTimes;
  if (options.all_ticks) wanted |= probe::kAllTicks;
  if (options.waits) wanted |= probe::kWaits;
  if (options.calls) wanted |= probe::kCalls;
  if (options.memory) wanted |= probe::kMemory;
  if (options.annotations) wanted |= probe::kAnnotations;
  return wanted;
}

const LossRecord* losses_of(const ChunkHeader& chunk) {
  return reinterpret_cast<const LossRecord*>(reinterpret_cast<const std::byte*>(&chunk) + kChunkRecordsEnd);
}

/// Also what was counted in a chunk whose records had been handed out long before: its thread counts there until it finds another one.
bool is_handed_out(const ChunkHeader& full, const ChunkProgress& progress) {
  if (full.committed.load(std::memory_order_relaxed) != progress.handed_bytes) return false;
  if (full.filtered.load(std::memory_order_relaxed) != progress.handed_filtered) return false;
  const std::uint32_t count = std::min<std::uint32_t>(full.loss_count.load(std::memory_order_relaxed), kMaxLossSlots);
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    const std::uint64_t handed = slot < progress.handed_losses.size() ? progress.handed_losses[slot] : 0;
    if (losses_of(full)[slot].count != handed) return false;
  }
  return true;
}

void recycle_if_done(std::uint32_t index, const ChunkProgress& progress) XPU_REQUIRES(g_captures_mutex) {
  const ChunkHeader& chunk = g_capture_segment->chunk(index);
  if (progress.pins != 0 || chunk.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(ChunkState::full)) return;
  if (!is_handed_out(chunk, progress)) return;
  ChunkProgress& mutable_progress = g_captures->chunks[index];
  mutable_progress = ChunkProgress{};
  g_capture_segment->free_chunk(index);
}

void unpin(std::uint32_t index, std::uint32_t fork_generation) noexcept {
  if (fork_generation != g_fork_generation.load(std::memory_order_relaxed)) return;
  const MutexLock lock(g_captures_mutex);
  ChunkProgress& progress = g_captures->chunks[index];
  --progress.pins;
  recycle_if_done(index, progress);
}

/// Keeps a chunk from being written again for as long as a buffer in it lives.
class Pin {
 public:
  explicit Pin(std::uint32_t index) XPU_REQUIRES(g_captures_mutex)
      : index_(index), fork_generation_(g_fork_generation.load(std::memory_order_relaxed)) {
    ++g_captures->chunks[index].pins;
  }
  ~Pin() { unpin(index_, fork_generation_); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  const std::uint32_t index_, fork_generation_;
};

/// What a capture that is paused since then needs all the same: what began before, its end, and descriptions.
bool is_needed_while_paused(const RecordHeader& header, std::uint64_t paused_at_ns) {
  if (describes(header)) return true;
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::operation_submitted: return reinterpret_cast<const OperationSubmittedRecord&>(header).enter_ns < paused_at_ns;
    case RecordKind::operation_completed:
    // Of whatever operation: without it nobody looks at them.
    case RecordKind::copy_detail:
    case RecordKind::graph_node:
    case RecordKind::external_correlation: return true;
    case RecordKind::loss: return (header.flags & kFlagCompletionLost) != 0;
    default: return false;
  }
}

std::vector<std::byte> copy_needed_while_paused(std::span<const std::byte> records, std::uint64_t paused_at_ns) {
  std::vector<std::byte> kept;
  for_each_record(records, [&](const RecordHeader& header) {
    if (!is_needed_while_paused(header, paused_at_ns)) return;
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    kept.insert(kept.end(), bytes, bytes + header.size);
  });
  return kept;
}

void hand_to(LiveCapture::Impl& capture, RecordBuffer buffer) {
  capture.waiting_bytes += buffer.records().size();
  capture.waiting.push_back(std::move(buffer));
}

bool takes_everything(const LiveCapture::Impl& capture) { return !capture.is_paused || capture.is_owed_the_rest; }

/// Bytes of records of a recording that were copied for captures and are still kept.
constinit std::atomic<std::uint64_t> g_copied_bytes{0};

/// What a chunk of a recording holds goes back to its recorder, so it is copied, once for all captures.
class CopiedRecords {
 public:
  explicit CopiedRecords(std::span<const std::byte> records) : bytes_(records.begin(), records.end()) { g_copied_bytes += bytes_.size(); }
  ~CopiedRecords() { g_copied_bytes -= bytes_.size(); }
  CopiedRecords(const CopiedRecords&) = delete;
  CopiedRecords& operator=(const CopiedRecords&) = delete;
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  const std::vector<std::byte> bytes_;
};

RecordBuffer make_shared_buffer(std::uint32_t chunk, std::span<const std::byte> records) XPU_REQUIRES(g_captures_mutex) {
  if (g_capture_segment->is_in_memory()) return {records, std::make_shared<const Pin>(chunk)};
  auto copied = std::make_shared<const CopiedRecords>(records);
  return {copied->bytes(), copied};
}

bool is_there_room(std::uint64_t bytes) XPU_REQUIRES(g_captures_mutex) {
  if (g_capture_segment->is_in_memory()) return true;  // publishers have seen to it
  std::uint64_t allowed = 0;
  for (const LiveCapture::Impl* capture : g_captures->all) allowed += capture->options.max_bytes;
  return g_copied_bytes.load(std::memory_order_relaxed) + bytes <= allowed;
}

/// To every capture; those that are not paused share the memory.
void hand_out(std::uint32_t chunk, std::span<const std::byte> records) XPU_REQUIRES(g_captures_mutex) {
  bool is_shared = false;
  for (LiveCapture::Impl* capture : g_captures->all) {
    make_room(*capture);
    is_shared = is_shared || takes_everything(*capture);
    if (takes_everything(*capture)) continue;
    std::vector<std::byte> kept = copy_needed_while_paused(records, capture->paused_at_ns);
    if (!kept.empty()) hand_to(*capture, RecordBuffer(std::move(kept)));
  }
  if (!is_shared) return;
  if (!is_there_room(records.size())) {
    for (LiveCapture::Impl* capture : g_captures->all) {
      if (takes_everything(*capture)) hand_to(*capture, RecordBuffer(capture->dropped.drop(records)));
    }
    return;
  }
  const RecordBuffer shared = make_shared_buffer(chunk, records);
  for (LiveCapture::Impl* capture : g_captures->all) {
    if (takes_everything(*capture)) hand_to(*capture, shared);
  }
}

/// All but the count, of a slot whose thread may count on meanwhile.
LossRecord read_while_counted(LossRecord& slot) {
  const auto get = [](auto& field) { return std::atomic_ref(field).load(std::memory_order_relaxed); };
  LossRecord record{};
  record.header = slot.header;
  record.first_operation = slot.first_operation;
  record.last_operation = get(slot.last_operation);
  record.time_ns = get(slot.time_ns);
  record.queue = slot.queue;
  record.last_sequence = get(slot.last_sequence);
  record.cause = slot.cause;
  return record;
}

/// Losses are counted up in place: what came since the last time is a record of its own.
void hand_out_losses(ChunkHeader& chunk, ChunkProgress& progress) XPU_REQUIRES(g_captures_mutex) {
  const std::uint32_t count = std::min<std::uint32_t>(chunk.loss_count.load(std::memory_order_acquire), kMaxLossSlots);
  progress.handed_losses.resize(std::max<std::size_t>(progress.handed_losses.size(), count));
  std::vector<std::byte> news;
  auto* slots = reinterpret_cast<LossRecord*>(reinterpret_cast<std::byte*>(&chunk) + kChunkRecordsEnd);
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    const std::uint64_t total = std::atomic_ref(slots[slot].count).load(std::memory_order_acquire);
    if (total == progress.handed_losses[slot]) continue;
    LossRecord record = read_while_counted(slots[slot]);
    record.count = total - progress.handed_losses[slot];
    progress.handed_losses[slot] = total;
    const auto* bytes = reinterpret_cast<const std::byte*>(&record);
    news.insert(news.end(), bytes, bytes + sizeof record);
  }
  if (news.empty()) return;
  for (LiveCapture::Impl* capture : g_captures->all) {
    make_room(*capture);
    // Who is paused lost nothing but ends.
    std::vector<std::byte> own = takes_everything(*capture) ? news : copy_needed_while_paused(news, capture->paused_at_ns);
    if (!own.empty()) hand_to(*capture, RecordBuffer(std::move(own)));
  }
}

/// What this chunk holds beyond what was handed out.
void distribute_chunk(std::uint32_t index, ChunkHeader& chunk, ChunkProgress& progress) XPU_REQUIRES(g_captures_mutex) {
  const std::uint64_t committed = chunk.committed.load(std::memory_order_acquire);
  if (committed > progress.handed_bytes) {
    const std::byte* first = reinterpret_cast<const std::byte*>(&chunk) + kChunkHeaderBytes + progress.handed_bytes;
    hand_out(index, {first, committed - progress.handed_bytes});
    progress.handed_bytes = committed;
  }
  hand_out_losses(chunk, progress);
  const std::uint64_t filtered = chunk.filtered.load(std::memory_order_relaxed);
  g_captures->filtered += filtered - progress.handed_filtered;
  progress.handed_filtered = filtered;
}

/// A chunk of a recording is the recorder's once it is full. Its thread, which is in `copy_full_chunk` by then, waits for the lock.
void distribute_recorded_chunk(std::uint32_t index) XPU_REQUIRES(g_captures_mutex) {
  if (g_captures->chunks.size() <= index) g_captures->chunks.resize(index + 1);
  ChunkHeader& chunk = g_capture_segment->chunk(index);
  if (chunk.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(ChunkState::open)) return;
  // Whose it is may be being written until the first record is committed, which says that it has been.
  if (chunk.committed.load(std::memory_order_acquire) == 0) return;
  ChunkProgress& progress = g_captures->chunks[index];
  const std::uint64_t use = std::uint64_t{chunk.writer} << 32 | chunk.sequence;
  if (progress.use != use) progress = ChunkProgress{};
  progress.use = use;
  distribute_chunk(index, chunk, progress);
}

/// Under the lock, so that a chunk that is found open there stays so for as long as it is looked at.
void copy_full_chunk(Segment& segment, std::uint32_t index) noexcept {
  const MutexLock lock(g_captures_mutex);
  if (&segment == g_capture_segment && !g_captures->all.empty()) distribute_recorded_chunk(index);
  Segment::mark_full(segment.chunk(index));
}

}  // namespace

void distribute() {
  if (g_capture_segment == nullptr) return;
  const std::uint32_t count = g_capture_segment->chunk_count();
  if (g_captures->chunks.size() < count) g_captures->chunks.resize(count);
  for (std::uint32_t index = 0; index < count; ++index) {
    if (!g_capture_segment->is_in_memory()) {
      distribute_recorded_chunk(index);
      continue;
    }
    ChunkHeader& chunk = g_capture_segment->chunk(index);
    ChunkProgress& progress = g_captures->chunks[index];
    // Before `committed`: what a full chunk says is final.
    const std::uint32_t state = chunk.state.load(std::memory_order_acquire);
    if (state != static_cast<std::uint32_t>(ChunkState::open) && state != static_cast<std::uint32_t>(ChunkState::full)) continue;
    distribute_chunk(index, chunk, progress);
    recycle_if_done(index, progress);
  }
  for (LiveCapture::Impl* capture : g_captures->all) capture->is_owed_the_rest = false;
}

std::uint64_t count_filtered() { return g_captures->filtered + g_capture_segment->header().filtered.load(std::memory_order_relaxed); }

namespace {

/// What was last said about operations; a forked child has it from its parent.
constinit bool g_has_filter XPU_GUARDED_BY(g_captures_mutex) = false;

/// Operations that no capture wants are not recorded. One that is paused wants none, but while all are, nothing is.
void update_filter() noexcept XPU_REQUIRES(g_captures_mutex) {
  const auto is_selective = [](const LiveCapture::Impl* capture) { return !capture->wanted_operations.wants_all(); };
  const bool has_filter = std::any_of(g_captures->all.begin(), g_captures->all.end(), is_selective);
  if (!has_filter && !g_has_filter) return;
  g_has_filter = has_filter;
  std::vector<WantedOperations> readers;
  try {
    for (const LiveCapture::Impl* capture : g_captures->all) {
      if (!capture->is_paused) readers.push_back(capture->wanted_operations);
    }
  } catch (const std::bad_alloc&) {
    readers.clear();  // everything is recorded, and left out by whoever reads
  }
  internal::set_readers(std::move(readers));
}

}  // namespace

std::uint32_t update_wanted() {
  std::uint32_t wanted = wanted_by_recording();
  std::uint64_t bytes = 0;
  for (const LiveCapture::Impl* capture : g_captures->all) {
    if (!capture->is_paused) wanted |= wanted_by(capture->options);
    bytes += capture->options.max_bytes;
  }
  if (!g_capture_segment->is_in_memory()) {
    // Memory and pauses are the recorder's business.
    g_capture_segment->set_full_chunk_handler(g_captures->all.empty() ? nullptr : copy_full_chunk);
    internal::set_wanted(wanted);
    return wanted;
  }
  update_filter();  // beside a recording its own filter stays
  g_capture_segment->set_chunk_limit(g_captures->in_use_before + bytes / kChunkBytes);
  internal::set_wanted(wanted);
  g_capture_segment->header().paused.exchange(wanted == 0 ? 1 : 0, std::memory_order_seq_cst);
  return wanted;
}

}  // namespace xpu::trace
