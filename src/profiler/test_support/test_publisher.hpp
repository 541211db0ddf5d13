#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/probe.hpp"

namespace xpu::profiler::test_support {

/// A program with one device and one in-order queue, as publishers tell of it: nothing while nobody listens. Thread-safe. One per process,
/// because publishers are never unregistered.
class TestPublisher {
 public:
  static TestPublisher& instance();

  /// A launch that is still to be completed; id 0 when it is not wanted.
  struct Launched {
    probe::OperationId id = 0;
    std::uint64_t enter_ns = 0;
    probe::Id queue = 0;  ///< 0: the usual one.
  };
  Launched launch(const char* api = "testLaunch");
  /// As a node of a graph that is replayed.
  Launched replay(std::uint64_t graph, std::uint64_t node);
  Launched copy(std::uint64_t bytes, bool to_peer = false);
  /// It ran for so long from right behind its call.
  void complete(const Launched& launched, std::uint64_t duration_ns = 1'000);
  /// It ran for a nanosecond, just now, however long ago it was launched.
  void complete_now(const Launched& launched);
  void run() { complete(launch()); }
  void call(const char* api);

  probe::Id kernel() const noexcept { return kernel_; }
  /// A kernel of another name, and a queue beside the usual one; known from the first call on, also to those who listen already.
  probe::Id add_kernel(const char* name);
  probe::Id add_queue();
  Launched launch_on(probe::Id queue, probe::Id kernel);
  probe::Id queue() const noexcept { return queue_; }

 private:
  TestPublisher();
  static void republish();
  static void read_clock();
  Launched submit(probe::Operation operation);
  void describe_queue(probe::Id queue, std::uint32_t published) const;
  void describe_kernel(probe::Id kernel, const char* name) const;
  struct AddedQueue {
    probe::Id id;
    std::atomic<std::uint32_t> sequence{0};
  };
  std::atomic<std::uint32_t>& sequence_of(probe::Id queue);

  probe::Id device_, peer_, context_, queue_, kernel_;
  std::atomic<std::uint32_t> sequence_{0};
  // What tests add, one at a time.
  std::deque<AddedQueue> added_queues_;
  std::deque<std::pair<probe::Id, const char*>> added_kernels_;
};

}  // namespace xpu::profiler::test_support
