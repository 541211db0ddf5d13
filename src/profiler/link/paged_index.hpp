#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace xpu::profiler {

/// Values found by a number that counts up from about 0: a look-up is two loads. Values never move. One owner at a time.
///
/// Why not a vector: it doubles by copying, which costs half as much memory again at the worst moment, and a damaged file may hold any
/// number. Here a page is made when one of its numbers is first used, and the directory grows only in proportion to the pages that exist;
/// pages far away from the others go to a map, so a number out of nowhere costs one page and nothing else.
template <typename Value, std::size_t kPageValues>
class PagedIndex {
 public:
  /// Null when nothing near `number` was ever made.
  Value* find(std::uint64_t number) noexcept {
    Page* page = find_page(number / kPageValues);
    return page == nullptr ? nullptr : &(*page)[number % kPageValues];
  }
  const Value* find(std::uint64_t number) const noexcept { return const_cast<PagedIndex*>(this)->find(number); }

  /// The value of `number`, made (with its whole page) by default construction when it is not there.
  Value& operator[](std::uint64_t number) {
    const std::uint64_t page = number / kPageValues;
    Page* existing = find_page(page);
    if (existing == nullptr) existing = make_page(page);
    return (*existing)[number % kPageValues];
  }

  /// Calls `visit(number, Value&)` for each value of each page that exists, in the order of the numbers.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::size_t page = 0; page < near_.size(); ++page) {
      if (near_[page]) visit_page(page, *near_[page], visit);
    }
    for (auto& [page, values] : far_) visit_page(page, *values, visit);
  }

  std::size_t pages() const noexcept { return pages_; }

 private:
  using Page = std::array<Value, kPageValues>;

  Page* find_page(std::uint64_t page) noexcept {
    if (page < near_.size()) return near_[page].get();
    if (far_.empty()) return nullptr;
    const auto found = far_.find(page);
    return found == far_.end() ? nullptr : found->second.get();
  }

  Page* make_page(std::uint64_t page) {
    std::unique_ptr<Page> made(new Page());
    Page* result = made.get();
    ++pages_;
    if (page <= 2 * std::uint64_t{pages_} + 64) {
      if (near_.size() <= page) {
        near_.resize(page + 1);
        // The directory now covers pages that were far away: each page lives in one place.
        while (!far_.empty() && far_.begin()->first < near_.size()) {
          near_[far_.begin()->first] = std::move(far_.begin()->second);
          far_.erase(far_.begin());
        }
      }
      near_[page] = std::move(made);
    } else {
      far_.emplace(page, std::move(made));
    }
    return result;
  }

  template <typename Visit>
  static void visit_page(std::uint64_t page, Page& values, Visit& visit) {
    for (std::size_t i = 0; i < kPageValues; ++i) visit(page * kPageValues + i, values[i]);
  }

  std::vector<std::unique_ptr<Page>> near_;
  std::map<std::uint64_t, std::unique_ptr<Page>> far_;
  std::size_t pages_ = 0;
};

}  // namespace xpu::profiler
