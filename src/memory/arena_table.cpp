#include "memory/arena_table.hpp"

namespace xpu::memory {

Arena* ArenaTable::find_or_add(const Arena::Shared& shared, const ArenaKey& key, const Arena::Kind& kind) {
  if (Arena* const known = find(key)) return known;
  const base::MutexLock lock(mutex_);
  if (Arena* const known = find(key)) return known;
  const std::size_t index = count();
  if (index == kMostArenas) return nullptr;
  owned_[index] = std::make_unique<Arena>(shared, static_cast<std::uint16_t>(index), key, kind);
  Arena* const added = owned_[index].get();
  arenas_[index].store(added, std::memory_order_release);
  count_.store(index + 1, std::memory_order_release);
  std::size_t place = place_of(key);
  while (places_[place].load(std::memory_order_relaxed) != nullptr) place = (place + 1) % kPlaces;
  places_[place].store(added, std::memory_order_release);
  return added;
}

}  // namespace xpu::memory
