#pragma once

#include <array>
#include <atomic>
#include <cstdint>

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
  PendingOperations(const PendingOperations&) = delete;
  PendingOperations& operator=(const PendingOperations&) = delete;

  /// A slot for an operation that is about to be submitted; its token goes to the driver. 0 when there is no memory for one. One thread at
  /// a time.
  std::uint64_t open(const probe::Subscriber* listener, probe::OperationId operation, probe::Id queue) noexcept;
  /// The driver took it and the subscriber recorded the submission.
  void submitted(std::uint64_t token) noexcept;
  /// The driver took it and nobody wants its completion.
  void discard(std::uint64_t token) noexcept;
  /// The driver refused it: there will be no record.
  void refused(std::uint64_t token) noexcept;

  void complete(const hal::Completion& completion) noexcept override;

  /// At the end of the process: publishes what has no record yet, as lost where the stream has finished everything, else as unfinished.
  void publish_rest(bool stream_is_idle) noexcept;

  std::uint64_t unexpected_records() const noexcept { return unexpected_.load(std::memory_order_relaxed); }

 private:
  enum class State : std::uint32_t { free, submitting, submitted, discarded, completed };
  struct Slot {
    std::atomic<State> state{State::free};
    std::atomic<std::uint32_t> generation{1};
    std::uint32_t index = 0;
    probe::Id queue = 0;
    Slot* next_free = nullptr;
    const probe::Subscriber* listener = nullptr;
    probe::OperationId operation = 0;
    hal::Completion completion;
  };
  static constexpr std::uint32_t kSlotsPerChunk = 256;
  static constexpr std::uint32_t kMaxChunks = 4'096;  // a million operations
  using Chunk = std::array<Slot, kSlotsPerChunk>;

  Slot* find(std::uint64_t token) noexcept;
  void release(Slot& slot) noexcept;
  bool add_chunk() noexcept;
  void publish(const Slot& slot) const noexcept;

  std::atomic<Slot*> free_{nullptr};  // pushed by any thread, popped by the submitter alone, so no slot comes back unseen
  std::array<std::atomic<Chunk*>, kMaxChunks>* chunks_ = nullptr;
  std::atomic<std::uint32_t> chunk_count_{0};
  std::atomic<std::uint64_t> unexpected_{0};
  std::uint64_t tick_mask_ = ~std::uint64_t{0};
};

}  // namespace xpu::runtime
