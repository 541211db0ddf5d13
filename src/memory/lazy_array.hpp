#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

namespace xpu::memory {

/// An array of zeros whose pages exist once they are touched, so that it can be as long as it may ever have to be. Its type must be one for
/// which zero bytes are a valid object.
template <typename T>
class LazyArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  LazyArray() = default;
  ~LazyArray() { release(); }
  LazyArray(const LazyArray&) = delete;
  LazyArray& operator=(const LazyArray&) = delete;

  /// Once. False when the address space is refused.
  [[nodiscard]] bool reserve(std::size_t length) noexcept {
    void* const memory = mmap(nullptr, length * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    items_ = static_cast<T*>(memory);
    length_ = length;
    return true;
  }
  void release() noexcept {
    if (items_ != nullptr) munmap(items_, length_ * sizeof(T));
    items_ = nullptr;
    length_ = 0;
  }

  T& operator[](std::size_t index) const noexcept { return items_[index]; }
  std::size_t length() const noexcept { return length_; }

 private:
  T* items_ = nullptr;
  std::size_t length_ = 0;
};

}  // namespace xpu::memory
