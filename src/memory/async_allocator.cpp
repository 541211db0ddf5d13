#include "xpu/memory/async_allocator.hpp"

#include <fmt/format.h>

#include <atomic>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "memory/call_statistics.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {

class AsyncAllocator::State {
 public:
  State(std::unique_ptr<DeviceCachingAllocator> allocator, const AsyncOptions& options)
      : caching(std::move(allocator)), release_threshold(options.release_threshold_bytes), config_(options.config) {}

  Result<void*> allocate(std::size_t requested_bytes, const StreamRef& stream) {
    if (requested_bytes == 0) return static_cast<void*>(nullptr);
    let_go([&](const Kept& kept) { return kept.home == stream.id && kept.freed_on.id != stream.id; });
    const std::size_t bytes = block_bytes(requested_bytes, config_);
    if (void* const address = take_kept(requested_bytes, bytes, stream); address != nullptr) return address;
    Result<void*> allocated = caching->allocate(requested_bytes, stream);
    if (!allocated && allocated.error().code == ErrorCode::out_of_device_memory && let_all_go()) {
      allocated = caching->allocate(requested_bytes, stream);
    }
    if (!allocated) {
      if (allocated.error().code == ErrorCode::out_of_device_memory) statistics.note_out_of_memory();
      return allocated;
    }
    statistics.note_allocated(requested_bytes, bytes);
    const base::MutexLock lock(mutex_);
    live_[*allocated] = {stream.id, stream, bytes, requested_bytes, false};
    return allocated;
  }

  /// `stream` null: on that for which the block was allocated.
  Result<> free(void* address, const StreamRef* stream) {
    if (address == nullptr) return {};
    Live block;
    StreamRef freed_on;
    {
      const base::MutexLock lock(mutex_);
      const auto found = live_.find(address);
      if (found == live_.end()) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("invalid device pointer: {} is not the begin of a block, or was freed before", address)};
      }
      block = found->second;
      freed_on = stream == nullptr ? block.stream : *stream;
      live_.erase(found);
      statistics.note_freed(block.requested_bytes, block.bytes);
      if (freed_on.id != block.home && !block.has_uses) {
        kept_.push_back({address, block.home, freed_on, block.bytes});
        return {};
      }
    }
    if (freed_on.id != block.home) caching->record_use(address, freed_on);
    return caching->free(address);
  }

  bool record_use(void* address, const StreamRef& stream) {
    {
      const base::MutexLock lock(mutex_);
      const auto found = live_.find(address);
      if (found == live_.end()) return false;
      if (found->second.stream.id == stream.id) return true;
      found->second.has_uses = true;
    }
    return caching->record_use(address, stream);
  }

  void trim(std::uint64_t kept_bytes) {
    if (static_cast<std::uint64_t>(caching->statistics().reserved_bytes.all.current) <= kept_bytes) return;
    let_all_go();
    caching->trim(kept_bytes);
  }

  const std::unique_ptr<DeviceCachingAllocator> caching;
  CallStatistics statistics;
  std::atomic<std::size_t> release_threshold;

 private:
  struct Live {
    std::int64_t home = 0;  ///< The stream whose memory it is in the caching allocator.
    StreamRef stream;       ///< For which it was allocated last.
    std::size_t bytes = 0, requested_bytes = 0;
    bool has_uses = false;  ///< Of streams other than `stream`.
  };
  /// Freed on another stream than its home, and live in the caching allocator.
  struct Kept {
    void* address;
    std::int64_t home;
    StreamRef freed_on;
    std::size_t bytes;
  };

  /// The best fitting one that the stream freed, if that wastes no more than an eighth.
  void* take_kept(std::size_t requested_bytes, std::size_t bytes, const StreamRef& stream) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    auto best = kept_.end();
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      if (kept->freed_on.id != stream.id || kept->bytes < bytes || kept->bytes - bytes > bytes / 8) continue;
      if (best == kept_.end() || kept->bytes < best->bytes) best = kept;
    }
    if (best == kept_.end()) return nullptr;
    void* const address = best->address;
    live_[address] = {best->home, stream, best->bytes, requested_bytes, false};
    statistics.note_allocated(requested_bytes, best->bytes);
    kept_.erase(best);
    return address;
  }

  /// From now on they wait for a ticket of the stream that freed them. Whether there were any.
  template <typename Predicate>
  bool let_go(Predicate&& is_wanted) XPU_EXCLUDES(mutex_) {
    std::vector<Kept> gone;
    {
      const base::MutexLock lock(mutex_);
      std::vector<Kept> rest;
      for (const Kept& kept : kept_) (is_wanted(kept) ? gone : rest).push_back(kept);
      if (!gone.empty()) kept_ = std::move(rest);
    }
    for (const Kept& kept : gone) {
      caching->record_use(kept.address, kept.freed_on);
      static_cast<void>(caching->free(kept.address));
    }
    return !gone.empty();
  }
  bool let_all_go() XPU_EXCLUDES(mutex_) {
    return let_go([](const Kept&) { return true; });
  }

  const Config config_;
  base::Mutex mutex_;
  std::unordered_map<void*, Live> live_ XPU_GUARDED_BY(mutex_);
  std::vector<Kept> kept_ XPU_GUARDED_BY(mutex_);
};

AsyncAllocator::AsyncAllocator(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
AsyncAllocator::~AsyncAllocator() = default;

Result<std::unique_ptr<AsyncAllocator>> AsyncAllocator::create(hal::MemoryProvider& memory, hal::QueueProgress& progress,
                                                               const AsyncOptions& options) {
  XPU_TRY_ASSIGN(std::unique_ptr<DeviceCachingAllocator> caching,
                 DeviceCachingAllocator::create(memory, progress, options.config, options.device));
  return std::unique_ptr<AsyncAllocator>(new AsyncAllocator(std::make_unique<State>(std::move(caching), options)));
}

Result<void*> AsyncAllocator::allocate(std::size_t bytes, const StreamRef& stream) { return state_->allocate(bytes, stream); }
Result<> AsyncAllocator::free(void* address) { return state_->free(address, nullptr); }
Result<> AsyncAllocator::free(void* address, const StreamRef& stream) { return state_->free(address, &stream); }
bool AsyncAllocator::record_use(void* address, const StreamRef& stream) { return state_->record_use(address, stream); }
void AsyncAllocator::trim(std::uint64_t kept_bytes) { state_->trim(kept_bytes); }

void AsyncAllocator::note_synchronized() {
  const std::size_t kept_bytes = release_threshold();
  if (kept_bytes != kUnlimitedBytes) state_->trim(kept_bytes);
}
void AsyncAllocator::set_release_threshold(std::size_t bytes) noexcept { state_->release_threshold.store(bytes); }
std::size_t AsyncAllocator::release_threshold() const noexcept { return state_->release_threshold.load(); }

DeviceStatistics AsyncAllocator::statistics() const {
  DeviceStatistics result = state_->caching->statistics();
  const DeviceStatistics own = state_->statistics.value();
  result.allocation = own.allocation;
  result.allocated_bytes = own.allocated_bytes;
  result.requested_bytes = own.requested_bytes;
  result.num_ooms = own.num_ooms;
  return result;
}
void AsyncAllocator::reset_peak_statistics() {
  state_->caching->reset_peak_statistics();
  state_->statistics.reset_peaks();
}
void AsyncAllocator::reset_accumulated_statistics() {
  state_->caching->reset_accumulated_statistics();
  state_->statistics.reset_accumulated();
}

}  // namespace xpu::memory
