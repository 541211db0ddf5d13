#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/probe.hpp"
#include "trace/operation_filter.hpp"
#include "trace/segment.hpp"
#include "trace/writer.hpp"

namespace xpu::trace::internal {

// Hidden, so that the hot path reaches these without the table that interposable names need.
#pragma GCC visibility push(hidden)

/// A signal handler may interrupt a thread in the middle of a record and publish something itself. So whoever goes into a writer takes it
/// out of `idle` for that time, and who finds none there although the thread has one must not write.
struct ThreadState {
  Writer* idle;         ///< The thread's writer while nobody is in it: all that the hot path looks at.
  Writer* own;          ///< The thread's writer, or null before its first record.
  std::uint32_t depth;  ///< Of `Entry` objects alive.
  bool naming;          ///< This thread's name is being interned; its string is written with the thread record.
};
/// Initial-exec: no call and no allocation at a thread's first use.
extern constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec")));

/// The process's segment; null before the first record.
extern constinit std::atomic<Segment*> g_segment;

/// Records of operations that nobody could write while there was no segment yet (a signal handler that interrupted the claiming); added to
/// its header once there is one.
extern constinit std::atomic<std::uint64_t> g_lost_before_segment;

/// Writer ids up to this one are a parent process's: what completes under them is on record there.
extern constinit std::uint32_t g_inherited_writers;

/// This thread's writer, made; null when the process is not recorded (any more). Claims the segment at the process's first record.
Writer* make_writer() noexcept;

/// Writes the process, all texts and all living objects.
void write_definitions(Writer& writer) noexcept;

/// The probe's table, with the functions of subscriber.cpp; and one that calls them and tells callbacks (view/callback_table.cpp).
const probe::Subscriber& subscriber_table() noexcept;
const probe::Subscriber& callback_table() noexcept;
/// The one of the two that is to be installed, and whether this is one of them.
const probe::Subscriber& table_in_use() noexcept;
bool is_own_table(const probe::Subscriber* table) noexcept;
void set_wanted_of_callback_table(std::uint32_t wanted) noexcept;
/// Of both, so that it does not matter which one a publisher looks at.
void set_wanted(std::uint32_t wanted) noexcept;
std::uint32_t wanted_now() noexcept;
/// Somebody in this process took so many bytes of records since `begin_ns`. What is next to nothing is not told, or telling it would be the
/// next to be taken.
void publish_flush(std::uint64_t begin_ns, std::uint64_t bytes) noexcept;
/// Which kernels are wanted. Matching takes a lock, which is held through a fork.
bool set_kernel_expression(const char* expression) noexcept;
/// Of the captures of this process, instead; no lock of definitions may be held.
void set_readers(std::vector<WantedOperations> readers) noexcept;
void lock_kernel_filter_for_fork() noexcept;
void unlock_kernel_filter_after_fork() noexcept;

/// The captures of this process (live_capture.cpp).
void lock_captures_for_fork() noexcept;
void unlock_captures_after_fork() noexcept;
void forget_captures_after_fork() noexcept;

/// The callbacks of this process (view/callback_table.cpp).
void lock_callbacks_for_fork() noexcept;
void unlock_callbacks_after_fork() noexcept;
void forget_callbacks_after_fork() noexcept;

#pragma GCC visibility pop

/// One stay of a thread in its writer, which is made at the first. `writer()` is null when nothing can be written: because the process is
/// not recorded, or, `nested()`, in a signal handler that interrupted this very thread while it was writing.
class Entry {
 public:
  Entry() noexcept {
    if (t_state.depth++ != 0) return;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (t_state.own != nullptr && t_state.idle == nullptr) return;
    nested_ = false;
    t_state.idle = nullptr;
    writer_ = t_state.own != nullptr ? t_state.own : make_writer();
    if (writer_ != nullptr && writer_->has_new_reader()) [[unlikely]]
      writer_->introduce_to_reader();
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Entry() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!nested_) t_state.idle = t_state.own;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    --t_state.depth;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  Writer* writer() const noexcept { return writer_; }
  bool nested() const noexcept { return nested_; }

 private:
  Writer* writer_ = nullptr;
  bool nested_ = true;
};

/// The same for the hot path, without a branch for what is rare: `writer()` is null when there is anything but a writer to go into.
class QuickEntry {
 public:
  QuickEntry() noexcept : writer_(t_state.idle) {
    t_state.idle = nullptr;  // or it was null already
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~QuickEntry() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (writer_ != nullptr) t_state.idle = writer_;
  }
  QuickEntry(const QuickEntry&) = delete;
  QuickEntry& operator=(const QuickEntry&) = delete;
  Writer* writer() const noexcept { return writer_; }

 private:
  Writer* writer_;
};

}  // namespace xpu::trace::internal
