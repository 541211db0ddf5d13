#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace xpu::profiler {

/// How many of the operations that were submitted have not ended, out of records that come a little at a time and for ever. Ends of
/// operations that somebody else submitted (while this session was paused) come along and count for nothing.
///
/// An end may be read before its submission, but not by more than one batch: it was written later. One owner at a time.
class UnfinishedOperations {
 public:
  /// Before the records of the next batch.
  void begin_batch() { early_ends_before_ = std::exchange(early_ends_, {}); }
  void add(std::uint64_t operation) {
    if (erase(early_ends_, operation) || erase(early_ends_before_, operation)) return;
    if (insert(open_, operation)) ++open_count_;
  }
  void remove(std::uint64_t operation) {
    if (erase(open_, operation)) {
      --open_count_;
    } else {
      insert(early_ends_, operation);
    }
  }
  /// So many ends were dropped, and nobody says of what.
  void remove_unknown(std::uint64_t count) { lost_ends_ += count; }
  void clear() { *this = {}; }

  std::uint64_t count() const noexcept { return open_count_ > lost_ends_ ? open_count_ - lost_ends_ : 0; }
  /// For whoever wonders about memory.
  std::size_t pages() const noexcept { return open_.size() + early_ends_.size() + early_ends_before_.size(); }

 private:
  /// A bit for each of 64 operations, which have numbers one after the other.
  using Bits = std::unordered_map<std::uint64_t, std::uint64_t>;
  static bool insert(Bits& bits, std::uint64_t operation) {
    std::uint64_t& page = bits[operation / 64];
    const std::uint64_t bit = std::uint64_t{1} << operation % 64;
    const bool is_new = (page & bit) == 0;
    page |= bit;
    return is_new;
  }
  static bool erase(Bits& bits, std::uint64_t operation) {
    if (bits.empty()) return false;
    const auto page = bits.find(operation / 64);
    const std::uint64_t bit = std::uint64_t{1} << operation % 64;
    if (page == bits.end() || (page->second & bit) == 0) return false;
    page->second &= ~bit;
    if (page->second == 0) bits.erase(page);
    return true;
  }

  Bits open_, early_ends_, early_ends_before_;
  std::uint64_t open_count_ = 0, lost_ends_ = 0;
};

}  // namespace xpu::profiler
