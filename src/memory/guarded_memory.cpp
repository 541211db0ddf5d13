#include "memory/guarded_memory.hpp"

#include <cstring>

#include "memory/block_sizes.hpp"

namespace xpu::memory {
namespace {

// No number that programs often write.
constexpr unsigned char kPattern = 0xd7;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

void fill(std::uint64_t begin, std::uint64_t end) noexcept { std::memset(pointer(begin), kPattern, end - begin); }

}  // namespace

Result<GuardedRange> map_guarded(hal::MemoryProvider& memory, std::size_t bytes, std::size_t alignment) {
  const std::size_t guard_bytes = memory.granularity();
  GuardedRange range;
  range.bytes = bytes;
  range.mapped_bytes = round_up(bytes, guard_bytes);
  range.reserved_bytes = range.mapped_bytes + 2 * guard_bytes;
  XPU_TRY_ASSIGN(void* const reserved, memory.reserve(range.reserved_bytes));
  range.reserved = reinterpret_cast<std::uintptr_t>(reserved);
  range.mapped = range.reserved + guard_bytes;
  range.begin = range.mapped_end() - round_up(bytes, alignment);
  if (Result<> mapped = memory.map(pointer(range.mapped), range.mapped_bytes); !mapped) {
    memory.unreserve(reserved, range.reserved_bytes);
    return std::move(mapped).error();
  }
  return range;
}

void unmap_guarded(hal::MemoryProvider& memory, const GuardedRange& range) noexcept {
  memory.unmap(pointer(range.mapped), range.mapped_bytes);
}

void unreserve_guarded(hal::MemoryProvider& memory, const GuardedRange& range) noexcept {
  memory.unreserve(pointer(range.reserved), range.reserved_bytes);
}

void fill_slack(const GuardedRange& range) noexcept {
  fill(range.mapped, range.begin);
  fill(range.begin + range.bytes, range.mapped_end());
}

std::optional<Damage> find_damage(const GuardedRange& range) noexcept {
  std::optional<Damage> damage;
  const auto look = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t address = begin; address < end; ++address) {
      if (*static_cast<const unsigned char*>(pointer(address)) == kPattern) continue;
      if (!damage) damage = Damage{static_cast<std::int64_t>(address - range.begin), 0};
      ++damage->changed_bytes;
    }
  };
  look(range.mapped, range.begin);
  look(range.begin + range.bytes, range.mapped_end());
  return damage;
}

}  // namespace xpu::memory
