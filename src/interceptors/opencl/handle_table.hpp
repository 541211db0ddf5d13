#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace xpu::interceptors::opencl {

/// Scatters handles, which are addresses of equal objects and so differ in few bits.
inline std::size_t hash_of(const void* handle) noexcept {
  return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(handle) * 0x9e3779b97f4a7c15u) >> 32);
}

/// Handles of a driver to objects of ours. Never throws: without memory `insert` refuses, and the handle stays unknown. The caller locks.
///
/// A trivially destroyed, constant-initialised type, because the tables outlive every destructor of the process.
template <typename Object>
class HandleTable {
 public:
  constexpr HandleTable() noexcept = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  Object* find(const void* handle) const noexcept {
    if (handle == nullptr || slots_ == nullptr) return nullptr;
    for (std::size_t index = hash_of(handle) & mask_;; index = (index + 1) & mask_) {
      if (slots_[index].handle == handle) return slots_[index].object;
      if (slots_[index].handle == nullptr) return nullptr;
    }
  }

  /// Adds, or replaces what the handle meant before (`previous`, may be null). False without memory.
  bool insert(const void* handle, Object* object, Object** previous) noexcept {
    *previous = nullptr;
    if (handle == nullptr || !make_room()) return false;
    std::size_t index = hash_of(handle) & mask_;
    while (slots_[index].handle != nullptr && slots_[index].handle != handle) index = (index + 1) & mask_;
    if (slots_[index].handle == handle) {
      *previous = slots_[index].object;
    } else {
      ++size_;
    }
    slots_[index] = {handle, object};
    return true;
  }

  void erase(const void* handle) noexcept {
    if (find(handle) == nullptr) return;
    std::size_t hole = hash_of(handle) & mask_;
    while (slots_[hole].handle != handle) hole = (hole + 1) & mask_;
    // Entries behind the hole move up if their own place allows it, so that no search ends too early.
    for (std::size_t next = (hole + 1) & mask_; slots_[next].handle != nullptr; next = (next + 1) & mask_) {
      const std::size_t home = hash_of(slots_[next].handle) & mask_;
      if (((next - home) & mask_) >= ((next - hole) & mask_)) {
        slots_[hole] = slots_[next];
        hole = next;
      }
    }
    slots_[hole] = {};
    --size_;
  }

  std::size_t size() const noexcept { return size_; }

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t index = 0; slots_ != nullptr && index <= mask_; ++index) {
      if (slots_[index].handle != nullptr) visit(*slots_[index].object);
    }
  }

 private:
  struct Slot {
    const void* handle;
    Object* object;
  };

  bool make_room() noexcept {
    if (slots_ != nullptr && size_ * 4 < (mask_ + 1) * 3) return true;
    const std::size_t wider = slots_ == nullptr ? 64 : (mask_ + 1) * 2;
    auto* slots = static_cast<Slot*>(std::calloc(wider, sizeof(Slot)));
    if (slots == nullptr) return slots_ != nullptr && size_ < mask_;  // one free slot must remain, it ends searches
    for (std::size_t index = 0; slots_ != nullptr && index <= mask_; ++index) {
      if (slots_[index].handle == nullptr) continue;
      std::size_t place = hash_of(slots_[index].handle) & (wider - 1);
      while (slots[place].handle != nullptr) place = (place + 1) & (wider - 1);
      slots[place] = slots_[index];
    }
    std::free(slots_);
    slots_ = slots;
    mask_ = wider - 1;
    return true;
  }

  Slot* slots_ = nullptr;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace xpu::interceptors::opencl
