// Random operations on a device that is too small for them, beside a ledger that knows what must come out.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/ledger_operations.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

constexpr std::size_t kCapacity = 256 * kMiB;
constexpr int kStreams = 3;
constexpr std::size_t kMostPools = 4;

/// What is allocated, what is freed and still in use, and the sums over both that statistics and snapshot must show.
class Ledger {
 public:
  struct Block {
    std::size_t bytes = 0, requested_bytes = 0;
    int stream = 0;
    std::map<int, bool> uses;  // by other streams
    PoolId pool;               // what was asked for
  };

  Ledger(ScriptedProgress& progress) : progress_(progress) {}

  std::map<std::uint64_t, Block> live;
  std::size_t device_waits = 0;  // without which memory would have been handed out too early

  void add(std::uint64_t address, std::size_t requested_bytes, int stream, const DevicePool* pool = nullptr) {
    const std::size_t bytes = block_bytes(requested_bytes);
    const auto next = live.lower_bound(address);
    if (next != live.end()) {
      ASSERT_LE(address + requested_bytes, next->first) << "blocks overlap";
    }
    if (next != live.begin()) {
      ASSERT_LE(std::prev(next)->first + std::prev(next)->second.requested_bytes, address) << "blocks overlap";
    }
    ASSERT_EQ(address % kGranuleBytes, 0u);
    require_done(address, bytes, stream);
    live[address] = {bytes, requested_bytes, stream, {}, pool == nullptr ? PoolId{} : pool->id()};
    if (pool != nullptr && pool->options().is_for_graphs) graphs_[pool->id().graph].emplace_back(address, address + bytes);
  }
  void release_graph(std::uint64_t id) { graphs_.erase(id); }
  /// Memory goes back to the device. What a graph may replay on must stay.
  void require_not_of_a_graph(std::uint64_t begin, std::size_t bytes) const {
    for (const auto& [graph, ranges] : graphs_) {
      for (const auto& [first, end] : ranges) EXPECT_TRUE(end <= begin || begin + bytes <= first) << "of the pool of graph " << graph;
    }
  }
  void remove(std::uint64_t address) {
    const Block block = live.at(address);
    live.erase(address);
    Used used{address, address + block.bytes, {}};
    used.needs[block.stream] = progress_.issued(stream(block.stream));
    for (const auto& [user, is_used] : block.uses) used.needs[user] = progress_.issued(stream(user));
    freed_.push_back({used, block.stream});
  }
  /// Memory is handed out for `stream`, or taken away (-1): every stream that could touch it must have got past the free, or `stream`
  /// must have been made to wait on the device until it has.
  void require_done(std::uint64_t begin, std::size_t bytes, int for_stream) {
    std::erase_if(freed_, [&](const Freed& freed) {
      if (freed.used.end <= begin || begin + bytes <= freed.used.begin) return false;
      for (const auto& [user, issued] : freed.used.needs) {
        if (user == for_stream) continue;
        // What a ticket that was issued before the free says is not enough.
        std::uint64_t passed = progress_.reached(stream(user));
        if (passed <= issued && for_stream >= 0) {
          passed = progress_.awaited(stream(for_stream), stream(user));
          ++device_waits;
        }
        EXPECT_GT(passed, issued) << "memory of stream " << freed.stream << " was used by stream " << user << " and is now given to "
                                  << for_stream;
      }
      return begin <= freed.used.begin && freed.used.end <= begin + bytes;
    });
  }
  StreamRef stream(int number) { return progress_.stream(number); }

 private:
  struct Used {
    std::uint64_t begin, end;
    std::map<int, std::uint64_t> needs;  // by stream: the last ticket that was issued before the free
  };
  struct Freed {
    Used used;
    int stream;
  };
  ScriptedProgress& progress_;
  std::vector<Freed> freed_;
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> graphs_;  // by pool: addresses that were ever handed out
};

struct Kind {
  const char* name;
  bool can_map;
  const char* options;
};

class LedgerTest : public ::testing::TestWithParam<Kind> {
 protected:
  void check_sums() {
    const DeviceStatistics statistics = allocator_->statistics();
    const Snapshot snapshot = allocator_->snapshot();
    StatisticsByPool seen_allocation, seen_allocated, seen_active, seen_reserved, seen_requested, seen_segments, seen_split,
        seen_split_bytes;
    std::uint64_t before = 0;
    for (const SnapshotSegment& segment : snapshot.segments) {
      ASSERT_GE(segment.address, before) << "segments overlap";
      before = segment.address + segment.total_bytes;
      std::uint64_t end = segment.address;
      const bool is_split = segment.blocks.size() > 1;
      const auto add = [&](StatisticsByPool& sum, std::uint64_t amount) {
        sum.all.current += static_cast<std::int64_t>(amount);
        (segment.is_small ? sum.small_pool : sum.large_pool).current += static_cast<std::int64_t>(amount);
      };
      for (const SnapshotBlock& block : segment.blocks) {
        ASSERT_EQ(block.address, end) << "blocks do not tile their segment";
        end += block.size_bytes;
        if (block.state == SnapshotBlockState::active_allocated) {
          const auto found = ledger_.live.find(block.address);
          ASSERT_NE(found, ledger_.live.end());
          ASSERT_EQ(block.requested_bytes, found->second.requested_bytes);
          ASSERT_EQ(segment.stream, found->second.stream);
          const bool was_lent = found->second.pool == PoolId{} && lenders_.contains(segment.pool.user);
          ASSERT_TRUE(segment.pool == found->second.pool || was_lent) << segment.pool.graph << " " << segment.pool.user;
          add(seen_allocation, 1);
        }
        if (block.state == SnapshotBlockState::inactive && is_split && !segment.is_expandable) {
          add(seen_split, 1);
          add(seen_split_bytes, block.size_bytes);
        }
      }
      ASSERT_EQ(end, segment.address + segment.total_bytes);
      add(seen_allocated, segment.allocated_bytes);
      add(seen_active, segment.active_bytes);
      add(seen_requested, segment.requested_bytes);
      add(seen_reserved, segment.total_bytes);
      if (!segment.is_expandable) add(seen_segments, 1);
    }
    ASSERT_EQ(seen_allocation.all.current, static_cast<std::int64_t>(ledger_.live.size()));
    const auto expect_current = [](const StatisticsByPool& told, const StatisticsByPool& seen, const char* what) {
      ASSERT_EQ(told.all.current, seen.all.current) << what;
      ASSERT_EQ(told.small_pool.current, seen.small_pool.current) << what;
      ASSERT_EQ(told.large_pool.current, seen.large_pool.current) << what;
      for (const StatisticsCounter* counter : {&told.all, &told.small_pool, &told.large_pool}) {
        ASSERT_EQ(counter->current, counter->allocated - counter->freed) << what;
        ASSERT_GE(counter->peak, counter->current) << what;
      }
    };
    expect_current(statistics.allocation, seen_allocation, "allocation");
    expect_current(statistics.allocated_bytes, seen_allocated, "allocated_bytes");
    expect_current(statistics.active_bytes, seen_active, "active_bytes");
    expect_current(statistics.reserved_bytes, seen_reserved, "reserved_bytes");
    expect_current(statistics.requested_bytes, seen_requested, "requested_bytes");
    expect_current(statistics.segment, seen_segments, "segment");
    expect_current(statistics.inactive_split, seen_split, "inactive_split");
    expect_current(statistics.inactive_split_bytes, seen_split_bytes, "inactive_split_bytes");
    // Peaks, from outside: the highest value seen after any step.
    const auto expect_peak = [](const StatisticsByPool& told, std::int64_t& highest, const char* what) {
      highest = std::max(highest, told.all.current);
      ASSERT_EQ(told.all.peak, highest) << what;
    };
    expect_peak(statistics.allocation, highest_[0], "allocation");
    expect_peak(statistics.allocated_bytes, highest_[1], "allocated_bytes");
    expect_peak(statistics.requested_bytes, highest_[2], "requested_bytes");
    // What is free in split segments may have been more within the step.
    highest_[3] = std::max(highest_[3], statistics.inactive_split_bytes.all.current);
    ASSERT_GE(statistics.inactive_split_bytes.all.peak, highest_[3]);
    ASSERT_GE(statistics.active_bytes.all.peak, statistics.allocated_bytes.all.peak);
    ASSERT_EQ(static_cast<std::size_t>(statistics.reserved_bytes.all.current), memory_.taken_bytes());
    ASSERT_EQ(memory_.broken_rules(), 0);
    ASSERT_EQ(told_live_, ledger_.live.size());
    ASSERT_EQ(told_active_, statistics.active.all.current);
    ASSERT_EQ(told_reserved_, statistics.reserved_bytes.all.current);
  }

  FakeDeviceMemory memory_{kCapacity, GetParam().can_map};
  ScriptedProgress progress_;
  Ledger ledger_{progress_};
  std::unique_ptr<DeviceCachingAllocator> allocator_ =
      DeviceCachingAllocator::create(memory_, progress_, parse_config(GetParam().options).value()).value();
  std::int64_t highest_[4] = {};
  std::vector<std::unique_ptr<DevicePool>> pools_;
  std::size_t told_live_ = 0;  // by the tracker
  std::int64_t told_active_ = 0, told_reserved_ = 0;
  std::set<std::uint64_t> lenders_;  // pools, also former ones, that serve others when there is no other way
};

INSTANTIATE_TEST_SUITE_P(Devices, LedgerTest,
                         ::testing::Values(Kind{"expandable", true, ""}, Kind{"segments", false, ""},
                                           Kind{"unsplit_and_collected", true, "max_split_size_mb:24,garbage_collection_threshold:0.6"}),
                         [](const ::testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

TEST_P(LedgerTest, SnapshotStatisticsAndLedgerAgreeAfterEveryStep) {
  ASSERT_EQ(allocator_->has_expandable_segments(), GetParam().name == std::string("expandable"));
  memory_.on_take_away([&](std::uint64_t begin, std::size_t bytes) {
    ledger_.require_done(begin, bytes, -1);
    ledger_.require_not_of_a_graph(begin, bytes);
  });
  allocator_->attach_tracker([&](const TraceEntry& entry) {
    const auto bytes = static_cast<std::int64_t>(entry.bytes);
    switch (entry.action) {
      case TraceAction::alloc: ++told_live_, ++told_active_; break;
      case TraceAction::free_requested: --told_live_; break;
      case TraceAction::free_completed: --told_active_; break;
      case TraceAction::segment_alloc:
      case TraceAction::segment_map: told_reserved_ += bytes; break;
      case TraceAction::segment_free:
      case TraceAction::segment_unmap: told_reserved_ -= bytes; break;
      case TraceAction::snapshot:
      case TraceAction::oom: break;
    }
  });
  std::mt19937_64 random(4711);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  const auto any_size = [&]() -> std::size_t {
    const std::uint64_t kind = below(10);
    if (kind < 4) return 1 + below(8'192);
    if (kind < 7) return 1 + below(kMiB);
    if (kind < 9) return kMiB + below(8 * kMiB);
    return 8 * kMiB + below(24 * kMiB);
  };
  const auto any_live = [&] { return std::next(ledger_.live.begin(), static_cast<std::ptrdiff_t>(below(ledger_.live.size()))); };
  std::size_t refused = 0;
  // All of them where a program is that asked for nothing; the other kinds share most of the code.
  const std::size_t steps = GetParam().can_map && GetParam().options[0] == '\0' ? ledger_operations() : ledger_operations() / 4;
  for (std::size_t step = 0; step < steps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const std::uint64_t action = below(100);
    if (action < 46 || ledger_.live.empty()) {
      if (below(50) == 0) memory_.refuse(1 + static_cast<int>(below(4)));
      progress_.refuse_device_waits(below(4) == 0);
      const std::size_t bytes = any_size();
      const int stream = static_cast<int>(below(kStreams));
      const std::uint64_t place = below(2 * kMostPools);
      const DevicePool* const pool = place < pools_.size() ? pools_[place].get() : nullptr;
      Result<void*> allocated = pool == nullptr ? allocator_->allocate(bytes, ledger_.stream(stream))
                                                : allocator_->allocate(bytes, ledger_.stream(stream), *pool);
      memory_.refuse(0);
      if (allocated) {
        ledger_.add(reinterpret_cast<std::uintptr_t>(*allocated), bytes, stream, pool);
      } else {
        ASSERT_EQ(allocated.error().code, ErrorCode::out_of_device_memory);
        ++refused;
        for (int count = 0; count < 8 && !ledger_.live.empty(); ++count) {
          const auto block = any_live();
          ASSERT_TRUE(allocator_->free(reinterpret_cast<void*>(block->first)));
          ledger_.remove(block->first);
        }
      }
    } else if (action < 82) {
      const auto block = any_live();
      ASSERT_TRUE(allocator_->free(reinterpret_cast<void*>(block->first)));
      ledger_.remove(block->first);
    } else if (action < 92) {
      const auto block = any_live();
      const int user = static_cast<int>(below(kStreams));
      ASSERT_TRUE(allocator_->record_use(reinterpret_cast<void*>(block->first), ledger_.stream(user)));
      if (user != block->second.stream) block->second.uses[user] = true;
    } else if (action < 98) {
      const StreamRef stream = ledger_.stream(static_cast<int>(below(kStreams)));
      progress_.reach(stream, below(progress_.issued(stream) + 1));
    } else if (action < 99) {
      const std::uint64_t place = below(kMostPools + 2);
      if (place > kMostPools) {
        allocator_->empty_cache();
      } else if (place < pools_.size() && below(2) == 0) {
        allocator_->empty_cache(*pools_[place]);
      } else if (place < pools_.size()) {
        ledger_.release_graph(pools_[place]->id().graph);
        pools_.erase(pools_.begin() + static_cast<std::ptrdiff_t>(place));
      } else if (pools_.size() < kMostPools) {
        const std::uint64_t kind = below(6);
        pools_.push_back(allocator_->create_pool({.is_for_graphs = kind == 0, .use_on_oom = kind % 2 == 1, .no_split = kind / 2 == 1}));
        if (kind % 2 == 1) lenders_.insert(pools_.back()->id().user);
      }
    } else if (!ledger_.live.empty()) {
      const std::uint64_t address = any_live()->first + 1;
      EXPECT_FALSE(allocator_->free(reinterpret_cast<void*>(address)));
      EXPECT_FALSE(allocator_->record_use(reinterpret_cast<void*>(address), ledger_.stream(0)));
    }
    ASSERT_NO_FATAL_FAILURE(check_sums());
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 0u) << "the device was too large for the test";
  // With the options memory is seldom scarce.
  if (GetParam().options[0] == '\0') {
    EXPECT_GT(ledger_.device_waits, 0u) << "no stream was made to wait for another one";
  }
  while (!ledger_.live.empty()) {
    const std::uint64_t address = ledger_.live.begin()->first;
    ASSERT_TRUE(allocator_->free(reinterpret_cast<void*>(address)));
    EXPECT_FALSE(allocator_->free(reinterpret_cast<void*>(address))) << "it was freed before";
    ledger_.remove(address);
  }
  for (const auto& pool : pools_) ledger_.release_graph(pool->id().graph);
  pools_.clear();
  allocator_->empty_cache();
  for (int stream = 0; stream < kStreams; ++stream) progress_.finish_at_once(ledger_.stream(stream));
  allocator_->empty_cache();
  ASSERT_NO_FATAL_FAILURE(check_sums());
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  memory_.on_take_away({});
}

}  // namespace
}  // namespace xpu::memory
