#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "xpu/hal/queue_progress.hpp"
#include "xpu/memory/stream_ref.hpp"

namespace xpu::memory {

/// Queues that come as far as a test says. Counts what it is asked. Thread-safe.
class ScriptedProgress final : public hal::QueueProgress {
 public:
  struct Calls {
    int issue = 0, completed = 0, wait = 0;
    int total() const { return issue + completed + wait; }
  };

  /// The same queue for the same id.
  StreamRef stream(std::int64_t id, bool is_capturing = false) {
    const std::lock_guard lock(mutex_);
    return StreamRef{id, &queues_[id], is_capturing};
  }

  std::uint64_t issued(const StreamRef& stream) { return get(stream, &Queue::issued); }
  std::uint64_t reached(const StreamRef& stream) { return get(stream, &Queue::reached); }
  Calls calls(const StreamRef& stream) { return get(stream, &Queue::calls); }
  /// The queue has reached the ticket, and never goes back.
  void reach(const StreamRef& stream, std::uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    Queue& queue = queue_of(stream.queue);
    queue.reached = std::max(queue.reached, std::min(ticket, queue.issued));
  }
  void reach_all(const StreamRef& stream) { reach(stream, UINT64_MAX); }
  /// The queue has reached all its tickets, and from now on each when it is issued.
  void finish_at_once(const StreamRef& stream) {
    set(stream, &Queue::is_instant, true);
    reach_all(stream);
  }
  /// From now on, until it is called without an error, this queue refuses tickets and waiting.
  void fail(const StreamRef& stream, std::optional<Error> error = std::nullopt) { set(stream, &Queue::error, std::move(error)); }
  /// Called in every question, without the lock of this object.
  void on_call(std::function<void()> function) { on_call_ = std::move(function); }

  Result<std::uint64_t> issue(void* queue) override {
    if (on_call_) on_call_();
    const std::lock_guard lock(mutex_);
    Queue& asked = queue_of(queue);
    ++asked.calls.issue;
    if (asked.error) return *asked.error;
    ++asked.issued;
    if (asked.is_instant) asked.reached = asked.issued;
    return asked.issued;
  }
  std::uint64_t completed(void* queue) noexcept override {
    if (on_call_) on_call_();
    const std::lock_guard lock(mutex_);
    Queue& asked = queue_of(queue);
    ++asked.calls.completed;
    return asked.reached;
  }
  /// Time passes for this queue alone, and only as far as needed.
  Result<> wait_blocking(void* queue, std::uint64_t ticket) override {
    if (on_call_) on_call_();
    const std::lock_guard lock(mutex_);
    Queue& asked = queue_of(queue);
    ++asked.calls.wait;
    if (asked.error) return *asked.error;
    if (ticket > asked.issued) return Error{ErrorCode::internal, "this ticket was never issued: the wait would not end"};
    asked.reached = std::max(asked.reached, ticket);
    return {};
  }
  Result<> make_wait(void*, void*, std::uint64_t) override { return Error{ErrorCode::unsupported, "not scripted"}; }

 private:
  struct Queue {
    std::uint64_t issued = 0, reached = 0;
    bool is_instant = false;
    std::optional<Error> error;
    Calls calls;
  };

  static Queue& queue_of(void* queue) { return *static_cast<Queue*>(queue); }
  template <typename T>
  T get(const StreamRef& stream, T Queue::* member) {
    const std::lock_guard lock(mutex_);
    return queue_of(stream.queue).*member;
  }
  template <typename T>
  void set(const StreamRef& stream, T Queue::* member, T value) {
    const std::lock_guard lock(mutex_);
    queue_of(stream.queue).*member = std::move(value);
  }

  std::mutex mutex_;
  std::map<std::int64_t, Queue> queues_;
  std::function<void()> on_call_;
};

}  // namespace xpu::memory
