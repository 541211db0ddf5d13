#include "memory/epoch_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace xpu::memory {

using base::MutexLock;

void EpochClock::note_stream(const StreamRef& stream) {
  const MutexLock lock(mutex_);
  if (stream.is_capturing) {
    find_or_add(stream)->second.is_capturing = true;
    return;
  }
  const auto found = streams_.find(stream.id);
  if (found == streams_.end()) return;
  found->second.is_capturing = false;
  is_due_ |= found->second.is_due();
  drop_if_idle(found);
}

Epoch EpochClock::note_free(const StreamRef& stream, std::size_t bytes) {
  const MutexLock lock(mutex_);
  Stream& known = find_or_add(stream)->second;
  if (!known.is_open) {
    known.newest = ++newest_epoch_;
    known.is_open = true;
  }
  ++known.due_frees;
  known.due_bytes += bytes;
  is_due_ |= known.is_due();
  return Epoch{stream.id, known.newest};
}

bool EpochClock::is_complete(const Epoch& epoch) const {
  const MutexLock lock(mutex_);
  const auto found = streams_.find(epoch.stream_id);
  return found == streams_.end() || epoch.number <= found->second.completed;
}

bool EpochClock::is_issue_due() const {
  const MutexLock lock(mutex_);
  return is_due_;
}

std::size_t EpochClock::issue_due() {
  std::vector<std::int64_t> due;
  {
    const MutexLock lock(mutex_);
    is_due_ = false;
    for (const auto& [id, stream] : streams_) {
      if (stream.is_due()) due.push_back(id);
    }
  }
  return static_cast<std::size_t>(std::ranges::count_if(due, [this](std::int64_t id) { return issue(id).has_value(); }));
}

std::size_t EpochClock::issue_pending() {
  std::vector<std::int64_t> pending;
  {
    const MutexLock lock(mutex_);
    is_due_ = false;
    for (const auto& [id, stream] : streams_) {
      if (!stream.is_capturing && stream.needs_ticket()) pending.push_back(id);
    }
  }
  return static_cast<std::size_t>(std::ranges::count_if(pending, [this](std::int64_t id) { return issue(id).has_value(); }));
}

void EpochClock::poll() {
  std::vector<std::pair<std::int64_t, void*>> outstanding;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, stream] : streams_) {
      if (!stream.is_capturing && !stream.issued.empty()) outstanding.emplace_back(id, stream.queue);
    }
  }
  for (const auto& [id, queue] : outstanding) {
    const std::uint64_t ticket = progress_.completed(queue);
    const MutexLock lock(mutex_);
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;
    std::deque<Issued>& issued = found->second.issued;
    for (; !issued.empty() && issued.front().ticket <= ticket; issued.pop_front()) found->second.completed = issued.front().epoch;
    drop_if_idle(found);
  }
}

Result<> EpochClock::wait(const Epoch& epoch) {
  XPU_TRY_ASSIGN(const Answer answer, answer_for(epoch));
  if (answer.issued.epoch == 0) return {};
  const Result<> waited = progress_.wait_blocking(answer.queue, answer.issued.ticket);
  if (!waited && waited.error().code != ErrorCode::device_lost) return waited.error();
  complete(epoch.stream_id, answer.issued.epoch);
  return {};
}

Result<> EpochClock::make_wait(const StreamRef& waiting, const Epoch& epoch) {
  if (waiting.is_capturing) {
    return Error{ErrorCode::failed_precondition, fmt::format("stream {} is capturing and is not made to wait", waiting.id)};
  }
  XPU_TRY_ASSIGN(const Answer answer, answer_for(epoch));
  if (answer.issued.epoch == 0) return {};
  return progress_.make_wait(waiting.queue, answer.queue, answer.issued.ticket);
}

/// The first ticket that answers for the epoch; a new one if there is none.
Result<EpochClock::Answer> EpochClock::answer_for(const Epoch& epoch) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      const auto found = streams_.find(epoch.stream_id);
      if (found == streams_.end() || epoch.number <= found->second.completed) return Answer{};
      const Stream& stream = found->second;
      if (stream.is_capturing) {
        return Error{ErrorCode::failed_precondition, fmt::format("stream {} is capturing and cannot be waited for", epoch.stream_id)};
      }
      const auto covering = std::ranges::lower_bound(stream.issued, epoch.number, {}, &Issued::epoch);
      if (covering != stream.issued.end()) return Answer{stream.queue, *covering};
    }
    XPU_TRY(issue(epoch.stream_id));
  }
}

/// A ticket for what the stream has without one, if it has.
Result<> EpochClock::issue(std::int64_t stream_id) {
  void* queue = nullptr;
  std::uint64_t epoch = 0;
  {
    const MutexLock lock(mutex_);
    const auto found = streams_.find(stream_id);
    if (found == streams_.end() || found->second.is_capturing || !found->second.needs_ticket()) return {};
    Stream& stream = found->second;
    stream.is_open = false;
    stream.due_frees = stream.due_bytes = 0;
    queue = stream.queue;
    epoch = stream.newest;
  }
  const Result<std::uint64_t> ticket = progress_.issue(queue);
  if (!ticket) {
    if (ticket.error().code != ErrorCode::device_lost) return ticket.error();
    complete(stream_id, epoch);  // nothing runs there any more
    return {};
  }
  const MutexLock lock(mutex_);
  // Gone or further when another thread's ticket was reached meanwhile.
  if (const auto found = streams_.find(stream_id); found != streams_.end()) add_ticket(found->second, epoch, *ticket);
  return {};
}

EpochClock::Streams::iterator EpochClock::find_or_add(const StreamRef& stream) {
  const auto [found, is_new] = streams_.try_emplace(stream.id);
  if (is_new) found->second.completed = found->second.newest = newest_epoch_;
  found->second.queue = stream.queue;
  return found;
}

/// Threads may arrive here in another order than that in which they got their tickets, or closed their epochs.
void EpochClock::add_ticket(Stream& stream, std::uint64_t epoch, std::uint64_t ticket) {
  if (epoch <= stream.completed) return;
  if (!stream.issued.empty() && stream.issued.back().epoch >= epoch) return;  // that ticket answers for this epoch, too
  while (!stream.issued.empty() && stream.issued.back().ticket >= ticket) stream.issued.pop_back();
  stream.issued.push_back(Issued{epoch, ticket});
}

void EpochClock::complete(std::int64_t stream_id, std::uint64_t epoch) {
  const MutexLock lock(mutex_);
  const auto found = streams_.find(stream_id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  stream.completed = std::max(stream.completed, epoch);
  while (!stream.issued.empty() && stream.issued.front().epoch <= epoch) stream.issued.pop_front();
  drop_if_idle(found);
}

void EpochClock::drop_if_idle(Streams::iterator stream) {
  if (!stream->second.is_capturing && stream->second.newest <= stream->second.completed) streams_.erase(stream);
}

}  // namespace xpu::memory
