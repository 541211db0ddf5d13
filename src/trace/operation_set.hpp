#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace xpu::trace {

/// Four bits for each of very many operations: half a byte each where ids are dense, as those of a writer are, and at most 512 bytes for
/// one that stands alone, as in a damaged file. One owner at a time.
class OperationSet {
 public:
  enum Bit : std::uint8_t { kSubmitted = 1, kCompleted = 2, kFailed = 4, kUntimed = 8 };

  /// Sets bits; returns those that were set before.
  std::uint8_t set(std::size_t process, std::uint64_t operation, std::uint8_t bits) {
    std::uint8_t& pair = page(process, operation)[(operation % kPageOperations) / 2];
    const unsigned shift = operation % 2 * 4;
    const std::uint8_t before = (pair >> shift) & 0xf;
    pair = static_cast<std::uint8_t>(pair | bits << shift);
    return before;
  }
  std::uint8_t get(std::size_t process, std::uint64_t operation) { return set(process, operation, 0); }

 private:
  static constexpr std::size_t kPageOperations = 1024;
  static constexpr std::size_t kCacheEntries = 64;
  using Page = std::array<std::uint8_t, kPageOperations / 2>;

  struct Key {
    std::size_t process;
    std::uint64_t page;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return (key.page * 0x9e3779b97f4a7c15u ^ key.process * 0xbf58476d1ce4e5b9u) >> 7;
    }
  };
  struct Cached {
    Key key{~std::size_t{0}, 0};
    Page* page = nullptr;
  };

  // Records come in runs of the same few pages: one per writer, for submissions and completions each.
  Page& page(std::size_t process, std::uint64_t operation) {
    const Key key{process, operation / kPageOperations};
    Cached& cached = cache_[Hash{}(key) % kCacheEntries];
    if (cached.key != key) {
      std::unique_ptr<Page>& slot = pages_[key];
      if (!slot) slot = std::make_unique<Page>(Page{});
      cached = {key, slot.get()};
    }
    return *cached.page;
  }

  std::unordered_map<Key, std::unique_ptr<Page>, Hash> pages_;
  std::array<Cached, kCacheEntries> cache_;
};

}  // namespace xpu::trace
