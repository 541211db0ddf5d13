#include "memory/address_map.hpp"

#include <fmt/format.h>

#include "base/mutex.hpp"

namespace xpu::memory {
namespace {

// Tables are added seldom: one lock for all maps.
constinit base::Mutex g_table_mutex;

std::size_t table_bytes(unsigned shift) { return (AddressMap::kSliceBytes >> shift) * sizeof(std::atomic<BlockIndex>); }

Error no_address_space() { return {ErrorCode::out_of_host_memory, "there is no address space for the tables of an allocator"}; }

}  // namespace

AddressMap::~AddressMap() {
  for (std::size_t index = 0; index < slices_.length(); ++index) {
    const Slice& slice = slices_[index];
    if (auto* table = slice.table.load(std::memory_order_relaxed)) munmap(table, table_bytes(slice.shift));
  }
}

Result<> AddressMap::initialize() {
  if (!slices_.reserve(std::size_t{1} << (kAddressBits - kSliceShift))) return no_address_space();
  return {};
}

Result<> AddressMap::add(std::uint64_t begin, std::size_t bytes, unsigned shift, Arena* arena) {
  if (begin >> kAddressBits != 0 || (begin + bytes - 1) >> kAddressBits != 0) {
    return Error{ErrorCode::unsupported, fmt::format("the device has memory at {:#x}, beyond {} bits of address", begin, kAddressBits)};
  }
  const base::MutexLock lock(g_table_mutex);
  for (std::uint64_t index = begin >> kSliceShift; index <= (begin + bytes - 1) >> kSliceShift; ++index) {
    Slice& slice = slices_[index];
    if (slice.table.load(std::memory_order_relaxed) != nullptr) continue;
    void* const table = mmap(nullptr, table_bytes(shift), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) return no_address_space();
    slice.shift = shift;
    slice.arena = arena;
    slice.table.store(static_cast<std::atomic<BlockIndex>*>(table), std::memory_order_release);
  }
  return {};
}

}  // namespace xpu::memory
