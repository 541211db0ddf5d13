#include "runtime/pending_operations.hpp"

#include <new>

namespace xpu::runtime {

bool PendingOperations::add_chunk() noexcept {
  if (chunks_ == nullptr) chunks_ = new (std::nothrow) std::array<std::atomic<Chunk*>, kMaxChunks>();
  const std::uint32_t count = chunk_count_.load(std::memory_order_relaxed);
  if (chunks_ == nullptr || count == kMaxChunks) return false;
  auto* chunk = new (std::nothrow) Chunk();
  if (chunk == nullptr) return false;
  for (std::uint32_t index = kSlotsPerChunk; index-- != 0;) {
    Slot& slot = (*chunk)[index];
    slot.index = count * kSlotsPerChunk + index;
    slot.next_free = index + 1 < kSlotsPerChunk ? &(*chunk)[index + 1] : nullptr;
  }
  (*chunks_)[count].store(chunk, std::memory_order_release);
  chunk_count_.store(count + 1, std::memory_order_release);
  // Others may push meanwhile: the new slots go in front of theirs.
  Slot* head = free_.load(std::memory_order_relaxed);
  do {
    chunk->back().next_free = head;
  } while (!free_.compare_exchange_weak(head, &chunk->front(), std::memory_order_release, std::memory_order_relaxed));
  return true;
}

std::uint64_t PendingOperations::open(const probe::Subscriber* listener, probe::OperationId operation, probe::Id queue) noexcept {
  Slot* slot = free_.load(std::memory_order_acquire);
  if (slot == nullptr) [[unlikely]] {
    if (!add_chunk()) return 0;
    slot = free_.load(std::memory_order_acquire);
  }
  while (!free_.compare_exchange_weak(slot, slot->next_free, std::memory_order_acquire, std::memory_order_acquire)) {
  }
  slot->listener = listener;
  slot->operation = operation;
  slot->queue = queue;
  slot->state.store(State::submitting, std::memory_order_release);
  return static_cast<std::uint64_t>(slot->generation.load(std::memory_order_relaxed)) << 32 | (slot->index + 1);
}

PendingOperations::Slot* PendingOperations::find(std::uint64_t token) noexcept {
  const std::uint32_t index = static_cast<std::uint32_t>(token) - 1;
  const std::uint32_t chunk = index / kSlotsPerChunk;
  if (chunk >= chunk_count_.load(std::memory_order_acquire)) return nullptr;
  Slot& slot = (*(*chunks_)[chunk].load(std::memory_order_acquire))[index % kSlotsPerChunk];
  return slot.generation.load(std::memory_order_acquire) == static_cast<std::uint32_t>(token >> 32) ? &slot : nullptr;
}

void PendingOperations::release(Slot& slot) noexcept {
  slot.state.store(State::free, std::memory_order_relaxed);
  // From here on a late record of this operation finds nothing.
  slot.generation.fetch_add(1, std::memory_order_release);
  Slot* head = free_.load(std::memory_order_relaxed);
  do {
    slot.next_free = head;
  } while (!free_.compare_exchange_weak(head, &slot, std::memory_order_release, std::memory_order_relaxed));
}

void PendingOperations::publish(const Slot& slot) const noexcept {
  const hal::Completion& record = slot.completion;
  probe::Completion completion;
  completion.queue = slot.queue;
  switch (record.status) {
    case hal::CompletionStatus::ok: completion.status = probe::CompletionStatus::ok; break;
    case hal::CompletionStatus::failed: completion.status = probe::CompletionStatus::failed; break;
    case hal::CompletionStatus::untimed: completion.status = probe::CompletionStatus::untimed; break;
  }
  completion.ticks = {record.ticks.queued, record.ticks.submit, record.ticks.start, record.ticks.end};
  // An end before the start, on a counter that may have wrapped between the two.
  if (((record.ticks.end - record.ticks.start) & tick_mask_) > tick_mask_ / 2) {
    completion.ticks.end = completion.ticks.start;
    completion.clamped = true;
  }
  slot.listener->complete(slot.operation, completion);
}

void PendingOperations::submitted(std::uint64_t token) noexcept {
  Slot* slot = find(token);
  if (slot->state.exchange(State::submitted, std::memory_order_acq_rel) == State::completed) {
    publish(*slot);
    release(*slot);
  }
}

void PendingOperations::discard(std::uint64_t token) noexcept {
  Slot* slot = find(token);
  if (slot->state.exchange(State::discarded, std::memory_order_acq_rel) == State::completed) release(*slot);
}

void PendingOperations::refused(std::uint64_t token) noexcept { release(*find(token)); }

void PendingOperations::complete(const hal::Completion& completion) noexcept {
  Slot* slot = find(completion.token);
  if (slot == nullptr || slot->state.load(std::memory_order_acquire) == State::completed) {
    unexpected_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  slot->completion = completion;
  switch (slot->state.exchange(State::completed, std::memory_order_acq_rel)) {
    case State::submitted: publish(*slot); [[fallthrough]];
    case State::discarded: release(*slot); break;
    case State::submitting:  // the submitter publishes it
    case State::free:
    case State::completed: break;
  }
}

void PendingOperations::publish_rest(bool stream_is_idle) noexcept {
  const std::uint32_t chunks = chunk_count_.load(std::memory_order_acquire);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    for (Slot& slot : *(*chunks_)[chunk].load(std::memory_order_acquire)) {
      State expected = State::submitted;
      // Claimed as completed, so that a record that comes now is one too many.
      if (!slot.state.compare_exchange_strong(expected, State::completed, std::memory_order_acq_rel)) continue;
      if (stream_is_idle) {
        slot.listener->lost({slot.queue, probe::LossCause::driver_lost_times, slot.operation, slot.operation, 1});
      } else {
        probe::Completion completion;
        completion.queue = slot.queue;
        completion.status = probe::CompletionStatus::unfinished;
        slot.listener->complete(slot.operation, completion);
      }
    }
  }
}

}  // namespace xpu::runtime
