#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/probe.hpp"
#include "xpu/hal/queue.hpp"

namespace xpu::runtime {

/// The operations of one stream that somebody listens to, from their submission to the driver's record of them.
///
/// A driver may deliver a record before the submitting call has returned, on the same thread or on another. The subscriber must hear
/// `submitted` first, so whoever comes second, the submitter or the record, publishes the completion. A record that comes twice, or for an
/// operation that is gone, is counted and goes no further: tokens carry the generation of their slot.
class PendingOperations final : public hal::CompletionSink {
 public:
  PendingOperations() = default;
  /// Of the device's ticks, before the first submission.
  void set_valid_bits(std::uint32_t bits) noexcept { tick_mask_ = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1; }
  /// No record may come any more.
  ~PendingOperations();
  PendingOperations(const PendingOperations&) = delete;
  PendingOperations& operator=(const PendingOperations&) = delete;

  /// A slot for an operation that is about to be submitted; its token goes to the driver. 0 when there is no memory for one. One thread at
  /// a time.
  std::uint64_t open(const probe::Subscriber* listener, probe::OperationId operation, probe::Id queue) noexcept {
    Slot* slot = std::exchange(spare_, nullptr);
    if (slot == nullptr) [[unlikely]] {
      slot = take_slot();
      if (slot == nullptr) return 0;
    }
    slot->listener = listener;
    slot->operation = operation;
    slot->completion.queue = queue;
    slot->state.store(State::submitting, std::memory_order_release);
    return static_cast<std::uint64_t>(slot->generation.load(std::memory_order_relaxed)) << kAddressBits |
           reinterpret_cast<std::uintptr_t>(slot);
  }
  /// The driver took it and the subscriber recorded the submission.
  void submitted(std::uint64_t token) noexcept {
    Slot* const slot = slot_of(token);
    if (slot->state.exchange(State::submitted, std::memory_order_acq_rel) != State::completed) return;
    publish(*slot);
    release_here(*slot);
  }
  /// The driver took it and nobody wants its completion.
  void discard(std::uint64_t token) noexcept {
    Slot* const slot = slot_of(token);
    if (slot->state.exchange(State::discarded, std::memory_order_acq_rel) == State::completed) release_here(*slot);
  }
  /// The driver refused it: there will be no record.
  void refused(std::uint64_t token) noexcept { release_here(*slot_of(token)); }

  void complete(const hal::Completion& completion) noexcept override;

  /// At the end of the process, of a stream that has finished everything: what has no record now will never have one, and is published as
  /// lost. (What still runs then stays without an end, as it has none.)
  void publish_lost() noexcept;

  std::uint64_t unexpected_records() const noexcept { return unexpected_.load(std::memory_order_relaxed); }

 private:
  enum class State : std::uint32_t { free, submitting, submitted, discarded, completed };
  struct Slot {
    std::atomic<State> state{State::free};
    std::atomic<std::uint32_t> generation{1};
    Slot* next_free = nullptr;
    const probe::Subscriber* listener = nullptr;
    probe::OperationId operation = 0;
    probe::Completion completion;  ///< As it will be published; the queue from `open` on.
  };
  static constexpr std::uint32_t kSlotsPerChunk = 256;
  static constexpr std::uint32_t kMaxChunks = 4'096;  // a million operations
  /// A token is the address of a slot, which is never freed, below its generation.
  static constexpr int kAddressBits = 48;
  struct Chunk {
    std::array<Slot, kSlotsPerChunk> slots;
    Chunk* next = nullptr;
  };

  static Slot* slot_of(std::uint64_t token) noexcept { return reinterpret_cast<Slot*>(token & ((std::uint64_t{1} << kAddressBits) - 1)); }
  static bool is_current(const Slot& slot, std::uint64_t token) noexcept {
    return (slot.generation.load(std::memory_order_acquire) & 0xffff) == token >> kAddressBits;
  }
  /// From here on a late record of the operation finds nothing.
  static void retire(Slot& slot) noexcept {
    slot.state.store(State::free, std::memory_order_relaxed);
    slot.generation.fetch_add(1, std::memory_order_release);
  }
  void release(Slot& slot) noexcept;
  Slot* take_slot() noexcept;
  /// The same by the submitter, who keeps one slot at hand.
  void release_here(Slot& slot) noexcept {
    if (spare_ != nullptr) return release(slot);
    retire(slot);
    spare_ = &slot;
  }
  bool add_chunk() noexcept;
  static void publish(const Slot& slot) noexcept { slot.listener->complete(slot.operation, slot.completion); }

  std::atomic<Slot*> free_{nullptr};  // pushed by any thread, popped by the submitter alone, so no slot comes back unseen
  Slot* spare_ = nullptr;             // the submitter's
  std::atomic<Chunk*> chunks_{nullptr};
  std::uint32_t chunk_count_ = 0;
  std::atomic<std::uint64_t> unexpected_{0};
  std::uint64_t tick_mask_ = ~std::uint64_t{0};
};

}  // namespace xpu::runtime
