#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/mutex.hpp"
#include "drivers/host/operation.hpp"

namespace xpu::drivers::host {

/// A piece of memory for operations that wait.
struct OperationBlock {
  static constexpr std::size_t kBytes = std::size_t{16} << 10;
  OperationBlock* next = nullptr;
  std::uint64_t first_index = 0;  ///< Of its first operation in the queue.
  alignas(16) std::byte bytes[kBytes - 16];
};

/// Blocks are recycled among all queues of a driver; a bounded number is kept. Thread-safe.
class BlockPool {
 public:
  BlockPool() = default;
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  OperationBlock* take() XPU_EXCLUDES(mutex_);
  void give_back(OperationBlock* block) noexcept XPU_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMostKept = 256;

  base::Mutex mutex_;
  OperationBlock* free_ XPU_GUARDED_BY(mutex_) = nullptr;
  std::size_t free_count_ XPU_GUARDED_BY(mutex_) = 0;
};

/// The operations of one queue that have not begun, in order, without an allocation for each: they lie one behind the other in recycled
/// blocks, whose number follows the depth.
///
/// Three parties. *Submitters* append under `mutex`, the queue's lock. The *runner*, of whom there is one at a time, claims the next
/// operation without the lock. *Exit* takes all that is left away from a runner who may be stuck in the operation that it claimed last.
/// Claiming is one compare-and-swap on a counter for the sake of the third, which is why it is not an index of the runner's own.
class OperationFifo {
 public:
  /// Both outlive it.
  OperationFifo(BlockPool& blocks, base::Mutex& mutex) noexcept : blocks_(blocks), mutex_(mutex) {}
  ~OperationFifo();
  OperationFifo(const OperationFifo&) = delete;
  OperationFifo& operator=(const OperationFifo&) = delete;

  /// Makes room for an operation with `extra_bytes` behind it (a few KiB at most) and constructs it; nobody sees it before `publish`.
  /// Under the lock.
  template <typename T>
  T& append(std::size_t extra_bytes = 0) {
    const std::size_t size = (sizeof(T) + extra_bytes + 15) / 16 * 16;
    T* operation = new (room(size)) T;
    operation->kind = T::kKind;
    operation->size_bytes = static_cast<std::uint32_t>(size);
    return *operation;
  }
  /// Under the lock.
  void publish() noexcept { published_count_.store(published_count_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  /// Published and not claimed; 0 once everything was taken away.
  std::uint64_t size() const noexcept {
    const std::uint64_t claimed = claimed_count_.load(std::memory_order_seq_cst);
    return claimed == kTaken ? 0 : published_count_.load(std::memory_order_relaxed) - claimed;
  }

  /// How many were claimed so far; the largest number once everything was taken away.
  std::uint64_t claimed() const noexcept { return claimed_count_.load(std::memory_order_relaxed); }

  /// The runner only: the next operation, valid until the next call; null when there is none (any more).
  Operation* claim() noexcept XPU_EXCLUDES(mutex_);
  /// The runner, under the lock: true when nothing is left. Starts at the beginning of its block again, whose lines are in the cache.
  bool rewind_when_empty() noexcept;

  /// A walk over operations that were taken away.
  struct Rest {
    OperationBlock* block = nullptr;
    std::size_t offset = 0;
    std::uint64_t count = 0;
    Operation* next() noexcept;  ///< Null behind the last one.
  };
  /// Under the lock, once: from now on the runner claims nothing. The operations stay where they are as long as this object lives.
  Rest take_rest() noexcept;

 private:
  static constexpr std::uint64_t kTaken = UINT64_MAX;

  void* room(std::size_t bytes);
  static Operation* at(OperationBlock* block, std::size_t offset) noexcept {
    return std::launder(reinterpret_cast<Operation*>(block->bytes + offset));
  }

  BlockPool& blocks_;
  base::Mutex& mutex_;
  std::atomic<std::uint64_t> published_count_{0};
  std::atomic<std::uint64_t> claimed_count_{0};  // kTaken for good after take_rest

  // Under the lock.
  OperationBlock* oldest_block_ = nullptr;  // null before the first operation
  OperationBlock* write_block_ = nullptr;
  std::size_t write_offset_ = 0;

  // The runner's.
  OperationBlock* read_block_ = nullptr;
  std::size_t read_offset_ = 0;
};

}  // namespace xpu::drivers::host
