#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/memory/pool.hpp"

namespace xpu::memory {

/// What happens to memory, as PyTorch names it.
enum class TraceAction : std::uint8_t {
  alloc,
  free_requested,
  free_completed,  ///< No stream uses the block any more: after `free_requested` at once, where no other stream used it.
  segment_alloc,
  segment_free,
  segment_map,    ///< Pages of an expandable segment.
  segment_unmap,  ///< Likewise.
  snapshot,
  oom,
};
/// "free_requested" and so on.
XPU_EXPORT const char* to_string(TraceAction action) noexcept;
constexpr std::uint32_t bit_of(TraceAction action) noexcept { return 1u << static_cast<unsigned>(action); }

/// The number of a stack in a StackRecorder; 0 is none.
using StackId = std::uint32_t;

struct TraceEntry {
  std::uint64_t time_ns = 0;  ///< CLOCK_MONOTONIC.
  std::uint64_t address = 0;  ///< Of an oom: the bytes that were free on the device.
  std::uint64_t bytes = 0;    ///< Of blocks as requested; of segments and pages as they are.
  std::int64_t stream = 0;
  PoolId pool;
  StackId stack = 0;
  TraceAction action = TraceAction::alloc;
};

/// Where a call came from, in whatever language. Thread-safe; called with no lock held.
class XPU_EXPORT StackRecorder {
 public:
  struct Frame {
    std::string file, name;
    std::uint32_t line = 0;
    bool operator==(const Frame&) const = default;
  };
  virtual ~StackRecorder() = default;
  /// The calling thread's stack. The same number for the same stack, or not; 0 when there is none. Must not allocate from the allocator.
  virtual StackId record() noexcept = 0;
  /// Innermost first; empty for 0 and for what it never returned.
  virtual std::vector<Frame> frames(StackId stack) const = 0;
};

/// Records C and C++ frames, named where the dynamic linker knows a name, and first those of an interpreter whose binding tells them.
/// Keeps every different stack for as long as it lives. About 1 µs for 10 frames.
XPU_EXPORT std::shared_ptr<StackRecorder> make_call_stack_recorder();

/// For which calls stacks are recorded: for blocks, which keep it while they are live; for entries of allocations, too; for all entries.
enum class StackUse : std::uint8_t { never, state, alloc, all };

struct HistoryOptions {
  /// At least 1; what is older is overwritten. 32 bytes each, or less.
  std::size_t max_entries = std::size_t{1} << 20;
  /// `bit_of` each action that is not to be kept.
  std::uint32_t skipped_actions = 0;
  StackUse stack_use = StackUse::never;
  std::shared_ptr<StackRecorder> stacks = nullptr;  ///< Needed for any `stack_use` but never.
};

/// Gets every entry, also when no history is kept; with a stack only while one is kept that records them. Called with no lock held and in
/// order, by one thread at a time, mostly that whose call the entry belongs to. May call the allocator; must not throw.
using TraceTracker = std::function<void(const TraceEntry& entry)>;

class HistoryChunk;

/// A history as it was at one moment; needs no lock and stays as it is.
class XPU_EXPORT History {
 public:
  History() = default;
  /// All entries, the oldest first.
  void for_each(const std::function<void(const TraceEntry& entry)>& visit) const;
  std::size_t size() const noexcept { return size_; }

 private:
  friend class HistoryRing;
  std::vector<std::shared_ptr<const HistoryChunk>> chunks_;
  std::size_t size_ = 0;
  std::size_t skipped_ = 0;                                                      // of the oldest ones in the chunks
  std::uint64_t ticks_ = 0, time_ns_ = 0, later_ticks_ = 0, later_time_ns_ = 0;  // two readings, which say what a tick is
};

}  // namespace xpu::memory
