#include "runtime/stream_progress.hpp"

#include <limits>
#include <utility>

#include "runtime/state.hpp"

namespace xpu::runtime {
namespace {

constexpr std::uint64_t kEverything = std::numeric_limits<std::uint64_t>::max();

/// True also when the device is lost: nothing runs there.
bool is_idle(hal::Queue& queue) {
  const probe::Scope scope;
  const Result<bool> has_ended = queue.query();
  return !has_ended || *has_ended;
}

bool is_idle(StreamState& stream) {
  const std::shared_ptr<hal::Queue> queue = hold_queue(stream);
  return queue == nullptr || is_idle(*queue);
}

void note_completed(StreamTickets& tickets, std::uint64_t ticket) {
  std::map<std::uint64_t, std::shared_ptr<hal::Event>> reached;  // events are destroyed without the lock
  const base::MutexLock lock(tickets.mutex);
  if (ticket <= tickets.completed) return;
  tickets.completed = ticket;
  while (!tickets.points.empty() && tickets.points.begin()->first <= ticket) {
    reached.insert(tickets.points.extract(tickets.points.begin()));
  }
}

/// An event behind what is submitted to the stream by now; null when there can be none at this moment.
std::shared_ptr<hal::Event> record_here(StreamState& stream, hal::Queue& queue) {
  // Who submits right now may be in a function that frees memory, too, and want the lock of a stream that this thread holds.
  const TryToSubmit attempt(stream.lock);
  if (!attempt.may_submit() || stream.is_released.load(std::memory_order_acquire)) return nullptr;
  const probe::Scope scope;
  Result<std::unique_ptr<hal::Event>> event = stream.device->device.load(std::memory_order_acquire)->create_event({});
  if (!event || !queue.record(**event)) return nullptr;
  return *std::move(event);
}

/// The first point that answers for the ticket.
struct Point {
  std::uint64_t ticket = 0;  ///< 0: it is reached.
  std::shared_ptr<hal::Event> event;
};

Point point_of(StreamTickets& tickets, std::uint64_t ticket) {
  const base::MutexLock lock(tickets.mutex);
  const auto found = tickets.points.lower_bound(ticket);
  if (ticket <= tickets.completed || found == tickets.points.end()) return {};
  return {found->first, found->second};
}

/// The next one that is not known to be reached: the others are gone.
Point next_point_of(StreamTickets& tickets) {
  const base::MutexLock lock(tickets.mutex);
  if (tickets.points.empty()) return {};
  return {tickets.points.begin()->first, tickets.points.begin()->second};
}

bool is_reached(StreamState& stream, const Point& point) {
  if (point.event == nullptr) return is_idle(stream);
  const probe::Scope scope;
  const Result<bool> is_complete = point.event->query();
  return !is_complete || *is_complete;
}

}  // namespace

StreamProgress& StreamProgress::instance() {
  static auto& only = *new StreamProgress();
  return only;
}

Result<std::uint64_t> StreamProgress::issue(void* queue) {
  if (queue == nullptr) return 1;
  XPU_TRY(ensure_initialized());
  auto& stream = *static_cast<StreamState*>(queue);
  std::uint64_t ticket = 0;
  {
    const base::MutexLock lock(stream.tickets.mutex);
    ticket = ++stream.tickets.issued;
  }
  const std::shared_ptr<hal::Queue> held = hold_queue(stream);
  if (held == nullptr || is_idle(*held)) {
    note_completed(stream.tickets, ticket);
    return ticket;
  }
  std::shared_ptr<hal::Event> event = record_here(stream, *held);
  const base::MutexLock lock(stream.tickets.mutex);
  if (ticket > stream.tickets.completed) stream.tickets.points.emplace(ticket, std::move(event));
  return ticket;
}

std::uint64_t StreamProgress::completed(void* queue) noexcept {
  if (queue == nullptr) return kEverything;
  auto& stream = *static_cast<StreamState*>(queue);
  // One point after the other, so that a long list costs as many questions as it has points that are reached, and one.
  for (Point point = next_point_of(stream.tickets); is_running() && point.ticket != 0 && is_reached(stream, point);) {
    note_completed(stream.tickets, point.ticket);
    point = next_point_of(stream.tickets);
  }
  const base::MutexLock lock(stream.tickets.mutex);
  return stream.tickets.completed;
}

Result<> StreamProgress::wait_blocking(void* queue, std::uint64_t ticket) {
  if (queue == nullptr) return {};
  XPU_TRY(ensure_initialized());
  auto& stream = *static_cast<StreamState*>(queue);
  const Point point = point_of(stream.tickets, ticket);
  if (point.ticket == 0) return {};
  if (!is_reached(stream, point)) {
    XPU_TRY(check_can_wait(stream));
    // An asynchronous error is told by the stream's next synchronisation, and nothing runs on a device that is lost.
    if (point.event != nullptr) {
      const probe::Scope scope;
      static_cast<void>(point.event->synchronize_blocking());
    } else {
      wait_keeping_error(stream);
    }
  }
  note_completed(stream.tickets, point.ticket);
  return {};
}

Result<> StreamProgress::make_wait(void* waiting, void* queue, std::uint64_t ticket) {
  if (queue == nullptr || waiting == queue) return {};
  if (waiting == nullptr) return Error{ErrorCode::unsupported, "memory of no stream has no stream that could wait"};
  XPU_TRY(ensure_initialized());
  auto& stream = *static_cast<StreamState*>(queue);
  auto& later = *static_cast<StreamState*>(waiting);
  if (stream.device->driver != later.device->driver) return Error{ErrorCode::unsupported, "the streams are of different drivers"};
  const Point point = point_of(stream.tickets, ticket);
  if (point.ticket == 0) return {};
  if (point.event == nullptr) return Error{ErrorCode::unavailable, "there is no event that a stream could wait for"};
  const TryToSubmit attempt(later.lock);
  if (!attempt.may_submit()) return Error{ErrorCode::unavailable, "another thread submits to the stream that is to wait"};
  XPU_TRY(check_not_released(later));
  const probe::Scope scope;
  return later.queue->wait(*point.event);
}

memory::StreamRef memory_ref(const StreamState& stream) noexcept {
  return {stream.memory_id, const_cast<StreamState*>(&stream), false, stream.native_handle};
}

}  // namespace xpu::runtime
