#include "memory/history_ring.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace xpu::memory {

const char* to_string(TraceAction action) noexcept {
  switch (action) {
    case TraceAction::alloc: return "alloc";
    case TraceAction::free_requested: return "free_requested";
    case TraceAction::free_completed: return "free_completed";
    case TraceAction::segment_alloc: return "segment_alloc";
    case TraceAction::segment_free: return "segment_free";
    case TraceAction::segment_map: return "segment_map";
    case TraceAction::segment_unmap: return "segment_unmap";
    case TraceAction::snapshot: return "snapshot";
    case TraceAction::oom: return "oom";
  }
  return "unknown";
}

void HistoryRing::start(std::size_t max_entries, std::uint32_t skipped_actions) {
  stop();
  const base::MutexLock lock(mutex_);
  max_entries_ = max_entries;
  lost_until_ticks_ = 0;
  start_ticks_ = read_ticks();
  start_ns_ = now_ns();
  skipped_actions_.store(skipped_actions, std::memory_order_relaxed);
  is_kept_.store(true, std::memory_order_relaxed);
}

void HistoryRing::stop() {
  const base::MutexLock lock(mutex_);
  is_kept_.store(false, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_relaxed);
  full_.clear();
  full_entries_ = 0;
}

void HistoryRing::attach(TraceTracker tracker) {
  auto added = std::make_shared<const TraceTracker>(std::move(tracker));
  const base::MutexLock lock(mutex_);
  auto more = trackers_ == nullptr ? std::make_shared<Trackers>() : std::make_shared<Trackers>(*trackers_);
  more->push_back(std::move(added));
  trackers_ = std::move(more);
  has_trackers_.store(true, std::memory_order_relaxed);
}

void HistoryRing::append(const TraceEntry& entry) {
  const base::MutexLock lock(common_mutex_);
  append(common_, entry, false);
}

/// So that the writer has room in a chunk of that stream and pool.
void HistoryRing::find_place(Writer& writer, std::int64_t stream, const PoolId& pool) {
  const bool is_right = writer.chunk_ != nullptr && writer.generation_ == generation_.load(std::memory_order_relaxed) &&
                        writer.count() < HistoryChunk::kEntries && writer.chunk_->pool == pool && writer.chunk_->stream == stream;
  if (!is_right) {
    const base::MutexLock lock(mutex_);
    open_chunk(writer, stream, pool);
  }
  writer.end_ = writer.chunk_->entries.data() + HistoryChunk::kEntries;
}

void HistoryRing::open_chunk(Writer& writer, std::int64_t stream, const PoolId& pool) {
  const std::uint64_t generation = generation_.load(std::memory_order_relaxed);
  if (writer.chunk_ != nullptr && writer.generation_ == generation) {
    writer.chunk_->count = writer.count();
    full_entries_ += writer.chunk_->count;
    full_.push_back(std::move(writer.chunk_));
  }
  writer.next_ = writer.end_ = nullptr;  // what is full is not written any more, even if there is no memory for another one
  writer.generation_ = generation;
  writer.chunk_ = std::make_shared_for_overwrite<HistoryChunk>();
  writer.chunk_->stream = stream;
  writer.chunk_->pool = pool;
  writer.next_ = writer.chunk_->entries.data();
  while (!full_.empty() && full_entries_ - full_.front()->count >= max_entries_) {
    const HistoryChunk& oldest = *full_.front();
    lost_until_ticks_ = std::max(lost_until_ticks_, oldest.entries[oldest.count - 1].ticks);
    full_entries_ -= oldest.count;
    full_.pop_front();  // for whoever may still be reading it, it stays
  }
}

void HistoryRing::keep_for_trackers(const TraceEntry& entry, bool is_double) {
  const base::MutexLock lock(mutex_);
  TraceEntry& untold = untold_.emplace_back(entry);
  untold.time_ns = now_ns();
  if (!is_double) return;
  untold_.push_back(untold);
  untold_.back().action = TraceAction::free_completed;
}

void HistoryRing::tell_trackers() {
  std::vector<TraceEntry> entries;
  std::shared_ptr<const Trackers> trackers;
  while (true) {
    {
      const base::MutexLock lock(mutex_);
      if (entries.empty() && is_telling_) return;
      entries.clear();
      is_telling_ = !untold_.empty();
      if (!is_telling_) return;
      entries.swap(untold_);
      trackers = trackers_;
    }
    for (const TraceEntry& entry : entries) {
      for (const auto& tracker : *trackers) (*tracker)(entry);
    }
  }
}

History HistoryRing::view(const std::vector<const Writer*>& writers) const {
  History history;
  const base::MutexLock common_lock(common_mutex_);
  const base::MutexLock lock(mutex_);
  if (!is_kept_.load(std::memory_order_relaxed)) return history;
  history.chunks_.assign(full_.begin(), full_.end());
  const auto add = [&](const Writer& writer) {
    if (writer.chunk_ == nullptr || writer.generation_ != generation_.load(std::memory_order_relaxed)) return;
    auto copy = std::make_shared<HistoryChunk>(*writer.chunk_);
    copy->count = writer.count();
    history.chunks_.push_back(std::move(copy));
  };
  for (const Writer* const writer : writers) add(*writer);
  add(common_);
  std::size_t all = 0;
  for (const auto& chunk : history.chunks_) {
    for (std::size_t index = 0; index < chunk->count; ++index) {
      const HistoryChunk::Entry& entry = chunk->entries[index];
      const std::size_t entries = entry.is_double ? 2 : 1;
      all += entries;
      if (entry.ticks <= lost_until_ticks_) history.skipped_ += entries;
    }
  }
  history.skipped_ = std::max(history.skipped_, all - std::min(all, max_entries_));
  history.size_ = all - history.skipped_;
  history.ticks_ = start_ticks_;
  history.time_ns_ = start_ns_;
  history.later_ticks_ = read_ticks();
  history.later_time_ns_ = now_ns();
  return history;
}

void History::for_each(const std::function<void(const TraceEntry& entry)>& visit) const {
  // Chunks of several streams overlap in time.
  using Place = std::tuple<std::uint64_t, std::size_t, std::size_t>;  // ticks, chunk, entry
  std::priority_queue<Place, std::vector<Place>, std::greater<>> places;
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (chunks_[chunk]->count != 0) places.emplace(chunks_[chunk]->entries[0].ticks, chunk, 0);
  }
  const double ns_per_tick =
      later_ticks_ == ticks_ ? 1.0 : static_cast<double>(later_time_ns_ - time_ns_) / static_cast<double>(later_ticks_ - ticks_);
  std::size_t skipped = 0;
  while (!places.empty()) {
    const std::size_t place = std::get<1>(places.top());
    std::size_t index = std::get<2>(places.top());
    places.pop();
    const HistoryChunk& chunk = *chunks_[place];
    // As far as no other chunk comes in between.
    const std::uint64_t until = places.empty() ? ~std::uint64_t{0} : std::get<0>(places.top());
    do {
      const HistoryChunk::Entry& kept = chunk.entries[index];
      // A processor's counter may be a little behind the one that was read at the start.
      const auto since_start_ns =
          static_cast<std::int64_t>(static_cast<double>(static_cast<std::int64_t>(kept.ticks - ticks_)) * ns_per_tick);
      TraceEntry entry{time_ns_ + static_cast<std::uint64_t>(since_start_ns),
                       kept.address,
                       kept.bytes,
                       chunk.stream,
                       chunk.pool,
                       kept.stack,
                       kept.action};
      if (skipped++ >= skipped_) visit(entry);
      if (kept.is_double) {
        entry.action = TraceAction::free_completed;
        if (skipped++ >= skipped_) visit(entry);
      }
    } while (++index < chunk.count && chunk.entries[index].ticks <= until);
    if (index < chunk.count) places.emplace(chunk.entries[index].ticks, place, index);
  }
}

}  // namespace xpu::memory
