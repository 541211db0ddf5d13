#include "runtime/memory_snapshot.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/memory_snapshot.hpp"
#include "base/mutex.hpp"
#include "runtime/state.hpp"

namespace xpu::runtime {
namespace {

struct BorrowedHistory {
  memory::DeviceCachingAllocator* allocator;
  std::uint64_t number;
};

/// What is noted now. Lives for ever, as the allocators do.
class MemoryNotes {
 public:
  static MemoryNotes& instance() {
    static auto& notes = *new MemoryNotes;
    return notes;
  }

  Result<> begin(bool with_stacks) XPU_EXCLUDES(mutex_) {
    if (!is_running()) return Error{ErrorCode::unavailable, "there is no memory to be noted: the runtime has ended, or is the parent's"};
    memory::HistoryOptions options;
    if (with_stacks) {
      options.stack_use = memory::StackUse::all;
      options.stacks = memory::make_call_stack_recorder();
    }
    const base::MutexLock lock(mutex_);
    if (is_on_) return Error{ErrorCode::failed_precondition, "another profile notes what happens to memory"};
    is_on_ = true;
    options_ = std::move(options);
    for (memory::DeviceCachingAllocator* allocator : all_allocators()) borrow(*allocator);
    return {};
  }

  void add(memory::DeviceCachingAllocator& allocator) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    if (is_on_) borrow(allocator);
  }

  Result<> end(const std::string& path) XPU_EXCLUDES(mutex_) {
    {
      const base::MutexLock lock(mutex_);
      if (!is_on_ || is_ending_) return Error{ErrorCode::failed_precondition, "nobody notes what happens to memory"};
      is_ending_ = true;
    }
    // Without the lock, which whoever makes an allocator takes.
    const std::vector<memory::DeviceCachingAllocator*> allocators = all_allocators();
    const std::vector<const memory::DeviceCachingAllocator*> to_write(allocators.begin(), allocators.end());
    Result<> written = memory::DeviceCachingAllocator::write_snapshots(to_write, path);
    finish();
    return written;
  }

  void cancel() noexcept XPU_EXCLUDES(mutex_) {
    {
      const base::MutexLock lock(mutex_);
      if (!is_on_ || is_ending_) return;
      is_ending_ = true;
    }
    finish();
  }

 private:
  static std::vector<memory::DeviceCachingAllocator*> all_allocators() {
    std::vector<memory::DeviceCachingAllocator*> all;
    for (DeviceState* device : enumeration().devices) {
      for (const hal::MemoryKind kind : {hal::MemoryKind::device, hal::MemoryKind::shared}) {
        if (memory::DeviceCachingAllocator* allocator = device->memory.known_caching_allocator(kind)) all.push_back(allocator);
      }
    }
    return all;
  }

  void borrow(memory::DeviceCachingAllocator& allocator) XPU_REQUIRES(mutex_) {
    const bool is_known =
        std::any_of(borrowed_.begin(), borrowed_.end(), [&](const BorrowedHistory& history) { return history.allocator == &allocator; });
    if (is_known) return;
    const Result<std::uint64_t> number = allocator.borrow_history(options_);
    // The options are right, so it is closed: in a forked child, where nobody asks.
    if (number) borrowed_.push_back({&allocator, *number});
  }

  void finish() noexcept XPU_EXCLUDES(mutex_) {
    memory::HistoryOptions former;  // with the recorder of stacks, which goes without the lock
    const base::MutexLock lock(mutex_);
    for (const BorrowedHistory& history : borrowed_) history.allocator->return_history(history.number);
    borrowed_.clear();
    std::swap(former, options_);
    is_on_ = is_ending_ = false;
  }

  base::Mutex mutex_;  // before those of allocators
  bool is_on_ XPU_GUARDED_BY(mutex_) = false, is_ending_ XPU_GUARDED_BY(mutex_) = false;
  memory::HistoryOptions options_ XPU_GUARDED_BY(mutex_);
  std::vector<BorrowedHistory> borrowed_ XPU_GUARDED_BY(mutex_);
};

constexpr base::MemorySnapshotProvider kProvider = {
    .begin = [](bool with_stacks) { return MemoryNotes::instance().begin(with_stacks); },
    .end = [](const std::string& path) { return MemoryNotes::instance().end(path); },
    .cancel = []() noexcept { MemoryNotes::instance().cancel(); },
};

}  // namespace

void register_memory_snapshots() noexcept { base::register_memory_snapshots(&kProvider); }

void note_new_allocator(memory::DeviceCachingAllocator& allocator) noexcept { MemoryNotes::instance().add(allocator); }

}  // namespace xpu::runtime
