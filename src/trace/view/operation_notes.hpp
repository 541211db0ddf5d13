#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "base/probe.hpp"

namespace xpu::trace::view {

/// What callbacks were told of operations, for the views that come later, and for the callbacks at their end. Thread-safe.
class OperationNotes {
 public:
  struct Note {
    std::uint32_t correlation = 0;
    probe::Id kernel = 0, api = 0;
    probe::Command command = probe::Command::other;
  };

  Note take_down(probe::OperationId operation, const probe::Operation& submitted) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = notes_.try_emplace(operation);
    if (is_new) {
      entry->second = {next_correlation(), submitted.kernel, submitted.api, submitted.command};
      // What ended long ago goes; what runs while that many others are submitted is then told of without a name.
      constexpr std::size_t kRemembered = 262'144;
      order_.push_back(operation);
      if (order_.size() > kRemembered) {
        notes_.erase(order_.front());
        order_.pop_front();
      }
    }
    return entry->second;
  }
  /// All 0 for an operation that nobody was told of.
  Note find(probe::OperationId operation) const {
    const std::lock_guard lock(mutex_);
    const auto found = notes_.find(operation);
    return found == notes_.end() ? Note() : found->second;
  }
  /// The one that callbacks named, or a new one.
  std::uint32_t correlation_for(probe::OperationId operation) {
    const std::lock_guard lock(mutex_);
    const auto found = notes_.find(operation);
    return found == notes_.end() ? next_correlation() : found->second.correlation;
  }

 private:
  std::uint32_t next_correlation() {
    if (++last_correlation_ == 0) ++last_correlation_;
    return last_correlation_;
  }

  mutable std::mutex mutex_;
  std::unordered_map<probe::OperationId, Note> notes_;
  std::deque<probe::OperationId> order_;
  std::uint32_t last_correlation_ = 0;
};

}  // namespace xpu::trace::view
