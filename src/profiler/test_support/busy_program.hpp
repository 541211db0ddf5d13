#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/probe.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/profiler/activity_api.hpp"

namespace xpu::profiler::test_support {

inline void annotate_now(probe::AnnotationType type, std::string_view text) {
  if (const probe::Subscriber* listener = probe::subscriber())
    listener->annotate({.time_ns = now_ns(probe::clock_domain()), .range = 0, .type = type, .text = text, .value = 1.5});
}

/// Threads that submit a given number of commands to one queue, in order, and a device that is behind; one command stays until `finish`.
class BusyProgram {
 public:
  explicit BusyProgram(TestPublisher& publisher) : publisher_(publisher) {
    long_command_ = publisher_.copy(4'096);
    for (std::uint64_t number = 0; number < kThreads; ++number) threads_.emplace_back([this, number] { work(number); });
    device_ = std::thread([this] { run_device(); });
  }
  /// Until every command was submitted. How many there are does not depend on how fast anybody is.
  bool is_submitting() const { return submitting_threads_ != 0; }
  void finish() {
    for (std::thread& thread : threads_) thread.join();
    is_done_ = true;
    device_.join();
    for (; !queue_.empty(); queue_.pop_front()) publisher_.complete(queue_.front(), 1);
    publisher_.complete_now(long_command_);
  }
  static constexpr std::uint64_t submitted() { return kThreads * kSteps + 1; }

 private:
  static constexpr std::uint64_t kThreads = 3, kSteps = 600;
  void work(std::uint64_t number) {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      begin_step(number, step);
      {
        const std::lock_guard lock(mutex_);
        queue_.push_back(step % 5 == 0 ? publisher_.copy(step + 1, step % 2 == 0) : publisher_.launch());
      }
      end_step(step);
      if (step % 7 == 0) publisher_.call("testQuery");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    --submitting_threads_;
  }
  void begin_step(std::uint64_t number, std::uint64_t step) {
    if (step % 3 == 0) annotate_now(probe::AnnotationType::begin, "step");
    if (step % 4 == 0) ActivityApi::push_correlation_id(CorrelationFamily::custom_0, number << 32 | step);
  }
  void end_step(std::uint64_t step) {
    if (step % 4 == 0) ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
    if (step % 3 == 0) annotate_now(probe::AnnotationType::end, {});
    if (step % 11 == 0) annotate_now(probe::AnnotationType::counter, "level");
  }
  void run_device() {
    while (!is_done_) {
      std::optional<TestPublisher::Launched> next;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.size() > 20) {
          next = queue_.front();
          queue_.pop_front();
        }
      }
      if (next) {
        publisher_.complete(*next, 1);
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }

  TestPublisher& publisher_;
  std::mutex mutex_;
  std::deque<TestPublisher::Launched> queue_;
  TestPublisher::Launched long_command_;
  std::atomic<std::uint64_t> submitting_threads_{kThreads};
  std::atomic<bool> is_done_{false};
  std::vector<std::thread> threads_;
  std::thread device_;
};

}  // namespace xpu::profiler::test_support
