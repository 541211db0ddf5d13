#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/mutex.hpp"
#include "trace/live/dropped_records.hpp"
#include "trace/segment.hpp"
#include "xpu/trace/live_capture.hpp"

/// What the captures of a process share, and how what threads write comes to each of them.
namespace xpu::trace {

struct LiveCapture::Impl {
  CaptureOptions options;
  Segment* segment = nullptr;
  std::uint32_t fork_generation = 0;
  ProcessInfo process;
  Manifest manifest;
  bool is_paused = false;
  /// Paused, and what is distributed next is all its own: nobody wanted anything since.
  bool is_owed_the_rest = false;
  std::uint64_t paused_at_ns = 0;
  bool is_finished = false;
  std::vector<RecordBuffer> waiting;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t filtered_before = 0, lost_before = 0;
  DroppedRecords dropped;
};

/// How far a chunk has been handed out. Its losses are counted in place, so what was told of them is kept, too.
struct ChunkProgress {
  std::uint64_t handed_bytes = 0;
  std::uint64_t handed_filtered = 0;
  std::uint32_t pins = 0;  ///< Buffers that lie in it.
  std::vector<std::uint64_t> handed_losses;
  std::uint64_t use = 0;  ///< Of a recording's chunks, which are recycled by the recorder: whose it is, and the how many-th.
};

/// All that captures share. Made with the first one and never destroyed.
struct Captures {
  std::vector<LiveCapture::Impl*> all;
  std::vector<ChunkProgress> chunks;
  std::uint64_t filtered = 0;  ///< Of all chunks, ever.
  /// Chunks that were in use when the captures that are under way began: buffers that somebody keeps, and what threads have begun.
  std::uint64_t in_use_before = 0;
  const Captures* inherited = nullptr;  ///< What a forked child had from its parent, which is left alone and not leaked.
};

/// Held while a capture begins or ends, which calls publishers, so it is not taken by a fork: in a child it is made anew.
extern base::Mutex g_transition_mutex;
extern base::Mutex g_captures_mutex;
extern Captures* g_captures XPU_GUARDED_BY(g_captures_mutex);
/// Of a forked child, until it has captures of its own.
extern Captures* g_inherited_captures XPU_GUARDED_BY(g_captures_mutex);
extern Segment* g_capture_segment XPU_GUARDED_BY(g_captures_mutex);
/// Raised in a forked child, which has the parent's objects and none of its captures.
extern std::atomic<std::uint32_t> g_fork_generation;

/// Hands out everything that was written since the last time.
void distribute() XPU_REQUIRES(g_captures_mutex);
/// Operations that nobody wanted, ever.
std::uint64_t count_filtered() XPU_REQUIRES(g_captures_mutex);
/// What publishers are asked for, and how much memory there is for it: the sum over the captures. Returns the former.
std::uint32_t update_wanted() XPU_REQUIRES(g_captures_mutex);
/// Room for one more. Before a buffer exists: one that is destroyed for want of memory would take the lock that is held.
void make_room(LiveCapture::Impl& capture);

}  // namespace xpu::trace
