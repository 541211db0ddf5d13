#pragma once

#include <sys/types.h>

#include <cstdint>

#include "trace/recording/storage.hpp"

namespace xpu::trace {

/// Knows when one process has ended, though its number may be used again. One owner at a time.
class ProcessWatch {
 public:
  /// Watches the process that had number `pid` at `seen_ns` (CLOCK_MONOTONIC). It may be gone already.
  ProcessWatch(std::uint64_t pid, std::uint64_t seen_ns);

  /// Asks the kernel: one call of about 1 us. A zombie has ended.
  bool has_ended();

 private:
  pid_t pid_ = 0;
  UniqueFd handle_;  // a pidfd; without one (old kernel, seccomp) /proc is asked
  std::uint64_t start_ticks_ = 0;
  bool ended_ = false;
};

}  // namespace xpu::trace
