#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
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
    int make_wait = 0;  ///< Of the queue that was to wait.
    int total() const { return issue + completed + wait + make_wait; }
  };

  /// The same queue for the same id.
  StreamRef stream(std::int64_t id, bool is_capturing = false) {
    const std::lock_guard lock(mutex_);
    return StreamRef{id, &queues_[id], is_capturing};
  }

  std::uint64_t issued(const StreamRef& stream) { return get(stream, &Queue::issued); }
  std::uint64_t reached(const StreamRef& stream) { return get(stream, &Queue::reached); }
  Calls calls(const StreamRef& stream) { return get(stream, &Queue::calls); }
  /// The last ticket of `queue` after which begins what is submitted to `waiting` from now on, also by way of other queues; 0 = none.
  std::uint64_t awaited(const StreamRef& waiting, const StreamRef& queue) {
    const std::lock_guard lock(mutex_);
    const Tickets& behind = queue_of(waiting.queue).behind;
    const auto found = behind.find(&queue_of(queue.queue));
    return found == behind.end() ? 0 : found->second;
  }
  /// From now on no queue can be made to wait, or each can.
  void refuse_device_waits(bool are_refused) {
    const std::lock_guard lock(mutex_);
    are_device_waits_refused_ = are_refused;
  }
  /// The queue has reached the ticket, and never goes back; so have others what it had to wait for.
  void reach(const StreamRef& stream, std::uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    Queue& queue = queue_of(stream.queue);
    advance(queue, std::min(ticket, queue.issued));
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
    asked.points[++asked.issued] = asked.behind;
    if (asked.is_instant) advance(asked, asked.issued);
    return asked.issued;
  }
  std::uint64_t completed(void* queue) noexcept override {
    if (on_call_) on_call_();
    const std::lock_guard lock(mutex_);
    Queue& asked = queue_of(queue);
    ++asked.calls.completed;
    return asked.reached;
  }
  /// Time passes for this queue and what it was made to wait for, and only as far as needed.
  Result<> wait_blocking(void* queue, std::uint64_t ticket) override {
    if (on_call_) on_call_();
    const std::lock_guard lock(mutex_);
    Queue& asked = queue_of(queue);
    ++asked.calls.wait;
    if (asked.error) return *asked.error;
    if (ticket > asked.issued) return Error{ErrorCode::internal, "this ticket was never issued: the wait would not end"};
    advance(asked, ticket);
    return {};
  }
  Result<> make_wait(void* waiting, void* queue, std::uint64_t ticket) override {
    if (on_call_) on_call_();
    const std::lock_guard lock(mutex_);
    Queue& later = queue_of(waiting);
    Queue& asked = queue_of(queue);
    ++later.calls.make_wait;
    if (are_device_waits_refused_) return Error{ErrorCode::unsupported, "the fake queue cannot wait for another one"};
    if (later.error) return *later.error;
    if (ticket > asked.issued) return Error{ErrorCode::internal, "this ticket was never issued: the wait would not end"};
    raise(later.behind, &asked, ticket);
    if (const auto point = asked.points.find(ticket); point != asked.points.end()) {
      for (const auto& [other, before] : point->second) raise(later.behind, other, before);
    }
    return {};
  }

 private:
  struct Queue;
  using Tickets = std::map<Queue*, std::uint64_t>;
  struct Queue {
    std::uint64_t issued = 0, reached = 0;
    Tickets behind;                           // what is submitted next begins after these
    std::map<std::uint64_t, Tickets> points;  // the same for each ticket that is not reached
    bool is_instant = false;
    std::optional<Error> error;
    Calls calls;
  };

  static Queue& queue_of(void* queue) { return *static_cast<Queue*>(queue); }
  static void raise(Tickets& tickets, Queue* queue, std::uint64_t ticket) {
    std::uint64_t& last = tickets[queue];
    last = std::max(last, ticket);
  }
  static void advance(Queue& queue, std::uint64_t ticket) {
    if (ticket <= queue.reached) return;
    queue.reached = ticket;
    const auto end = queue.points.upper_bound(ticket);
    const Tickets before = std::prev(end)->second;
    queue.points.erase(queue.points.begin(), end);
    for (const auto& [other, reached] : before) advance(*other, reached);
  }
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
  bool are_device_waits_refused_ = false;
  std::function<void()> on_call_;
};

}  // namespace xpu::memory
