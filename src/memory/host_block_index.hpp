#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace xpu::memory {

struct HostBlock;

/// From the address at which a block begins to its record: a hash table with open addressing, because looking through trees was a third of
/// what a free cost. Plain data, as the table of blocks.
class HostBlockIndex {
 public:
  HostBlock* find(const std::byte* address) const noexcept {
    for (std::size_t place = home_of(address);; place = (place + 1) & mask_) {
      const Entry& entry = entries_[place];
      if (entry.address == address) return entry.block;
      if (entry.address == nullptr) return nullptr;
    }
  }
  /// Requires an address that is not there, and is not null.
  void insert(const std::byte* address, HostBlock* block) {
    if (2 * ++count_ > entries_.size()) grow();
    place({address, block});
  }
  /// Requires an address that is there.
  void erase(const std::byte* address) noexcept {
    std::size_t hole = home_of(address);
    while (entries_[hole].address != address) hole = (hole + 1) & mask_;
    // What comes behind it moves up, unless it would then stand in front of where it is looked for first.
    for (std::size_t place = (hole + 1) & mask_; entries_[place].address != nullptr; place = (place + 1) & mask_) {
      if (((place - home_of(entries_[place].address)) & mask_) < ((place - hole) & mask_)) continue;
      entries_[hole] = entries_[place];
      hole = place;
    }
    entries_[hole] = {};
    --count_;
  }
  void clear() noexcept {
    for (Entry& entry : entries_) entry = {};
    count_ = 0;
  }

 private:
  struct Entry {
    const std::byte* address = nullptr;  // null: nothing is here
    HostBlock* block = nullptr;
  };

  /// The highest bits of the product depend on all bits of the address.
  std::size_t home_of(const std::byte* address) const noexcept {
    return static_cast<std::size_t>(std::uint64_t{reinterpret_cast<std::uintptr_t>(address)} * 0x9e37'79b9'7f4a'7c15 >> shift_);
  }
  void place(const Entry& entry) noexcept {
    std::size_t place = home_of(entry.address);
    while (entries_[place].address != nullptr) place = (place + 1) & mask_;
    entries_[place] = entry;
  }
  void grow() {
    const std::vector<Entry> before = std::exchange(entries_, std::vector<Entry>(2 * entries_.size()));
    mask_ = entries_.size() - 1;
    --shift_;
    for (const Entry& entry : before) {
      if (entry.address != nullptr) place(entry);
    }
  }

  std::vector<Entry> entries_{64};  // 2^(64 - shift_), at most half of them in use
  std::size_t mask_ = 63, count_ = 0;
  unsigned shift_ = 58;
};

}  // namespace xpu::memory
