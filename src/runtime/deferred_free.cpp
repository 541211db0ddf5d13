#include "runtime/deferred_free.hpp"

#include <algorithm>
#include <utility>

#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

namespace xpu::runtime {
namespace {

/// True also when the device is lost: nothing runs there.
bool has_ended(hal::Queue& queue) {
  const probe::Scope scope;
  const Result<bool> ended = queue.query();
  return !ended || *ended;
}

}  // namespace

/// What a stream had to do when the block was let go of.
struct DeferredFree::Use {
  StreamState* stream;
  std::unique_ptr<hal::Event> event;  ///< Null: it counts as long as the stream is busy.

  bool is_over() const {
    if (event != nullptr) {
      const probe::Scope scope;
      const Result<bool> ended = event->query();
      return !ended || *ended;
    }
    const std::shared_ptr<hal::Queue> queue = hold_queue(*stream);
    return queue == nullptr || has_ended(*queue);
  }
  bool would_wait_for_itself() const {
    const std::shared_ptr<hal::Queue> queue = hold_queue(*stream);
    return queue != nullptr && queue->would_wait_for_itself() && !is_over();
  }
  void wait() const {
    // An asynchronous error is told by the stream's next synchronisation, and nothing runs on a device that is lost.
    if (event != nullptr) {
      const probe::Scope scope;
      static_cast<void>(event->synchronize_blocking());
    } else {
      wait_keeping_error(*stream);
    }
  }
};

struct DeferredFree::Held {
  Block block;
  std::vector<Use> uses;
};

void DeferredFree::free(const Block& block) {
  auto held = std::make_shared<Held>(Held{block, {}});
  hal::Device& opened = *device_.device.load(std::memory_order_acquire);
  for_each_stream(device_, [&](StreamState& stream) {
    const std::shared_ptr<hal::Queue> queue = hold_queue(stream);
    if (queue == nullptr || has_ended(*queue)) return;
    Use& use = held->uses.emplace_back(Use{&stream, nullptr});
    // Who submits right now may be in a function that lets go of memory, too, and want the lock of a stream that this thread holds.
    const TryToSubmit attempt(stream.lock);
    if (!attempt.may_submit() || stream.is_released.load(std::memory_order_acquire)) return;
    const probe::Scope scope;
    Result<std::unique_ptr<hal::Event>> event = opened.create_event({});
    if (event && queue->record(**event)) use.event = *std::move(event);
  });
  if (held->uses.empty()) return free_now(block);
  const base::MutexLock lock(mutex_);
  held_.push_back(std::move(held));
  count_.store(held_.size(), std::memory_order_relaxed);
}

void DeferredFree::poll_held() {
  for (const std::shared_ptr<Held>& each : held()) {
    if (std::all_of(each->uses.begin(), each->uses.end(), [](const Use& use) { return use.is_over(); })) release(*each);
  }
}

bool DeferredFree::wait_for_one() {
  for (const std::shared_ptr<Held>& each : held()) {
    if (std::any_of(each->uses.begin(), each->uses.end(), [](const Use& use) { return use.would_wait_for_itself(); })) continue;
    for (const Use& use : each->uses) use.wait();
    release(*each);
    return true;
  }
  return false;
}

std::vector<std::shared_ptr<DeferredFree::Held>> DeferredFree::held() const {
  const base::MutexLock lock(mutex_);
  return held_;
}

void DeferredFree::free_now(const Block& block) noexcept {
  // Told when nothing uses it any more, and before its address can be another block's.
  forget_memory(block.data);
  const std::uint64_t total = device_.allocated_bytes.fetch_sub(block.bytes, std::memory_order_relaxed) - block.bytes;
  publish_memory(device_, probe::MemoryAction::release, block.kind, block.data, block.bytes, total);
  {
    const probe::Scope scope;
    device_.device.load(std::memory_order_acquire)->memory(block.kind)->free(block.data);
  }
  freed_count_.fetch_add(1, std::memory_order_release);
}

/// Frees it unless another thread has: with the lock, so that a block which is not in the list is free.
void DeferredFree::release(const Held& held) {
  const base::MutexLock lock(mutex_);
  const auto found = std::find_if(held_.begin(), held_.end(), [&](const std::shared_ptr<Held>& each) { return each.get() == &held; });
  if (found == held_.end()) return;
  held_.erase(found);
  free_now(held.block);
  count_.store(held_.size(), std::memory_order_relaxed);
}

}  // namespace xpu::runtime
