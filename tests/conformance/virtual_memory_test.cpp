#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Address space and the memory behind it.
class VirtualMemoryTest : public DeviceTest {
 protected:
  /// A reservation that is given back after the test, what is mapped in it included.
  class Reservation {
   public:
    Reservation(hal::MemoryProvider& provider, std::size_t granule_count)
        : provider_(provider),
          granule_bytes_(provider.granularity()),
          is_mapped_(granule_count),
          base_(static_cast<std::byte*>(provider.reserve(bytes()).value())) {}
    ~Reservation() {
      // Run by run: one call for each granule of a large mapping would take minutes.
      for (auto first = is_mapped_.begin(); first != is_mapped_.end();) {
        first = std::find(first, is_mapped_.end(), true);
        const auto end = std::find(first, is_mapped_.end(), false);
        if (first != end) provider_.unmap(at(index_of(first)), static_cast<std::size_t>(end - first) * granule_bytes_);
        first = end;
      }
      provider_.unreserve(base_, bytes());
    }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    std::byte* at(std::size_t granule) const { return base_ + granule * granule_bytes_; }
    std::size_t bytes() const { return is_mapped_.size() * granule_bytes_; }
    std::size_t granule_bytes() const { return granule_bytes_; }

    Result<> map(std::size_t first, std::size_t count) {
      Result<> mapped = provider_.map(at(first), count * granule_bytes_);
      if (mapped) mark(first, count, true);
      return mapped;
    }
    void unmap(std::size_t first, std::size_t count) {
      provider_.unmap(at(first), count * granule_bytes_);
      mark(first, count, false);
    }

   private:
    std::size_t index_of(std::vector<bool>::iterator granule) { return static_cast<std::size_t>(granule - is_mapped_.begin()); }
    void mark(std::size_t first, std::size_t count, bool is_mapped) {
      std::fill_n(is_mapped_.begin() + static_cast<std::ptrdiff_t>(first), count, is_mapped);
    }

    hal::MemoryProvider& provider_;
    const std::size_t granule_bytes_;
    std::vector<bool> is_mapped_;  // a granule each
    std::byte* const base_;
  };

  static std::uint64_t free_bytes(hal::MemoryProvider& provider) { return provider.info().value().free_bytes; }
};
XPU_CONFORMANCE_SUITE(VirtualMemoryTest);

TEST_P(VirtualMemoryTest, TheGranularityIsAPowerOfTwoAndStays) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    const std::size_t granularity = memory(kind).granularity();
    EXPECT_TRUE(std::has_single_bit(granularity)) << to_string(kind) << " " << granularity;
    EXPECT_EQ(memory(kind).granularity(), granularity) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, AReservationIsAlignedToTheGranularity) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    const Reservation reservation(memory(kind), 3);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(reservation.at(0)) % reservation.granule_bytes(), 0u) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, AReservationTakesNoMemory) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    const std::uint64_t before = free_bytes(memory(kind));
    const Reservation reservation(memory(kind), 1'000);
    EXPECT_EQ(free_bytes(memory(kind)), before) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, MoreAddressSpaceThanMemoryCanBeReserved) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    const std::uint64_t total = memory(kind).info().value().total_bytes;
    EXPECT_NO_THROW(Reservation(memory(kind), 2 * total / memory(kind).granularity() + 1)) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, ReservationsDoNotOverlap) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    const Reservation first(memory(kind), 10);
    const Reservation second(memory(kind), 10);
    EXPECT_TRUE(first.at(0) + first.bytes() <= second.at(0) || second.at(0) + second.bytes() <= first.at(0)) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, AMappedPartIsMemory) {
  XPU_NEEDS(virtual_memory);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : kinds()) {
    Reservation reservation(memory(kind), 4);
    ASSERT_TRUE(is_ok(reservation.map(1, 2))) << to_string(kind);
    const std::vector<std::byte> expected = pattern_bytes(2 * reservation.granule_bytes(), 1);
    write(*queue, reservation.at(1), expected);
    EXPECT_EQ(read(*queue, reservation.at(1), expected.size()), expected) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, MappingTakesItsBytesAndUnmappingGivesThemBack) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    if (memory(kind).info().value().is_measured) continue;
    Reservation reservation(memory(kind), 8);
    const std::uint64_t before = free_bytes(memory(kind));
    ASSERT_TRUE(is_ok(reservation.map(2, 3))) << to_string(kind);
    EXPECT_EQ(before - free_bytes(memory(kind)), 3 * reservation.granule_bytes()) << to_string(kind);
    reservation.unmap(2, 3);
    EXPECT_EQ(free_bytes(memory(kind)), before) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, PartsAreMappedInAnyOrderAndKeepTheirContents) {
  XPU_NEEDS(virtual_memory);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : kinds()) {
    Reservation reservation(memory(kind), 4);
    for (const std::size_t granule : {3u, 0u, 2u, 1u}) {
      ASSERT_TRUE(is_ok(reservation.map(granule, 1))) << to_string(kind) << " " << granule;
      write(*queue, reservation.at(granule), pattern_bytes(1'000, static_cast<unsigned>(granule)));
    }
    for (unsigned granule = 0; granule < 4; ++granule) {
      EXPECT_EQ(read(*queue, reservation.at(granule), 1'000), pattern_bytes(1'000, granule)) << to_string(kind) << " " << granule;
    }
  }
}

TEST_P(VirtualMemoryTest, AnOperationMayCrossPartsThatWereMappedOneByOne) {
  XPU_NEEDS(virtual_memory);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : kinds()) {
    Reservation reservation(memory(kind), 2);
    reservation.map(0, 1).value();
    reservation.map(1, 1).value();
    const std::vector<std::byte> expected = pattern_bytes(2'000, 5);
    std::byte* const across = reservation.at(1) - 1'000;
    write(*queue, across, expected);
    EXPECT_EQ(read(*queue, across, expected.size()), expected) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, UnmappingAPartLeavesItsNeighboursAlone) {
  XPU_NEEDS(virtual_memory);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : kinds()) {
    Reservation reservation(memory(kind), 3);
    reservation.map(0, 3).value();
    const std::size_t granule_bytes = reservation.granule_bytes();
    const std::vector<std::byte> expected = pattern_bytes(3 * granule_bytes, 6);
    write(*queue, reservation.at(0), expected);
    reservation.unmap(1, 1);
    EXPECT_EQ(read(*queue, reservation.at(0), granule_bytes),
              std::vector(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(granule_bytes)))
        << to_string(kind);
    EXPECT_EQ(read(*queue, reservation.at(2), granule_bytes),
              std::vector(expected.end() - static_cast<std::ptrdiff_t>(granule_bytes), expected.end()))
        << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, APartThatWasUnmappedCanBeMappedAgain) {
  XPU_NEEDS(virtual_memory);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : kinds()) {
    Reservation reservation(memory(kind), 2);
    for (unsigned round = 0; round < 5; ++round) {
      ASSERT_TRUE(is_ok(reservation.map(1, 1))) << to_string(kind) << " " << round;
      write(*queue, reservation.at(1), pattern_bytes(500, round));
      EXPECT_EQ(read(*queue, reservation.at(1), 500), pattern_bytes(500, round)) << to_string(kind) << " " << round;
      reservation.unmap(1, 1);
    }
  }
}

TEST_P(VirtualMemoryTest, MoreThanTheTotalCannotBeMapped) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    const hal::MemoryInfo before = memory(kind).info().value();
    const std::size_t granule_count = before.total_bytes / memory(kind).granularity() + 1;
    Reservation reservation(memory(kind), granule_count);
    EXPECT_TRUE(fails_with(kind == hal::MemoryKind::host ? ErrorCode::out_of_host_memory : ErrorCode::out_of_device_memory,
                           reservation.map(0, granule_count)))
        << to_string(kind);
    if (!before.is_measured) {
      EXPECT_EQ(free_bytes(memory(kind)), before.free_bytes) << to_string(kind);
    }
    EXPECT_TRUE(is_ok(reservation.map(0, 1))) << to_string(kind);
  }
}

TEST_P(VirtualMemoryTest, BlocksAndMappedPartsDrawOnTheSameMemory) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    const std::uint64_t total = memory(kind).info().value().total_bytes;
    const std::size_t granule_count = total / 2 / memory(kind).granularity() + 1;
    Reservation reservation(memory(kind), granule_count);
    ASSERT_TRUE(is_ok(reservation.map(0, granule_count))) << to_string(kind);
    const Result<void*> block = memory(kind).allocate(total / 2 + 1, 64);
    EXPECT_FALSE(block) << to_string(kind);
    if (block) memory(kind).free(*block);
  }
}

TEST_P(VirtualMemoryTest, AddressSpaceThatIsGivenBackIsNeverUsedUp) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    for (int round = 0; round < 500; ++round) {
      const Result<void*> reserved = memory(kind).reserve(std::size_t{1} << 36);
      ASSERT_TRUE(is_ok(reserved)) << to_string(kind) << " " << round;
      memory(kind).unreserve(*reserved, std::size_t{1} << 36);
    }
  }
}

TEST_P(VirtualMemoryTest, FourThreadsMapPartsOfOneReservation) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : kinds()) {
    hal::MemoryProvider& provider = memory(kind);
    const std::size_t granule_bytes = provider.granularity();
    const std::uint64_t before = free_bytes(provider);
    const Reservation reservation(provider, 4);
    on_threads(4, [&](int thread) {
      for (int round = 0; round < 50; ++round) {
        EXPECT_TRUE(is_ok(provider.map(reservation.at(static_cast<std::size_t>(thread)), granule_bytes)));
        provider.unmap(reservation.at(static_cast<std::size_t>(thread)), granule_bytes);
      }
    });
    if (!provider.info().value().is_measured) {
      EXPECT_EQ(free_bytes(provider), before) << to_string(kind);
    }
  }
}

/// For a process of a death test: touches a part that was unmapped and ends with 42 when that is a fault.
[[noreturn]] void touch_what_was_unmapped(const hal::DriverEntry& entry, hal::MemoryKind kind) {
  const std::unique_ptr<hal::Driver> driver = entry.create();
  const std::unique_ptr<hal::Device> device = driver->open_device(0).value();
  hal::MemoryProvider& provider = *device->memory(kind);
  const std::size_t bytes = provider.granularity();
  auto* const part = static_cast<volatile char*>(provider.reserve(bytes).value());
  provider.map(const_cast<char*>(part), bytes).value();
  part[0] = 1;
  provider.unmap(const_cast<char*>(part), bytes);
  for (const int number : {SIGSEGV, SIGBUS}) std::signal(number, [](int) { std::_Exit(42); });
  part[0] = 2;
  std::_Exit(1);
}

TEST_P(VirtualMemoryTest, TouchingWhatWasUnmappedIsAFault) {
  XPU_NEEDS(virtual_memory);
  for (const hal::MemoryKind kind : host_visible_kinds()) {
    EXPECT_EXIT(touch_what_was_unmapped(entry(), kind), ::testing::ExitedWithCode(42), "") << to_string(kind);
  }
}

}  // namespace
}  // namespace xpu::conformance
