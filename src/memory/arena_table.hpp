#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/mutex.hpp"
#include "memory/arena.hpp"

namespace xpu::memory {

/// All arenas of a device, by number and by key. They are only ever added, so that finding one takes no lock.
class ArenaTable {
 public:
  static constexpr std::size_t kMostArenas = 4096;

  /// Null when it is not there.
  Arena* find(const ArenaKey& key) const noexcept {
    for (std::size_t place = place_of(key);; place = (place + 1) % kPlaces) {
      Arena* const arena = places_[place].load(std::memory_order_acquire);
      if (arena == nullptr || arena->key() == key) return arena;
    }
  }
  /// Null when there are too many.
  Arena* find_or_add(const Arena::Shared& shared, const ArenaKey& key, const Arena::Kind& kind) XPU_EXCLUDES(mutex_);

  Arena& at(std::uint16_t index) const noexcept { return *arenas_[index].load(std::memory_order_acquire); }
  std::size_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    const std::size_t arenas = count();
    for (std::size_t index = 0; index < arenas; ++index) visit(at(static_cast<std::uint16_t>(index)));
  }

 private:
  static constexpr std::size_t kPlaces = 2 * kMostArenas;  // at most half full
  static std::size_t place_of(const ArenaKey& key) noexcept {
    const std::uint64_t mixed = (static_cast<std::uint64_t>(key.stream) ^ std::uint64_t{key.pool} << 32) * 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>(mixed >> 51) % kPlaces;
  }

  base::Mutex mutex_;
  std::atomic<std::size_t> count_{0};
  std::array<std::atomic<Arena*>, kPlaces> places_{};
  std::array<std::atomic<Arena*>, kMostArenas> arenas_{};
  std::array<std::unique_ptr<Arena>, kMostArenas> owned_ XPU_GUARDED_BY(mutex_);
};

/// Holds the locks of all arenas that there are, so that what is seen is one moment. Whoever has one takes no lock of another arena.
class AllArenasLock {
 public:
  explicit AllArenasLock(const ArenaTable& arenas) noexcept XPU_NO_THREAD_SAFETY_ANALYSIS : arenas_(arenas), count_(arenas.count()) {
    for (std::size_t index = 0; index < count_; ++index) arenas_.at(static_cast<std::uint16_t>(index)).lock.lock();
  }
  ~AllArenasLock() XPU_NO_THREAD_SAFETY_ANALYSIS {
    for (std::size_t index = count_; index-- > 0;) arenas_.at(static_cast<std::uint16_t>(index)).lock.unlock();
  }
  AllArenasLock(const AllArenasLock&) = delete;
  AllArenasLock& operator=(const AllArenasLock&) = delete;
  /// The arenas below this number.
  std::size_t count() const noexcept { return count_; }

 private:
  const ArenaTable& arenas_;
  const std::size_t count_;
};

}  // namespace xpu::memory
