#include "runtime/pending_operations.hpp"

#include <new>
#include <utility>

namespace xpu::runtime {

PendingOperations::~PendingOperations() {
  Chunk* chunk = chunks_.load(std::memory_order_acquire);
  while (chunk != nullptr) delete std::exchange(chunk, chunk->next);
}

bool PendingOperations::add_chunk() noexcept {
  auto* chunk = chunk_count_ == kMaxChunks ? nullptr : new (std::nothrow) Chunk();
  if (chunk == nullptr) return false;
  ++chunk_count_;
  for (std::uint32_t index = 0; index + 1 < kSlotsPerChunk; ++index) chunk->slots[index].next_free = &chunk->slots[index + 1];
  chunk->next = chunks_.load(std::memory_order_relaxed);
  chunks_.store(chunk, std::memory_order_release);
  // Others may push meanwhile: the new slots go in front of theirs.
  Slot* head = free_.load(std::memory_order_relaxed);
  do {
    chunk->slots.back().next_free = head;
  } while (!free_.compare_exchange_weak(head, &chunk->slots.front(), std::memory_order_release, std::memory_order_relaxed));
  return true;
}

PendingOperations::Slot* PendingOperations::take_slot() noexcept {
  Slot* slot = free_.load(std::memory_order_acquire);
  if (slot == nullptr) {
    if (!add_chunk()) return nullptr;
    slot = free_.load(std::memory_order_acquire);
  }
  while (!free_.compare_exchange_weak(slot, slot->next_free, std::memory_order_acquire, std::memory_order_acquire)) {
  }
  return slot;
}

void PendingOperations::release(Slot& slot) noexcept {
  retire(slot);
  Slot* head = free_.load(std::memory_order_relaxed);
  do {
    slot.next_free = head;
  } while (!free_.compare_exchange_weak(head, &slot, std::memory_order_release, std::memory_order_relaxed));
}

void PendingOperations::complete(const hal::Completion& record) noexcept {
  Slot* const slot = slot_of(record.token);
  if (slot == nullptr || !is_current(*slot, record.token) || slot->state.load(std::memory_order_acquire) == State::completed) [[unlikely]] {
    unexpected_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  static_assert(static_cast<int>(probe::CompletionStatus::ok) == static_cast<int>(hal::CompletionStatus::ok) &&
                static_cast<int>(probe::CompletionStatus::failed) == static_cast<int>(hal::CompletionStatus::failed) &&
                static_cast<int>(probe::CompletionStatus::untimed) == static_cast<int>(hal::CompletionStatus::untimed));
  slot->completion.status = static_cast<probe::CompletionStatus>(record.status);
  // An end before the start, on a counter that may have wrapped between the two.
  slot->completion.clamped = ((record.ticks.end - record.ticks.start) & tick_mask_) > tick_mask_ / 2;
  slot->completion.ticks = {record.ticks.queued, record.ticks.submit, record.ticks.start,
                            slot->completion.clamped ? record.ticks.start : record.ticks.end};
  switch (slot->state.exchange(State::completed, std::memory_order_acq_rel)) {
    case State::submitted: publish(*slot); [[fallthrough]];
    case State::discarded: release(*slot); break;
    case State::submitting:  // the submitter publishes it
    case State::free:
    case State::completed: break;
  }
}

void PendingOperations::publish_lost() noexcept {
  for (Chunk* chunk = chunks_.load(std::memory_order_acquire); chunk != nullptr; chunk = chunk->next) {
    for (Slot& slot : chunk->slots) {
      State expected = State::submitted;
      // Claimed as completed, so that a record that comes now is one too many.
      if (!slot.state.compare_exchange_strong(expected, State::completed, std::memory_order_acq_rel)) continue;
      slot.listener->lost({slot.completion.queue, probe::LossCause::driver_lost_times, slot.operation, slot.operation, 1});
    }
  }
}

}  // namespace xpu::runtime
