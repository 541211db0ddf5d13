#include "xpu/memory/guarded_allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "memory/block_ledger.hpp"
#include "memory/block_sizes.hpp"
#include "memory/call_statistics.hpp"
#include "memory/device_memory.hpp"
#include "memory/epoch_clock.hpp"
#include "memory/guarded_memory.hpp"
#include "memory/live_blocks.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/base/text.hpp"

namespace xpu::memory {

class GuardedAllocator::State {
 public:
  State(hal::MemoryProvider& memory, hal::QueueProgress& progress, const GuardOptions& options)
      : memory_(memory), options_(options), clock_(progress) {
    ledger.start(options.checks);
  }
  ~State() {
    const base::MutexLock lock(mutex_);
    const auto drop = [&](const GuardedRange& range) {
      unmap_guarded(memory_, range);
      unreserve_guarded(memory_, range);
    };
    for (const auto& [begin, block] : live_) drop(block.range);
    for (const Freed& freed : freed_) drop(freed.range);
    for (const GuardedRange& range : quarantine_) unreserve_guarded(memory_, range);
  }

  Result<void*> allocate(std::size_t bytes, const StreamRef& stream) {
    if (bytes == 0) return static_cast<void*>(nullptr);
    const StackId stack = ledger.record_stack();
    clock_.note_stream(stream);
    look_at_freed();
    Result<GuardedRange> range = map(bytes);
    if (!range && range.error().code == ErrorCode::out_of_device_memory && has_freed()) {
      statistics.note_retry();
      wait_for_freed();
      range = map(bytes);
    }
    if (!range) {
      if (range.error().code == ErrorCode::out_of_device_memory) statistics.note_out_of_memory();
      return std::move(range).error();
    }
    if (options_.is_host_accessible) fill_slack(*range);
    statistics.note_taken(block_bytes(*range), range->mapped_bytes);
    statistics.note_allocated(bytes, block_bytes(*range));
    const base::MutexLock lock(mutex_);
    ledger.note_taken({range->begin, bytes, bytes, stream.id, {}, stack, 0, 0});
    live_[range->begin] = {*range, stream, {}};
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(range->begin));
  }

  Result<> free(void* address) {
    if (address == nullptr) return {};
    const auto begin = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
    if (!move_to_freed(begin, ledger.record_stack())) {
      std::string message = fmt::format("invalid device pointer: {} is not the begin of a block, or was freed before", address);
      if (const std::optional<NotedBlock> freed = ledger.find_freed(begin)) {
        message += "; it lies in a block that was freed: " + ledger.describe(*freed);
      }
      return Error{ErrorCode::invalid_argument, std::move(message)};
    }
    look_at_freed();
    return {};
  }

  bool record_use(void* address, const StreamRef& stream) {
    clock_.note_stream(stream);
    {
      const base::MutexLock lock(mutex_);
      const auto found = live_.find(reinterpret_cast<std::uintptr_t>(address));
      if (found != live_.end()) {
        Live& block = found->second;
        const auto is_it = [&](const StreamRef& known) { return known.id == stream.id; };
        if (!is_it(block.stream) && std::none_of(block.users.begin(), block.users.end(), is_it)) block.users.push_back(stream);
        return true;
      }
    }
    ledger.report_use_of_freed(address, stream.id);
    return false;
  }

  void wait_for_freed() {
    std::vector<Epoch> epochs;
    {
      const base::MutexLock lock(mutex_);
      for (const Freed& freed : freed_) epochs.insert(epochs.end(), freed.until.begin(), freed.until.end());
    }
    // One that cannot be waited for stays.
    for (const Epoch& epoch : epochs) static_cast<void>(clock_.wait(epoch));
    look_at_freed();
  }

  BlockLedger ledger;
  CallStatistics statistics;

 private:
  struct Live {
    GuardedRange range;
    StreamRef stream;
    std::vector<StreamRef> users;
  };
  struct Freed {
    GuardedRange range;
    NotedBlock block;
    std::vector<Epoch> until;
  };

  std::size_t block_bytes(const GuardedRange& range) const noexcept { return range.mapped_end() - range.begin; }

  Result<GuardedRange> map(std::size_t bytes) {
    if (bytes > kMostRequestBytes)
      return Error{ErrorCode::out_of_device_memory, fmt::format("{} bytes are more than any device has", bytes)};
    Result<GuardedRange> range = map_guarded(memory_, bytes, options_.alignment_bytes);
    if (range) return range;
    Error error = std::move(range).error();
    error.message = fmt::format("no pages for a block of {} ({} bytes) between guards: {}", bytes_text(bytes), bytes, error.message);
    return error;
  }

  bool has_freed() XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return !freed_.empty();
  }

  bool move_to_freed(std::uint64_t begin, StackId stack) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    const auto found = live_.find(begin);
    if (found == live_.end()) return false;
    const Live block = std::move(found->second);
    live_.erase(found);
    ledger.note_freed({begin, block.range.bytes, block.range.bytes, block.stream.id, {}, 0, 0, 0}, stack);
    statistics.note_freed(block.range.bytes, block_bytes(block.range));
    Freed freed{block.range, ledger.find_freed(begin).value_or(NotedBlock{}), {clock_.note_free(block.stream, block.range.bytes)}};
    for (const StreamRef& user : block.users) freed.until.push_back(clock_.note_free(user, block.range.bytes));
    freed_.push_back(std::move(freed));
    return true;
  }

  /// Those that no stream uses any more: compares the pattern, and takes the memory away.
  void look_at_freed() XPU_EXCLUDES(mutex_) {
    clock_.issue_pending();
    clock_.poll();
    std::vector<Freed> done;
    {
      const base::MutexLock lock(mutex_);
      std::deque<Freed> waiting;
      for (Freed& freed : freed_) {
        const bool is_done =
            std::all_of(freed.until.begin(), freed.until.end(), [&](const Epoch& until) { return clock_.is_complete(until); });
        if (is_done) {
          done.push_back(std::move(freed));
        } else {
          waiting.push_back(std::move(freed));
        }
      }
      freed_ = std::move(waiting);
    }
    for (const Freed& freed : done) {
      if (options_.is_host_accessible) compare(freed);
      unmap_guarded(memory_, freed.range);
      statistics.note_completed(block_bytes(freed.range));
      statistics.note_given_back(block_bytes(freed.range), freed.range.mapped_bytes);
      put_in_quarantine(freed.range);
    }
  }

  void compare(const Freed& freed) const {
    const std::optional<Damage> damage = find_damage(freed.range);
    if (!damage) return;
    ledger.report(fmt::format("{} bytes outside of a block were written, the first of them {}: {}", damage->changed_bytes,
                              damage->first_offset < 0 ? fmt::format("{} in front of its begin", -damage->first_offset)
                                                       : fmt::format("at offset {}", damage->first_offset),
                              ledger.describe(freed.block)));
  }

  void put_in_quarantine(const GuardedRange& range) XPU_EXCLUDES(mutex_) {
    std::vector<GuardedRange> released;
    {
      const base::MutexLock lock(mutex_);
      quarantine_.push_back(range);
      quarantine_bytes_ += range.reserved_bytes;
      while (quarantine_bytes_ > options_.quarantine_bytes) {
        quarantine_bytes_ -= quarantine_.front().reserved_bytes;
        released.push_back(quarantine_.front());
        quarantine_.pop_front();
      }
    }
    for (const GuardedRange& old : released) unreserve_guarded(memory_, old);
  }

  hal::MemoryProvider& memory_;
  const GuardOptions options_;
  EpochClock clock_;
  base::Mutex mutex_;
  std::unordered_map<std::uint64_t, Live> live_ XPU_GUARDED_BY(mutex_);
  std::deque<Freed> freed_ XPU_GUARDED_BY(mutex_);
  std::deque<GuardedRange> quarantine_ XPU_GUARDED_BY(mutex_);
  std::size_t quarantine_bytes_ XPU_GUARDED_BY(mutex_) = 0;
};

GuardedAllocator::GuardedAllocator(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
GuardedAllocator::~GuardedAllocator() = default;

Result<std::unique_ptr<GuardedAllocator>> GuardedAllocator::create(hal::MemoryProvider& memory, hal::QueueProgress& progress,
                                                                   const GuardOptions& options) {
  if (options.checks.max_freed_blocks == 0) return Error{ErrorCode::invalid_argument, "max_freed_blocks must be at least 1, but is 0"};
  if (const Result<> probed = probe_mapping(memory); !probed) {
    return Error{ErrorCode::unsupported, "guards are not possible here: " + probed.error().message};
  }
  if (!std::has_single_bit(options.alignment_bytes) || options.alignment_bytes > memory.granularity()) {
    return Error{ErrorCode::invalid_argument, fmt::format("alignment_bytes must be a power of two of at most {}, but is {}",
                                                          memory.granularity(), options.alignment_bytes)};
  }
  return std::unique_ptr<GuardedAllocator>(new GuardedAllocator(std::make_unique<State>(memory, progress, options)));
}

Result<void*> GuardedAllocator::allocate(std::size_t bytes, const StreamRef& stream) { return state_->allocate(bytes, stream); }
Result<> GuardedAllocator::free(void* address) { return state_->free(address); }
bool GuardedAllocator::record_use(void* address, const StreamRef& stream) { return state_->record_use(address, stream); }
void GuardedAllocator::empty_cache() { state_->wait_for_freed(); }
DeviceStatistics GuardedAllocator::statistics() const { return state_->statistics.value(); }
void GuardedAllocator::reset_peak_statistics() { state_->statistics.reset_peaks(); }
void GuardedAllocator::reset_accumulated_statistics() { state_->statistics.reset_accumulated(); }

LiveBlockReport GuardedAllocator::report_live_blocks(std::size_t max_rows) const {
  return summarise_live_blocks(state_->ledger.live(), now_ns(), max_rows, [&](StackId stack) { return state_->ledger.frames(stack); });
}

}  // namespace xpu::memory
