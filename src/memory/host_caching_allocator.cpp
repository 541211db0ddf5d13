#include "xpu/memory/host_caching_allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "memory/epoch_clock.hpp"
#include "memory/futex_lock.hpp"
#include "memory/host_block_table.hpp"
#include "memory/host_counters.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/base/text.hpp"

namespace xpu::memory {

/// What is known lies under one lock; provider and queues are called without it. So a segment is in the table only while it is certainly
/// ours: it is added after the provider gave it, and taken out before it goes back.
class HostCachingAllocator::State {
 public:
  State(hal::MemoryProvider& provider, hal::QueueProgress& progress, const HostCachingOptions& options)
      : provider_(provider), clock_(progress), max_cached_bytes_(options.max_cached_bytes), table_(options) {}
  ~State() {
    for (const HostSegment& segment : table_.remove_all()) provider_.free(segment.address);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[gnu::always_inline]] Result<void*> allocate(std::size_t bytes) XPU_EXCLUDES(lock_);
  [[gnu::always_inline]] Result<> free(void* pointer) XPU_EXCLUDES(lock_);
  bool record_use(const void* pointer, const StreamRef& stream) XPU_EXCLUDES(lock_);
  bool contains(const void* pointer) XPU_EXCLUDES(lock_);
  void note_stream(const StreamRef& stream) { clock_.note_stream(stream); }
  void empty_cache() XPU_EXCLUDES(lock_);

  void close(const char* why) noexcept { closed_.store(why, std::memory_order_relaxed); }
  bool is_closed() const noexcept { return closed_.load(std::memory_order_relaxed) != nullptr; }
  Error error_of_closing() const { return {ErrorCode::unavailable, closed_.load(std::memory_order_relaxed)}; }

  HostStatistics statistics() const XPU_EXCLUDES(lock_) {
    const FutexLockGuard lock(lock_);
    return counters_.statistics();
  }
  void reset_peak() XPU_EXCLUDES(lock_) {
    const FutexLockGuard lock(lock_);
    counters_.reset_peak();
  }
  void reset_accumulated() XPU_EXCLUDES(lock_) {
    const FutexLockGuard lock(lock_);
    counters_.reset_accumulated();
  }

 private:
  struct Waiting {
    Epoch epoch;
    HostBlock* block;
  };

  Result<void*> allocate_slowly(std::size_t bytes) XPU_EXCLUDES(lock_);
  [[gnu::always_inline]] void* take(std::size_t bytes) XPU_EXCLUDES(lock_) {
    const FutexLockGuard lock(lock_);
    HostBlock* const block = table_.take(bytes);
    return block == nullptr ? nullptr : hand_out(*block);
  }
  void* take_completed(std::size_t bytes) XPU_EXCLUDES(lock_);
  Result<void*> add_segment(std::size_t bytes) XPU_EXCLUDES(lock_);
  Result<void*> reclaim(std::size_t bytes) XPU_EXCLUDES(lock_);
  bool has_pending(std::size_t bytes) const XPU_EXCLUDES(lock_);
  /// The oldest free that is not complete, of streams other than those.
  std::optional<Epoch> oldest_epoch(const std::set<std::int64_t>& except) const XPU_EXCLUDES(lock_);
  bool is_worth_another_try(std::uint64_t leaving_count, const std::set<std::int64_t>& not_waited_for) const XPU_EXCLUDES(lock_);
  void collect() XPU_EXCLUDES(lock_);
  void collect_due() XPU_EXCLUDES(lock_);
  void give_back_idle_above(std::size_t bytes) XPU_EXCLUDES(lock_);
  void give_back(const HostSegments& segments) XPU_EXCLUDES(lock_);
  /// Returns how many segments ever left.
  std::uint64_t wait_for_leaving_segments() const noexcept;

  void* hand_out(HostBlock& block) XPU_REQUIRES(lock_) {
    counters_.hand_out(block.bytes);
    return block.address;
  }
  /// Of what is not the begin of a live block.
  [[gnu::cold, gnu::noinline]] Error refuse_free(const void* pointer) XPU_REQUIRES(lock_);
  void defer(HostBlock& block) XPU_REQUIRES(lock_);
  Error exhausted(std::size_t bytes, const Error& refusal, const std::string& not_waited_for) const XPU_EXCLUDES(lock_);

  std::atomic<const char*> closed_{nullptr};
  hal::MemoryProvider& provider_;
  EpochClock clock_;
  const std::size_t max_cached_bytes_;
  // Segments that were ever taken out of the table, and those of them that are back with the provider.
  std::atomic<std::uint64_t> leaving_segments_{0}, gone_segments_{0};

  mutable FutexLock lock_;
  HostBlockTable table_ XPU_GUARDED_BY(lock_);
  HostCounters counters_ XPU_GUARDED_BY(lock_);
  // Of each stream the blocks that it may still use, as they were freed; a block stands in the list of each of its streams.
  std::map<std::int64_t, std::deque<Waiting>> waiting_ XPU_GUARDED_BY(lock_);
  std::uint64_t free_count_ XPU_GUARDED_BY(lock_) = 0;
};

namespace {

bool is_out_of_memory(const Error& error) {
  return error.code == ErrorCode::out_of_host_memory || error.code == ErrorCode::out_of_device_memory;
}

// A page: what drivers pin. Blocks of a slab are aligned less.
constexpr std::size_t kSegmentAlignment = 4096;

}  // namespace

inline Result<void*> HostCachingAllocator::State::allocate(std::size_t bytes) {
  if (bytes - 1 < HostBlockTable::kMostBytes) [[likely]] {
    if (void* const pointer = take(bytes); pointer != nullptr) [[likely]]
      return pointer;
  }
  return allocate_slowly(bytes);
}

Result<void*> HostCachingAllocator::State::allocate_slowly(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > HostBlockTable::kMostBytes) {
    return Error{ErrorCode::out_of_host_memory, fmt::format("cannot allocate {} bytes of pinned host memory: at most {} can be addressed",
                                                            bytes, HostBlockTable::kMostBytes)};
  }
  if (has_pending(bytes)) {
    if (void* const pointer = take_completed(bytes); pointer != nullptr) return pointer;
  }
  Result<void*> added = add_segment(bytes);
  if (!added && is_out_of_memory(added.error())) return reclaim(bytes);
  return added;
}

inline Result<> HostCachingAllocator::State::free(void* pointer) {
  if (pointer == nullptr) return {};
  bool is_too_much_idle = false, is_issue_due = false;
  {
    const FutexLockGuard lock(lock_);
    HostBlock* const block = table_.find_begin(pointer);
    if (block == nullptr || block->state != HostBlockState::live) [[unlikely]]
      return refuse_free(pointer);
    counters_.free(block->bytes);
    if (block->uses.empty()) [[likely]] {
      table_.put_back(*block);
      is_too_much_idle = table_.idle_bytes() > max_cached_bytes_;
    } else {
      defer(*block);
      is_issue_due = clock_.is_issue_due();
    }
  }
  if (is_issue_due) [[unlikely]]
    collect_due();
  if (is_too_much_idle) [[unlikely]]
    give_back_idle_above(max_cached_bytes_);
  return {};
}

void HostCachingAllocator::State::collect_due() {
  clock_.issue_due();
  clock_.poll();
  collect();
  give_back_idle_above(max_cached_bytes_);
}

Error HostCachingAllocator::State::refuse_free(const void* pointer) {
  const HostBlock* const block = table_.find(pointer);
  if (block == nullptr) {
    return {ErrorCode::invalid_argument,
            fmt::format("cannot free {}: it lies in no block of pinned host memory of this allocator", pointer)};
  }
  if (block->address != pointer) {
    return {ErrorCode::invalid_argument, fmt::format("cannot free {}: it lies inside a block of pinned host memory, which begins at {}",
                                                     pointer, static_cast<const void*>(block->address))};
  }
  return {ErrorCode::invalid_argument, fmt::format("cannot free {}: this block of pinned host memory was freed already", pointer)};
}

bool HostCachingAllocator::State::record_use(const void* pointer, const StreamRef& stream) {
  const FutexLockGuard lock(lock_);
  HostBlock* const block = table_.find(pointer);
  if (block == nullptr || block->state != HostBlockState::live) return false;
  clock_.note_stream(stream);
  const auto known = std::ranges::find(block->uses, stream.id, &StreamRef::id);
  if (known == block->uses.end()) block->uses.push_back(stream);
  return true;
}

bool HostCachingAllocator::State::contains(const void* pointer) {
  const FutexLockGuard lock(lock_);
  const HostBlock* const block = table_.find(pointer);
  return block != nullptr && block->state == HostBlockState::live;
}

void HostCachingAllocator::State::empty_cache() {
  clock_.issue_pending();
  clock_.poll();
  collect();
  give_back_idle_above(0);
}

/// For a request that a pending block would serve. A ticket costs a submission, so those that are there are asked first.
void* HostCachingAllocator::State::take_completed(std::size_t bytes) {
  clock_.poll();
  collect();
  void* pointer = take(bytes);
  if (pointer == nullptr && clock_.issue_pending() != 0) {
    clock_.poll();
    collect();
    pointer = take(bytes);
  }
  give_back_idle_above(max_cached_bytes_);
  return pointer;
}

Result<void*> HostCachingAllocator::State::add_segment(std::size_t bytes) {
  std::size_t segment_bytes = 0;
  {
    const FutexLockGuard lock(lock_);
    segment_bytes = table_.segment_bytes(bytes);
  }
  const std::uint64_t begin_ns = now_ns();
  XPU_TRY_ASSIGN(void* const address, provider_.allocate(segment_bytes, kSegmentAlignment));
  const std::uint64_t took_ns = now_ns() - begin_ns;
  const FutexLockGuard lock(lock_);
  counters_.add_segment(segment_bytes, took_ns);
  return hand_out(table_.add(address, bytes));
}

/// The provider refused. What costs nobody time comes first; then waiting for the oldest pending blocks, one epoch after the other.
Result<void*> HostCachingAllocator::State::reclaim(std::size_t bytes) {
  clock_.issue_pending();
  clock_.poll();
  std::set<std::int64_t> not_waited_for;
  std::string reason;
  for (;;) {
    collect();
    if (void* const pointer = take(bytes); pointer != nullptr) return pointer;
    give_back_idle_above(0);
    const std::uint64_t leaving_count = wait_for_leaving_segments();
    Result<void*> added = add_segment(bytes);
    if (added || !is_out_of_memory(added.error())) return added;

    std::optional<Epoch> epoch;
    while ((epoch = oldest_epoch(not_waited_for))) {
      const Result<> waited = clock_.wait(*epoch);
      if (waited) break;
      not_waited_for.insert(epoch->stream_id);
      reason = waited.error().message;
    }
    if (!epoch && !is_worth_another_try(leaving_count, not_waited_for)) return exhausted(bytes, added.error(), reason);
  }
}

/// Whether other threads have let something go since so many segments had left. One look at all places where it may be: between two looks
/// it could move from the second place to the first.
bool HostCachingAllocator::State::is_worth_another_try(std::uint64_t leaving_count, const std::set<std::int64_t>& not_waited_for) const {
  const FutexLockGuard lock(lock_);
  return table_.idle_bytes() != 0 || leaving_segments_.load() != leaving_count ||
         std::ranges::any_of(waiting_, [&](const auto& entry) { return !not_waited_for.contains(entry.first); });
}

bool HostCachingAllocator::State::has_pending(std::size_t bytes) const {
  const FutexLockGuard lock(lock_);
  return table_.has_pending(bytes);
}

std::optional<Epoch> HostCachingAllocator::State::oldest_epoch(const std::set<std::int64_t>& except) const {
  const FutexLockGuard lock(lock_);
  const Waiting* oldest = nullptr;
  for (const auto& [stream_id, waiting] : waiting_) {
    if (except.contains(stream_id)) continue;
    if (oldest == nullptr || waiting.front().block->free_order < oldest->block->free_order) oldest = &waiting.front();
  }
  if (oldest == nullptr) return std::nullopt;
  return oldest->epoch;
}

/// Blocks whose last epoch is complete are free.
void HostCachingAllocator::State::collect() {
  const FutexLockGuard lock(lock_);
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    std::deque<Waiting>& waiting = entry->second;
    for (; !waiting.empty() && clock_.is_complete(waiting.front().epoch); waiting.pop_front()) {
      HostBlock& block = *waiting.front().block;
      if (--block.open_epochs != 0) continue;
      counters_.end_pending(block.bytes);
      --block.bin->pending_count;
      block.uses.clear();
      table_.put_back(block);
    }
    entry = waiting.empty() ? waiting_.erase(entry) : std::next(entry);
  }
}

void HostCachingAllocator::State::give_back_idle_above(std::size_t bytes) {
  HostSegments segments;
  {
    const FutexLockGuard lock(lock_);
    segments = table_.remove_idle_above(bytes);
    leaving_segments_ += segments.size();
  }
  give_back(segments);
}

void HostCachingAllocator::State::give_back(const HostSegments& segments) {
  for (const HostSegment& segment : segments) {
    const std::uint64_t begin_ns = now_ns();
    provider_.free(segment.address);
    const std::uint64_t took_ns = now_ns() - begin_ns;
    {
      const FutexLockGuard lock(lock_);
      counters_.remove_segment(segment.bytes, took_ns);
    }
    ++gone_segments_;
    gone_segments_.notify_all();
  }
}

/// Memory that another thread is just giving back would be missed by a request that fails now. Waits for a driver's free at most.
std::uint64_t HostCachingAllocator::State::wait_for_leaving_segments() const noexcept {
  const std::uint64_t leaving = leaving_segments_.load();
  for (std::uint64_t gone = gone_segments_.load(); gone < leaving; gone = gone_segments_.load()) gone_segments_.wait(gone);
  return leaving;
}

void HostCachingAllocator::State::defer(HostBlock& block) {
  block.state = HostBlockState::pending;
  block.free_order = ++free_count_;
  block.open_epochs = static_cast<std::uint32_t>(block.uses.size());
  for (const StreamRef& stream : block.uses) waiting_[stream.id].push_back(Waiting{clock_.note_free(stream, block.bytes), &block});
  ++block.bin->pending_count;
  counters_.begin_pending(block.bytes);
}

Error HostCachingAllocator::State::exhausted(std::size_t bytes, const Error& refusal, const std::string& not_waited_for) const {
  const HostStatistics now = statistics();
  const auto text = [](std::int64_t amount) { return bytes_text(static_cast<std::uint64_t>(std::max<std::int64_t>(amount, 0))); };
  const std::int64_t cached_bytes = now.reserved_bytes.current - now.allocated_bytes.current - now.pending_bytes.current;
  return Error{
      refusal.code,
      fmt::format("cannot allocate {} bytes ({}) of pinned host memory: {} are allocated, {} wait for streams{}{}{}, {} are cached "
                  "in parts that do not fit; the driver says: {}",
                  bytes, bytes_text(bytes), text(now.allocated_bytes.current), text(now.pending_bytes.current),
                  not_waited_for.empty() ? "" : " (", not_waited_for, not_waited_for.empty() ? "" : ")", text(cached_bytes),
                  refusal.message),
      refusal.native_code};
}

HostCachingAllocator::HostCachingAllocator(hal::MemoryProvider& provider, hal::QueueProgress& progress, const HostCachingOptions& options)
    : state_(std::make_unique<State>(provider, progress, options)) {}
HostCachingAllocator::~HostCachingAllocator() = default;

Result<void*> HostCachingAllocator::allocate(std::size_t bytes) {
  if (state_->is_closed()) [[unlikely]]
    return state_->error_of_closing();
  return state_->allocate(bytes);
}
Result<> HostCachingAllocator::free(void* pointer) {
  if (state_->is_closed()) [[unlikely]]
    return {};
  return state_->free(pointer);
}
bool HostCachingAllocator::record_use(const void* pointer, const StreamRef& stream) {
  return !state_->is_closed() && state_->record_use(pointer, stream);
}
bool HostCachingAllocator::contains(const void* pointer) const { return !state_->is_closed() && state_->contains(pointer); }
void HostCachingAllocator::note_stream(const StreamRef& stream) {
  if (!state_->is_closed()) state_->note_stream(stream);
}
void HostCachingAllocator::empty_cache() {
  if (!state_->is_closed()) state_->empty_cache();
}
HostStatistics HostCachingAllocator::statistics() const { return state_->is_closed() ? HostStatistics() : state_->statistics(); }
void HostCachingAllocator::reset_peak_statistics() {
  if (!state_->is_closed()) state_->reset_peak();
}
void HostCachingAllocator::reset_accumulated_statistics() {
  if (!state_->is_closed()) state_->reset_accumulated();
}
void HostCachingAllocator::close(const char* why) noexcept { state_->close(why); }

}  // namespace xpu::memory
