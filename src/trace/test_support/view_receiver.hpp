#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "xpu/trace/view/next_record.hpp"
#include "xpu/trace/view/view_subscriber.hpp"

namespace xpu::trace::view::test_support {

/// Buffers as a program would provide them, and what came back in them.
class Receiver {
 public:
  explicit Receiver(std::size_t bytes = 64 << 10) : bytes_(bytes) {}
  ~Receiver() { EXPECT_THAT(given_, testing::IsEmpty()) << "a buffer was never completed"; }

  ViewSubscriber::BufferRequested requested() {
    return [this](std::byte** buffer, std::size_t* bytes) {
      const std::lock_guard lock(mutex_);
      ++requests_;
      requesters_.insert(std::this_thread::get_id());
      if (gives_nothing_) return;
      auto* memory = reinterpret_cast<std::byte*>(new std::uint64_t[bytes_ / 8]);
      given_.insert(memory);
      *buffer = memory;
      *bytes = bytes_;
    };
  }
  ViewSubscriber::BufferCompleted completed() {
    return [this](std::byte* buffer, std::size_t bytes, std::size_t used) {
      const std::lock_guard lock(mutex_);
      ++completions_;
      used_.push_back(used);
      completers_.insert(std::this_thread::get_id());
      if (buffer == nullptr) {
        EXPECT_EQ(used, 0u);
        return;
      }
      EXPECT_EQ(bytes, bytes_);
      EXPECT_EQ(given_.erase(buffer), 1u) << "completed twice, or not ours";
      walk(buffer, used);
      delete[] reinterpret_cast<std::uint64_t*>(buffer);
    };
  }
  void give_nothing(bool nothing) { gives_nothing_ = nothing; }

  std::size_t count(ViewKind kind) {
    const std::lock_guard lock(mutex_);
    return views_[kind].size();
  }
  template <typename View>
  std::vector<View> all(ViewKind kind) {
    const std::lock_guard lock(mutex_);
    std::vector<View> views;
    for (const std::vector<std::byte>& bytes : views_[kind]) std::memcpy(&views.emplace_back(), bytes.data(), sizeof(View));
    return views;
  }
  std::vector<ViewKind> kinds() {
    const std::lock_guard lock(mutex_);
    return kinds_;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    views_.clear();
    kinds_.clear();
    used_.clear();
  }
  std::size_t requests() const { return requests_; }
  std::size_t completions() const { return completions_; }
  std::vector<std::size_t> used() const { return used_; }
  const std::set<std::thread::id>& completers() const { return completers_; }
  const std::set<std::thread::id>& requesters() const { return requesters_; }
  std::size_t threads_in_one_buffer() const { return threads_in_one_buffer_; }

 private:
  void walk(const std::byte* buffer, std::size_t used) {
    std::set<std::uint32_t> threads;
    const ViewHeader* record = nullptr;
    while (next_record(buffer, used, &record) == ResultCode::success) {
      const auto* bytes = reinterpret_cast<const std::byte*>(record);
      views_[record->kind].emplace_back(bytes, bytes + view_bytes(record->kind));
      kinds_.push_back(record->kind);
      if (record->kind == ViewKind::kernel) threads.insert(reinterpret_cast<const KernelView*>(record)->thread);
    }
    threads_in_one_buffer_ = std::max(threads_in_one_buffer_, threads.size());
  }

  const std::size_t bytes_;
  mutable std::mutex mutex_;
  std::set<std::byte*> given_;
  std::map<ViewKind, std::vector<std::vector<std::byte>>> views_;
  std::vector<ViewKind> kinds_;
  std::vector<std::size_t> used_;
  std::set<std::thread::id> completers_, requesters_;
  std::atomic<std::size_t> requests_ = 0, completions_ = 0;
  std::atomic<bool> gives_nothing_ = false;
  std::size_t threads_in_one_buffer_ = 0;
};

}  // namespace xpu::trace::view::test_support
