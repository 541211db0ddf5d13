#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "xpu/memory/checks.hpp"

namespace xpu::memory {

/// What an allocator knows of a block beside its memory.
struct NotedBlock {
  std::uint64_t begin = 0, bytes = 0, requested_bytes = 0;
  std::int64_t stream = 0;
  PoolId pool;
  StackId allocated_at = 0, freed_at = 0;
  std::uint64_t allocated_ns = 0;  ///< 0: before anything was noted.
};

/// The blocks that are live and those that were freed last, while misuse is looked for. Thread-safe. What is noted of one address must come
/// in order: the caller has a lock for it.
class BlockLedger {
 public:
  bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }
  void start(const CheckOptions& options) XPU_EXCLUDES(mutex_);
  void stop() XPU_EXCLUDES(mutex_);

  /// The calling thread's stack, where these are wanted; else 0. With no lock held.
  StackId record_stack() const XPU_EXCLUDES(mutex_) {
    if (is_on()) [[unlikely]]
      return record_wanted_stack();
    return 0;
  }
  std::vector<StackRecorder::Frame> frames(StackId stack) const XPU_EXCLUDES(mutex_);

  /// `block` as it is handed out, but for its time. Memory that was freed is somebody's again.
  void note_taken(NotedBlock block) XPU_EXCLUDES(mutex_);
  /// `block` as far as the caller knows it: where and when it was allocated is known here.
  void note_freed(NotedBlock block, StackId freed_at) XPU_EXCLUDES(mutex_);

  /// The freed block in which the address lies, if nobody else has got that memory since.
  std::optional<NotedBlock> find_freed(std::uint64_t address) const XPU_EXCLUDES(mutex_);
  std::optional<NotedBlock> find_live(std::uint64_t begin) const XPU_EXCLUDES(mutex_);
  std::vector<NotedBlock> live() const XPU_EXCLUDES(mutex_);

  /// "1,000 bytes of stream 1", and where it was allocated and freed.
  std::string describe(const NotedBlock& block) const XPU_EXCLUDES(mutex_);
  void report(const std::string& finding) const XPU_EXCLUDES(mutex_);
  /// When work of `stream` is said to use an address that lies in a block that was freed.
  void report_use_of_freed(const void* address, std::int64_t stream) const XPU_EXCLUDES(mutex_);

 private:
  /// A part of a freed block that nobody has got since.
  struct Piece {
    std::uint64_t end = 0;
    std::uint64_t number = 0;  ///< Of the free: the same address may be freed again.
    NotedBlock block;
  };
  struct Freed {
    std::uint64_t begin, number;
  };

  StackId record_wanted_stack() const XPU_EXCLUDES(mutex_);
  void add_piece(std::uint64_t begin, const Piece& piece) XPU_REQUIRES(mutex_);
  void remove_pieces(std::uint64_t begin, std::uint64_t end) XPU_REQUIRES(mutex_);

  std::atomic<bool> is_on_{false};
  mutable base::Mutex mutex_;
  CheckOptions options_ XPU_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, NotedBlock> live_ XPU_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Piece> freed_ XPU_GUARDED_BY(mutex_);  // by begin
  std::deque<Freed> order_ XPU_GUARDED_BY(mutex_);               // of freed_, and of some that are gone
  std::uint64_t last_number_ XPU_GUARDED_BY(mutex_) = 0;
};

/// "\n    step (train.py:17)" for each frame.
std::string stack_text(const std::vector<StackRecorder::Frame>& frames);

}  // namespace xpu::memory
