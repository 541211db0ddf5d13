#include "drivers/host/worker_pool.hpp"

#include <signal.h>

#include <algorithm>
#include <string>
#include <utility>

#include "drivers/host/futex.hpp"
#include "drivers/host/queue_state.hpp"

namespace xpu::drivers::host {

WorkerPool::WorkerPool(std::uint32_t runners, std::uint32_t processors)
    : most_runners_(runners), most_helpers_(std::min(runners, processors) - 1), most_spinning_(processors - 1) {}

WorkerPool::~WorkerPool() { stop(); }

Result<> WorkerPool::start_first() noexcept {
  const base::MutexLock lock(mutex_);
  if (threads_.empty() && !start_worker()) return Error{ErrorCode::out_of_host_memory, "the system refuses a thread for the driver host"};
  return {};
}

bool WorkerPool::start_worker() noexcept {
  struct Start {
    std::shared_ptr<WorkerPool> pool;
    std::string name;
  };
  auto start = std::make_unique<Start>(Start{shared_from_this(), "xpu-host-" + std::to_string(threads_.size())});
  const auto run = [](void* user) -> void* {
    const std::unique_ptr<Start> started(static_cast<Start*>(user));
    pthread_setname_np(pthread_self(), started->name.c_str());
    started->pool->work();
    return nullptr;
  };
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, run, start.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return false;
  start.release();
  threads_.push_back(thread);
  has_started_.store(true, std::memory_order_release);
  return true;
}

void WorkerPool::stop() noexcept {
  std::vector<pthread_t> threads;
  {
    const base::MutexLock lock(mutex_);
    is_stopping_ = true;
    news_.fetch_add(1, std::memory_order_release);
    threads.swap(threads_);
  }
  futex_wake(news_);
  for (const pthread_t thread : threads) {
    // A worker can be the one that lets go of the driver last. The pool lives as long as any of its threads.
    if (pthread_equal(thread, pthread_self()) != 0) {
      pthread_detach(thread);
    } else {
      pthread_join(thread, nullptr);
    }
  }
}

void WorkerPool::work() noexcept {
  bool may_spin = true;
  mutex_.lock();
  while (true) {
    if (QueueState* queue = take_ready(); queue != nullptr) {
      ++runners_;
      mutex_.unlock();
      queue->run_batch();
      mutex_.lock();
      --runners_;
      may_spin = true;
    } else if (Loop* loop = join_loop(); loop != nullptr) {
      mutex_.unlock();
      loop->take_chunks();
      mutex_.lock();
      leave_loop(*loop);
      may_spin = true;
    } else if (is_stopping_) {
      break;
    } else {
      wait_for_work(may_spin);
      may_spin = !may_spin;
    }
  }
  mutex_.unlock();
}

/// Returns after an announcement, or after a while of spinning.
void WorkerPool::wait_for_work(bool may_spin) noexcept {
  const std::uint32_t seen = news_.load(std::memory_order_relaxed);
  const auto has_news = [this, seen] { return news_.load(std::memory_order_acquire) != seen; };
  if (may_spin && spinning_ < most_spinning_) {
    ++spinning_;
    mutex_.unlock();
    spin_until(has_news, kSpinNs);
    mutex_.lock();
    --spinning_;
    return;
  }
  ++sleeping_;
  mutex_.unlock();
  futex_wait(news_, seen);
  mutex_.lock();
  --sleeping_;
}

void WorkerPool::add_ready(QueueState& queue) noexcept {
  ReadyList& list = ready_[queue.level()];
  queue.next = nullptr;
  (list.first == nullptr ? list.first : list.last->next) = &queue;
  list.last = &queue;
  ++ready_count_;
  waiting_levels_.store(waiting_levels_.load(std::memory_order_relaxed) | 1u << queue.level(), std::memory_order_relaxed);
}

QueueState* WorkerPool::take_ready() noexcept {
  if (ready_count_ == 0 || runners_ >= most_runners_) return nullptr;
  for (std::uint32_t level = 0; level < kLevels; ++level) {
    ReadyList& list = ready_[level];
    if (list.first == nullptr) continue;
    QueueState* queue = std::exchange(list.first, list.first->next);
    --ready_count_;
    if (list.first == nullptr) {
      waiting_levels_.store(waiting_levels_.load(std::memory_order_relaxed) & ~(1u << level), std::memory_order_relaxed);
    }
    return queue;
  }
  return nullptr;
}

std::uint32_t WorkerPool::announce() noexcept {
  news_.fetch_add(1, std::memory_order_release);
  const std::uint64_t for_runners = std::min(ready_count_, most_runners_ - runners_);
  const std::uint64_t wanted = for_runners + std::min<std::uint64_t>(open_places_, most_helpers_ - helpers_);
  const std::uint64_t idle = spinning_ + sleeping_;
  const std::size_t most_threads = std::size_t{most_runners_} + most_helpers_;
  for (std::uint64_t missing = wanted > idle ? wanted - idle : 0; missing != 0 && threads_.size() < most_threads; --missing) {
    if (!start_worker()) break;  // those that there are do it later
  }
  return wanted > spinning_ ? static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted - spinning_, sleeping_)) : 0;
}

void WorkerPool::schedule(QueueState& queue) noexcept {
  std::uint32_t to_wake = 0;
  {
    const base::MutexLock lock(mutex_);
    add_ready(queue);
    to_wake = announce();
  }
  if (to_wake != 0) futex_wake(news_, to_wake);
}

void WorkerPool::put_back(QueueState& queue) noexcept {
  const base::MutexLock lock(mutex_);
  add_ready(queue);
}

void WorkerPool::Loop::take_chunks() noexcept {
  while (!is_exhausted()) {
    const std::uint64_t first = next.fetch_add(chunk, std::memory_order_relaxed);
    if (first >= count) return;
    call(body, first, std::min(first + chunk, count));
  }
}

void WorkerPool::run_loop(Loop& loop) noexcept {
  std::uint32_t to_wake = 0;
  {
    const base::MutexLock lock(mutex_);
    loop.wanted_helpers = std::min<std::uint64_t>((loop.count - 1) / loop.chunk, most_helpers_);
    loop.newer = loops_;
    loops_ = &loop;
    loop.is_listed = true;
    open_places_ += loop.wanted_helpers;
    to_wake = announce();
  }
  if (to_wake != 0) futex_wake(news_, to_wake);
  loop.take_chunks();
  {
    const base::MutexLock lock(mutex_);
    unlist(loop);
  }
  // Nobody can join any more, and the last thing that a helper does with the loop is to count itself out.
  const auto is_alone = [&loop] { return loop.helpers.load(std::memory_order_seq_cst) == 0; };
  if (spin_until(is_alone, most_spinning_ == 0 ? 0 : kSpinNs)) return;
  watchers_.fetch_add(1, std::memory_order_seq_cst);
  while (true) {
    const std::uint32_t seen = departures_.load(std::memory_order_seq_cst);
    if (is_alone()) break;
    futex_wait(departures_, seen);
  }
  watchers_.fetch_sub(1, std::memory_order_relaxed);
}

WorkerPool::Loop* WorkerPool::join_loop() noexcept {
  if (helpers_ >= most_helpers_) return nullptr;
  Loop* neediest = nullptr;
  for (Loop* loop = loops_; loop != nullptr; loop = loop->newer) {
    const std::uint32_t helpers = loop->helpers.load(std::memory_order_relaxed);
    if (helpers >= loop->wanted_helpers || loop->is_exhausted()) continue;
    if (neediest == nullptr || helpers < neediest->helpers.load(std::memory_order_relaxed)) neediest = loop;
  }
  if (neediest == nullptr) return nullptr;
  ++helpers_;
  neediest->helpers.fetch_add(1, std::memory_order_relaxed);
  --open_places_;
  return neediest;
}

void WorkerPool::leave_loop(Loop& loop) noexcept {
  --helpers_;
  unlist(loop);
  if (loop.helpers.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
  // Not `loop` from here on: its runner may have seen the zero and returned.
  departures_.fetch_add(1, std::memory_order_seq_cst);
  if (watchers_.load(std::memory_order_seq_cst) != 0) futex_wake(departures_);
}

/// A loop without chunks left takes no helpers.
void WorkerPool::unlist(Loop& loop) noexcept {
  if (!std::exchange(loop.is_listed, false)) return;
  open_places_ -= loop.wanted_helpers - loop.helpers.load(std::memory_order_relaxed);
  Loop** link = &loops_;
  while (*link != &loop) link = &(*link)->newer;
  *link = loop.newer;
}

}  // namespace xpu::drivers::host
