#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "memory/test_support/ledger_operations.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "memory/test_support/watched_provider.hpp"
#include "xpu/memory/host_caching_allocator.hpp"

namespace xpu::memory {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::int64_t kStreams = 6;
constexpr std::uint64_t kLimitBytes = 48 * kMebibyte;

struct Case {
  std::uint64_t seed;
  HostCachingOptions options;
};

/// Keeps its own books of all that an allocator does, from nothing but the calls that went in and what came out at both ends.
class Ledger {
 public:
  explicit Ledger(const Case& test_case)
      : options_(test_case.options), random_(test_case.seed), allocator_(provider_, progress_, options_) {
    provider_.on_free([this](void* address, std::size_t bytes) { leave(static_cast<std::byte*>(address), bytes); });
  }

  void step() {
    const std::uint64_t dice = pick(1000);
    if (dice < 400) {
      allocate();
    } else if (dice < 700) {
      free_one();
    } else if (dice < 860) {
      record_use();
    } else if (dice < 980) {
      advance();
    } else if (dice < 985) {
      allocator_.empty_cache();
    } else if (dice < 990) {
      toggle_capture();
    } else {
      free_wrongly();
    }
    check();
  }

  /// Everything goes back, and every sum with it.
  void finish() {
    capturing_.clear();
    while (!live_.empty()) free_one();
    for (std::int64_t id = 0; id < kStreams; ++id) {
      allocator_.note_stream(progress_.stream(id));
      progress_.finish_at_once(progress_.stream(id));
    }
    allocator_.empty_cache();
    check();
    const HostStatistics now = allocator_.statistics();
    for (const StatisticsCounter* sum : {&now.allocation, &now.allocated_bytes, &now.pending_bytes, &now.segment, &now.reserved_bytes}) {
      EXPECT_EQ(sum->current, 0);
      EXPECT_EQ(sum->allocated, sum->freed);
    }
    EXPECT_EQ(provider_.taken_bytes(), 0u);
  }

  std::string seen() const {
    return std::to_string(reused_) + " reused after their streams, " + std::to_string(refused_) + " refused, " +
           std::to_string(allocator_.statistics().num_host_alloc) + " driver allocations";
  }
  int reused() const { return reused_; }
  int refused() const { return refused_; }

 private:
  struct Live {
    std::size_t bytes = 0;
    std::set<std::int64_t> uses;
  };
  struct Needed {
    std::int64_t stream_id;
    std::uint64_t ticket;
  };
  /// Freed while streams may have used it, and not handed out again since.
  struct Freed {
    std::size_t bytes = 0;
    std::vector<Needed> needed;
  };

  std::uint64_t pick(std::uint64_t count) { return std::uniform_int_distribution<std::uint64_t>(0, count - 1)(random_); }
  std::size_t pick_size() {
    const std::size_t scale = std::size_t{1} << pick(22);
    return 1 + pick(2 * scale);
  }
  auto pick_live() { return std::next(live_.begin(), static_cast<std::ptrdiff_t>(pick(live_.size()))); }
  std::size_t rounded(std::size_t requested) const {
    const std::size_t class_step = std::max<std::size_t>(64, std::bit_ceil(requested) / 16);
    const std::size_t step = requested > options_.exact_above_bytes ? std::min<std::size_t>(class_step, 64 * 1024) : class_step;
    return (requested + step - 1) / step * step;
  }
  bool is_reached(const Freed& freed) {
    return std::ranges::all_of(
        freed.needed, [this](const Needed& needed) { return progress_.reached(progress_.stream(needed.stream_id)) >= needed.ticket; });
  }

  void allocate() {
    const std::size_t requested = pick_size();
    const Result<void*> result = allocator_.allocate(requested);
    if (!result) return expect_justified(requested, result.error());
    auto* const begin = static_cast<std::byte*>(*result);
    const std::size_t bytes = rounded(requested);
    ASSERT_TRUE(requested <= 512 ? bytes - requested < 64 : (bytes - requested) * 8 <= requested);
    const auto next = live_.lower_bound(begin);
    ASSERT_TRUE(next == live_.end() || begin + bytes <= next->first) << "overlaps the next live block";
    ASSERT_TRUE(next == live_.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= begin) << "overlaps a live block";
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 64, 0u);
    *begin = begin[bytes - 1] = std::byte{1};  // a sanitizer knows whether it is there
    forget_freed(begin, bytes, "was handed out");
    live_.emplace(begin, Live{bytes, {}});
    allocated_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, allocated_bytes_);
    ++allocations_;
  }

  void free_one() {
    if (live_.empty()) return;
    const auto block = live_.extract(pick_live());
    allocated_bytes_ -= block.mapped().bytes;
    if (!block.mapped().uses.empty()) {
      Freed freed{block.mapped().bytes, {}};
      for (std::int64_t id : block.mapped().uses) freed.needed.push_back({id, progress_.issued(progress_.stream(id)) + 1});
      freed_.emplace(block.key(), std::move(freed));
    }
    ASSERT_TRUE(allocator_.free(block.key()));
  }

  void record_use() {
    if (live_.empty()) return;
    const auto block = pick_live();
    const auto id = static_cast<std::int64_t>(pick(kStreams));
    block->second.uses.insert(id);
    ASSERT_TRUE(allocator_.record_use(block->first + pick(block->second.bytes), progress_.stream(id, capturing_.contains(id))));
  }

  void advance() {
    const auto id = static_cast<std::int64_t>(pick(kStreams));
    if (capturing_.contains(id)) return;
    const StreamRef stream = progress_.stream(id);
    progress_.reach(stream, pick(4) == 0 ? progress_.issued(stream) : progress_.reached(stream) + 1);
  }

  void toggle_capture() {
    const auto id = static_cast<std::int64_t>(pick(kStreams));
    if (capturing_.erase(id) == 0) capturing_.emplace(id, progress_.calls(progress_.stream(id)).total());
    allocator_.note_stream(progress_.stream(id, capturing_.contains(id)));
  }

  void free_wrongly() {
    int foreign = 0;
    ASSERT_FALSE(allocator_.free(&foreign));
    ASSERT_FALSE(allocator_.record_use(&foreign, progress_.stream(0)));
    if (!live_.empty()) {
      const auto block = pick_live();
      ASSERT_FALSE(allocator_.free(block->first + 1 + pick(block->second.bytes - 1)));
    }
    if (freed_.empty()) return;
    ASSERT_FALSE(allocator_.free(freed_.begin()->first));
  }

  /// Memory changes hands: whatever was freed there must be out of its streams' hands.
  void forget_freed(std::byte* begin, std::size_t bytes, const char* what) {
    auto freed = freed_.lower_bound(begin);
    if (freed != freed_.begin() && std::prev(freed)->first + std::prev(freed)->second.bytes > begin) --freed;
    while (freed != freed_.end() && freed->first < begin + bytes) {
      ASSERT_TRUE(is_reached(freed->second)) << "memory " << what << " while a stream may be using it";
      freed = freed_.erase(freed);
      ++reused_;
    }
  }

  void leave(std::byte* begin, std::size_t bytes) {
    forget_freed(begin, bytes, "went back to the driver");
    const auto next = live_.lower_bound(begin);
    EXPECT_TRUE(next == live_.end() || begin + bytes <= next->first) << "a live block went back to the driver";
  }

  /// Only a capturing stream's blocks may still wait, and the rest must not be enough.
  void expect_justified(std::size_t requested, const Error& error) {
    ++refused_;
    ASSERT_EQ(error.code, ErrorCode::out_of_host_memory) << error.message;
    const std::size_t wanted = requested <= 64 * 1024 ? 2 * kMebibyte : rounded(requested);
    ASSERT_GT(provider_.taken_bytes() + wanted, kLimitBytes);
    std::int64_t held_bytes = 0;
    for (const auto& [begin, freed] : freed_) {
      const bool is_held =
          std::ranges::any_of(freed.needed, [this](const Needed& needed) { return capturing_.contains(needed.stream_id); });
      if (is_held) held_bytes += static_cast<std::int64_t>(freed.bytes);
    }
    ASSERT_LE(allocator_.statistics().pending_bytes.current, held_bytes) << "memory was refused though waiting would have helped";
  }

  void check() {
    const HostStatistics now = allocator_.statistics();
    ASSERT_EQ(now.allocation.current, static_cast<std::int64_t>(live_.size()));
    ASSERT_EQ(now.allocation.allocated, allocations_);
    ASSERT_EQ(now.allocated_bytes.current, static_cast<std::int64_t>(allocated_bytes_));
    ASSERT_EQ(now.allocated_bytes.peak, static_cast<std::int64_t>(peak_bytes_));
    ASSERT_EQ(now.reserved_bytes.current, static_cast<std::int64_t>(provider_.taken_bytes()));
    ASSERT_EQ(now.segment.current, now.num_host_alloc - now.num_host_free);
    for (const StatisticsCounter* sum : {&now.allocation, &now.allocated_bytes, &now.pending_bytes, &now.segment, &now.reserved_bytes}) {
      ASSERT_EQ(sum->current, sum->allocated - sum->freed);
      ASSERT_LE(sum->current, sum->peak);
      ASSERT_GE(sum->current, 0);
    }
    ASSERT_GE(now.reserved_bytes.current, now.allocated_bytes.current + now.pending_bytes.current);
    std::int64_t least_pending_bytes = 0, most_pending_bytes = 0;
    for (const auto& [begin, freed] : freed_) {
      most_pending_bytes += static_cast<std::int64_t>(freed.bytes);
      if (!is_reached(freed)) least_pending_bytes += static_cast<std::int64_t>(freed.bytes);
    }
    ASSERT_GE(now.pending_bytes.current, least_pending_bytes);
    ASSERT_LE(now.pending_bytes.current, most_pending_bytes);
    for (const auto& [id, calls] : capturing_) ASSERT_EQ(progress_.calls(progress_.stream(id)).total(), calls) << "stream " << id;
  }

  const HostCachingOptions options_;
  std::mt19937_64 random_;
  std::map<std::byte*, Live> live_;
  std::map<std::byte*, Freed> freed_;
  std::map<std::int64_t, int> capturing_;  // to the number of questions when it began
  std::size_t allocated_bytes_ = 0, peak_bytes_ = 0;
  std::int64_t allocations_ = 0;
  int reused_ = 0, refused_ = 0;
  ScriptedProgress progress_;
  WatchedProvider provider_{kLimitBytes};
  HostCachingAllocator allocator_;
};

class HostCachingAllocatorProperty : public testing::TestWithParam<Case> {};

TEST_P(HostCachingAllocatorProperty, AgreesWithALedgerAfterEveryStep) {
  Ledger ledger(GetParam());
  for (std::size_t step = 0; step < std::min<std::size_t>(ledger_operations(), 100'000); ++step) {
    ledger.step();
    ASSERT_FALSE(HasFailure()) << "in step " << step << " of seed " << GetParam().seed;
  }
  EXPECT_GT(ledger.reused(), 300) << ledger.seen();
  EXPECT_GT(ledger.refused(), 10) << ledger.seen();
  RecordProperty("seen", ledger.seen());
  ledger.finish();
}

INSTANTIATE_TEST_SUITE_P(Options, HostCachingAllocatorProperty,
                         testing::Values(Case{1, {}}, Case{2, {.max_cached_bytes = 8 * kMebibyte, .exact_above_bytes = kMebibyte}},
                                         Case{3, {.max_cached_bytes = 0, .exact_above_bytes = 64 << 10}}),
                         [](const auto& name_info) { return "Seed" + std::to_string(name_info.param.seed); });

}  // namespace
}  // namespace xpu::memory
