#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/block_table.hpp"
#include "memory/lazy_array.hpp"
#include "xpu/base/result.hpp"

namespace xpu::memory {

class Arena;

/// From the address at which a block begins to the block. Two loads, no lock, no hash. Address space is divided into slices of 1 GiB; each
/// that is in use has a table with an entry for each step of 2^shift bytes: no two live blocks of it begin within one step. A slice that
/// lies in the range of one arena names it, so that its lock is known before the block is.
class AddressMap {
 public:
  static constexpr unsigned kSliceShift = 30;
  static constexpr std::size_t kSliceBytes = std::size_t{1} << kSliceShift;
  static constexpr unsigned kAddressBits = 47;

  AddressMap() = default;
  ~AddressMap();
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;

  Result<> initialize();
  /// Addresses in [begin, begin + bytes) can be set. A slice that has a table keeps its shift and arena, so only ranges that have both in
  /// common may share one. `arena` null: of several. Any thread.
  Result<> add(std::uint64_t begin, std::size_t bytes, unsigned shift, Arena* arena);

  void set(std::uint64_t address, BlockIndex index) const noexcept {
    const Slice& slice = slices_[address >> kSliceShift];
    slice.table.load(std::memory_order_relaxed)[(address & (kSliceBytes - 1)) >> slice.shift].store(index, std::memory_order_relaxed);
  }
  struct Found {
    BlockIndex block = 0;
    Arena* arena = nullptr;  ///< Null: the block knows.
  };
  /// The block that begins there, or any other one: the caller compares addresses. 0 where nothing was ever set.
  Found find(std::uint64_t address) const noexcept {
    if (address >> kAddressBits != 0) return {};
    const Slice& slice = slices_[address >> kSliceShift];
    const std::atomic<BlockIndex>* const table = slice.table.load(std::memory_order_acquire);
    if (table == nullptr) return {};
    return {table[(address & (kSliceBytes - 1)) >> slice.shift].load(std::memory_order_relaxed), slice.arena};
  }

 private:
  struct alignas(32) Slice {
    std::atomic<std::atomic<BlockIndex>*> table;
    Arena* arena;
    unsigned shift;
  };
  LazyArray<Slice> slices_;
};

}  // namespace xpu::memory
