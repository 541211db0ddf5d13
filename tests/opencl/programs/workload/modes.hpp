#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "programs/support.hpp"

namespace xpu::opencl_programs::workload {

/// What one call took, in buckets of 10 ns: no memory that grows with the run and nothing to sort, since the program is measured itself.
class Latencies {
 public:
  void start() noexcept { last_ns_ = now_ns(); }
  /// The time since the last start or tick.
  void tick() noexcept {
    const std::uint64_t time_ns = now_ns();
    add(time_ns - last_ns_);
    last_ns_ = time_ns;
  }
  void merge(const Latencies& other) noexcept;
  /// Upper end of the bucket in which the fraction lies; the longest time for those behind the last bucket.
  std::uint64_t percentile_ns(double fraction) const noexcept;
  std::uint64_t max_ns() const noexcept { return max_ns_; }

 private:
  static constexpr std::uint64_t kBucketNs = 10;
  void add(std::uint64_t duration_ns) noexcept {
    const std::uint64_t bucket = duration_ns / kBucketNs;
    ++buckets_[bucket < buckets_.size() - 1 ? bucket : buckets_.size() - 1];
    if (duration_ns > max_ns_) max_ns_ = duration_ns;
  }
  std::array<std::uint64_t, 4096> buckets_{};
  std::uint64_t last_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

/// One run of a mode: what was asked for, and what came of it.
struct Run {
  const Setup& setup;
  std::string_view mode;
  std::uint64_t count;  // operations
  std::uint64_t batch;  // clFinish after so many, 0 = only at the end
  unsigned threads;

  Latencies latencies;
  std::uint64_t submitted = 0;   // every command that the driver accepted, warm-up included
  std::uint64_t enqueue_ns = 0;  // in the loop without the waits
  std::uint64_t total_ns = 0;
  std::string more;  // further " key=value" of the mode
};

// Each runs its mode to the end; false if it is not its mode.
bool run_launch_modes(Run& run);
bool run_event_modes(Run& run);
bool run_other_modes(Run& run);

/// Times a loop of submissions that waits for `queue` after every batch.
class BatchLoop {
 public:
  BatchLoop(Latencies& latencies, cl_command_queue queue, std::uint64_t batch) : latencies_(latencies), queue_(queue), batch_(batch) {
    begin_ns_ = now_ns();
    latencies_.start();
  }
  /// Call after operation `index`; true if it waited.
  bool after(std::uint64_t index) {
    latencies_.tick();
    if (batch_ == 0 || (index + 1) % batch_ != 0) return false;
    const std::uint64_t wait_ns = now_ns();
    XPU_CL(clFinish(queue_));
    waited_ns_ += now_ns() - wait_ns;
    latencies_.start();
    return true;
  }
  /// Ends the loop with a last wait.
  void finish(std::uint64_t& enqueue_ns, std::uint64_t& total_ns) {
    const std::uint64_t end_ns = now_ns();
    XPU_CL(clFinish(queue_));
    enqueue_ns = end_ns - begin_ns_ - waited_ns_;
    total_ns = now_ns() - begin_ns_;
  }

 private:
  Latencies& latencies_;
  cl_command_queue queue_;
  std::uint64_t batch_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t waited_ns_ = 0;
};

/// Resident memory of the process now.
std::uint64_t resident_kb();

}  // namespace xpu::opencl_programs::workload
