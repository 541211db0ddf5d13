#pragma once

#include <atomic>
#include <cstdint>

#include "base/probe.hpp"
#include "trace/segment.hpp"
#include "trace/writer.hpp"

namespace xpu::trace::internal {

/// Initial-exec: no call and no allocation at a thread's first use.
struct ThreadState {
  Writer* writer;
  std::uint32_t depth;  ///< Of entries into the recording: more than 1 in a signal handler that interrupted one.
  bool naming;          ///< This thread's name is being interned; its string is written with the thread record.
};
extern constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec")));

/// The process's segment; null before the first record.
extern constinit std::atomic<Segment*> g_segment;

/// Writer ids up to this one are a parent process's: what completes under them is on record there.
extern constinit std::uint32_t g_inherited_writers;

/// This thread's writer, made; null when the process is not recorded (any more). Claims the segment at the process's first record.
Writer* make_writer() noexcept;

/// Writes the process, all texts and all living objects.
void write_definitions(Writer& writer) noexcept;

/// The probe's table, with the functions of subscriber.cpp.
probe::Subscriber& subscriber_table() noexcept;
/// Which kernels are wanted. Matching takes a lock, which is held through a fork.
bool set_kernel_expression(const char* expression) noexcept;
void lock_kernel_filter_for_fork() noexcept;
void unlock_kernel_filter_after_fork() noexcept;

/// One stay of a thread in its writer. `writer()` is null when nothing can be written: not recorded, or in a signal handler that
/// interrupted this very thread while it was writing.
class Entry {
 public:
  Entry() noexcept {
    if (t_state.depth++ != 0) return;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    writer_ = t_state.writer;
    if (writer_ == nullptr) [[unlikely]]
      writer_ = make_writer();
  }
  ~Entry() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    --t_state.depth;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  Writer* writer() const noexcept { return writer_; }

 private:
  Writer* writer_ = nullptr;
};

}  // namespace xpu::trace::internal
