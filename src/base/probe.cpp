#include "base/probe.hpp"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>

#include "base/mutex.hpp"

namespace xpu::probe {

namespace internal {

constinit std::atomic<const Subscriber*> g_subscriber{nullptr};
constinit thread_local std::uint32_t t_scope_depth __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace internal

namespace {

// ---- publishers and objects

constexpr std::size_t kMaxPublishers = 16;

constinit base::Mutex g_publishers_mutex;
using Functions = std::atomic<void (*)()>[kMaxPublishers];
constinit Functions g_publishers = {};
constinit Functions g_harvesters = {};
constinit std::atomic<std::uint32_t> g_announced_publishers{0};
constinit std::atomic<std::uint32_t> g_object_ids[static_cast<std::size_t>(ObjectKind::count)] = {};

// ---- texts

/// Texts by id, in blocks that never move, so that readers take no lock: block k holds 64 << k of them.
class TextTable {
 public:
  /// Empty for an id that was not given out.
  std::string_view at(Id id) const noexcept {
    if (id == 0 || id > count_.load(std::memory_order_acquire)) return {};
    const Place place = place_of(id);
    return blocks_[place.block].load(std::memory_order_relaxed)[place.index];
  }
  Id count() const noexcept { return count_.load(std::memory_order_acquire); }

  /// One caller at a time. 0 when there is no memory.
  Id append(std::string_view text) noexcept {
    const Id id = count_.load(std::memory_order_relaxed) + 1;
    const Place place = place_of(id);
    if (place.block >= kBlocks) return 0;
    std::string_view* block = blocks_[place.block].load(std::memory_order_relaxed);
    if (block == nullptr) {
      block = new (std::nothrow) std::string_view[kFirstBlock << place.block];
      if (block == nullptr) return 0;
      blocks_[place.block].store(block, std::memory_order_relaxed);
    }
    block[place.index] = text;
    count_.store(id, std::memory_order_release);
    return id;
  }

 private:
  static constexpr std::size_t kFirstBlock = 64;
  static constexpr std::size_t kBlocks = 24;  // a thousand million texts
  struct Place {
    std::size_t block, index;
  };
  static Place place_of(Id id) noexcept {
    const std::size_t position = std::size_t{id} - 1 + kFirstBlock;
    const std::size_t block = static_cast<std::size_t>(std::bit_width(position / kFirstBlock)) - 1;
    return {block, position - (kFirstBlock << block)};
  }

  std::atomic<Id> count_{0};
  std::atomic<std::string_view*> blocks_[kBlocks] = {};
};

using TextIds = std::unordered_map<std::string_view, Id>;

constinit TextTable g_texts;
constinit base::Mutex g_texts_mutex;
constinit TextIds* g_text_ids XPU_GUARDED_BY(g_texts_mutex) = nullptr;  // never freed: texts are asked for by static destructors

// A fork while another thread holds the lock would leave it locked in the child for ever.
void lock_before_fork() XPU_NO_THREAD_SAFETY_ANALYSIS {
  g_publishers_mutex.lock();
  g_texts_mutex.lock();
}
void unlock_after_fork() XPU_NO_THREAD_SAFETY_ANALYSIS {
  g_texts_mutex.unlock();
  g_publishers_mutex.unlock();
}

Id find_or_add(std::string_view text, bool* added) XPU_REQUIRES(g_texts_mutex) {
  if (g_text_ids == nullptr) {
    g_text_ids = new TextIds;
    pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
  }
  if (const auto known = g_text_ids->find(text); known != g_text_ids->end()) return known->second;

  char* bytes = new char[text.size() + 1];
  std::copy(text.begin(), text.end(), bytes);
  bytes[text.size()] = '\0';
  const std::string_view kept(bytes, text.size());
  const auto entry = g_text_ids->emplace(kept, 0).first;
  const Id id = g_texts.append(kept);
  if (id == 0) {
    g_text_ids->erase(entry);
    delete[] bytes;
    return 0;
  }
  entry->second = id;
  *added = true;
  return id;
}

bool add_function(Functions& functions, void (*function)()) noexcept {
  if (function == nullptr) return false;
  const base::MutexLock lock(g_publishers_mutex);
  for (std::atomic<void (*)()>& slot : functions) {
    void (*const present)() = slot.load(std::memory_order_relaxed);
    if (present == function) return true;
    if (present == nullptr) {
      slot.store(function, std::memory_order_release);
      return true;
    }
  }
  return false;
}

void call_all(const Functions& functions) noexcept {
  for (const std::atomic<void (*)()>& slot : functions) {
    void (*const function)() = slot.load(std::memory_order_acquire);
    if (function == nullptr) return;
    function();
  }
}

void announce_text(Id id, std::string_view text, void* table) { static_cast<const Subscriber*>(table)->string(id, text); }

}  // namespace

bool subscribe(const Subscriber* table) noexcept {
  if (table == nullptr || table->abi != kAbi) return false;
  const Subscriber* nobody = nullptr;
  if (!internal::g_subscriber.compare_exchange_strong(nobody, table, std::memory_order_acq_rel)) return false;
  {
    // Whoever adds a text either did so before this, and the loop below sees it, or will see the new table.
    const base::MutexLock lock(g_texts_mutex);
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the visitor only reads it
  if (table->string != nullptr) for_each_text(announce_text, const_cast<Subscriber*>(table));
  republish_all();
  return true;
}

void unsubscribe() noexcept { internal::g_subscriber.store(nullptr, std::memory_order_release); }

bool replace_table(const Subscriber* from, const Subscriber* to) noexcept {
  return internal::g_subscriber.compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

bool register_publisher(void (*republish)()) noexcept { return add_function(g_publishers, republish); }
void republish_all() noexcept { call_all(g_publishers); }

bool register_harvester(void (*harvest)()) noexcept { return add_function(g_harvesters, harvest); }
void harvest_all() noexcept { call_all(g_harvesters); }

void announce_publisher(PublisherKind kind) noexcept { g_announced_publishers.fetch_or(kind, std::memory_order_relaxed); }
std::uint32_t announced_publishers() noexcept { return g_announced_publishers.load(std::memory_order_relaxed); }

Id new_object_id(ObjectKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  if (index >= std::size(g_object_ids)) return 0;
  return g_object_ids[index].fetch_add(1, std::memory_order_relaxed) + 1;
}

Id intern(std::string_view text) noexcept {
  Id id = 0;
  bool added = false;
  try {
    const base::MutexLock lock(g_texts_mutex);
    id = find_or_add(text, &added);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  if (added) {
    if (const Subscriber* listener = subscriber(); listener != nullptr && listener->string != nullptr) listener->string(id, text_of(id));
  }
  return id;
}

std::string_view text_of(Id id) noexcept { return g_texts.at(id); }

void for_each_text(void (*visit)(Id, std::string_view, void* user), void* user) noexcept {
  const Id count = g_texts.count();
  for (Id id = 1; id <= count; ++id) visit(id, g_texts.at(id), user);
}

}  // namespace xpu::probe
