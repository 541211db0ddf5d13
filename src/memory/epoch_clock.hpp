#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "base/mutex.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/queue_progress.hpp"
#include "xpu/memory/stream_ref.hpp"

namespace xpu::memory {

/// The frees of one stream between two tickets. It is complete when the stream has reached a ticket that was issued after all of them.
struct Epoch {
  std::int64_t stream_id = 0;
  std::uint64_t number = 0;  ///< Of all epochs of all streams, in the order in which they began.
};

/// Says when memory that was freed is out of the hands of the streams that used it.
///
/// The obvious way, an event for each freed block and stream, costs a submission each. A ticket covers everything before it, so a free only
/// notes the stream's current epoch, and one ticket later answers for all frees of that epoch. Issuing it closes the epoch *first*, so
/// that a free which comes meanwhile belongs to the next one: a ticket never answers for a free that came after it.
///
/// A capturing stream is never asked anything. It is one from the `note_stream` that says so to the one that says otherwise.
///
/// Thread-safe. The calls of the first group only look at what is known and may be made under any lock of an allocator; those of the second
/// group call `QueueProgress` and may not. None of them holds a lock then.
class EpochClock {
 public:
  /// So much of one stream may wait before a ticket is due.
  static constexpr std::size_t kDueFrees = 64;
  static constexpr std::size_t kDueBytes = std::size_t{64} << 20;

  explicit EpochClock(hal::QueueProgress& progress) noexcept : progress_(progress) {}
  EpochClock(const EpochClock&) = delete;
  EpochClock& operator=(const EpochClock&) = delete;

  /// Whether the stream is capturing now.
  void note_stream(const StreamRef& stream) XPU_EXCLUDES(mutex_);
  /// So many bytes that the stream may be using were freed. What `stream` says of capturing does not count: it may be as old as the use.
  Epoch note_free(const StreamRef& stream, std::size_t bytes) XPU_EXCLUDES(mutex_);
  bool is_complete(const Epoch& epoch) const XPU_EXCLUDES(mutex_);
  /// Whether a stream that is not capturing has kDueFrees or kDueBytes waiting without a ticket.
  bool is_issue_due() const XPU_EXCLUDES(mutex_);

  /// A ticket for each stream for which it is due. A queue that refuses is asked again when so much waits once more. Returns how many.
  std::size_t issue_due() XPU_EXCLUDES(mutex_);
  /// A ticket for each stream that has frees without one.
  std::size_t issue_pending() XPU_EXCLUDES(mutex_);
  /// One question to each stream that has tickets outstanding.
  void poll() XPU_EXCLUDES(mutex_);
  /// Returns when the epoch is complete; issues its ticket if there is none. failed_precondition when its stream is capturing.
  Result<> wait(const Epoch& epoch) XPU_EXCLUDES(mutex_);
  /// What is submitted to `waiting` from now on begins after the epoch is complete; issues its ticket if there is none. Does not wait.
  /// failed_precondition when one of the two streams is capturing; else what `QueueProgress` says.
  Result<> make_wait(const StreamRef& waiting, const Epoch& epoch) XPU_EXCLUDES(mutex_);

 private:
  struct Issued {
    std::uint64_t epoch = 0;  ///< The ticket answers for this one and all before it.
    std::uint64_t ticket = 0;
  };
  struct Stream {
    void* queue = nullptr;
    bool is_capturing = false;
    bool is_open = false;                      ///< The next free belongs to `newest`.
    std::uint64_t newest = 0;                  ///< Epoch.
    std::uint64_t completed = 0;               ///< Epoch.
    std::deque<Issued> issued;                 ///< Of epochs that are not known to be complete; both numbers grow.
    std::size_t due_frees = 0, due_bytes = 0;  ///< Since a ticket was last asked for.

    bool needs_ticket() const noexcept { return newest > (issued.empty() ? completed : issued.back().epoch); }
    bool is_due() const noexcept { return !is_capturing && (due_frees >= kDueFrees || due_bytes >= kDueBytes); }
  };
  using Streams = std::map<std::int64_t, Stream>;
  struct Answer {
    void* queue = nullptr;
    Issued issued;  ///< Epoch 0: the one that was asked for is complete.
  };

  Result<Answer> answer_for(const Epoch& epoch) XPU_EXCLUDES(mutex_);
  Result<> issue(std::int64_t stream_id) XPU_EXCLUDES(mutex_);
  Streams::iterator find_or_add(const StreamRef& stream) XPU_REQUIRES(mutex_);
  void add_ticket(Stream& stream, std::uint64_t epoch, std::uint64_t ticket) XPU_REQUIRES(mutex_);
  void complete(std::int64_t stream_id, std::uint64_t epoch) XPU_EXCLUDES(mutex_);
  void drop_if_idle(Streams::iterator stream) XPU_REQUIRES(mutex_);

  hal::QueueProgress& progress_;
  mutable base::Mutex mutex_;
  // Those that are capturing or have epochs that are not known to be complete; so of one that is not here, everything is complete.
  Streams streams_ XPU_GUARDED_BY(mutex_);
  // One count for all streams, so that a stream which comes back does not meet its old numbers.
  std::uint64_t newest_epoch_ XPU_GUARDED_BY(mutex_) = 0;
  bool is_due_ XPU_GUARDED_BY(mutex_) = false;
};

}  // namespace xpu::memory
