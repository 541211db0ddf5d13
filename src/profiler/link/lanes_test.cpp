#include "profiler/link/lanes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace xpu::profiler {
namespace {

std::vector<Placement> place_all(const std::vector<Span>& spans) {
  LaneAssigner lanes;
  std::vector<Placement> placements;
  for (const Span& span : spans) placements.push_back(lanes.place(span));
  return placements;
}
std::vector<std::uint32_t> lanes_of(const std::vector<Span>& spans) {
  std::vector<std::uint32_t> lanes;
  for (const Placement& placement : place_all(spans)) lanes.push_back(placement.lane);
  return lanes;
}

TEST(LanesTest, KeepsCommandsThatFollowEachOtherOnOneLane) {
  EXPECT_EQ(lanes_of({{0, 10}, {10, 5}, {20, 1}}), (std::vector<std::uint32_t>{0, 0, 0}));
}

TEST(LanesTest, TakesTheLowestFreeLane) {
  EXPECT_EQ(lanes_of({{0, 100}, {10, 100}, {20, 100}, {105, 100}, {115, 100}}), (std::vector<std::uint32_t>{0, 1, 2, 0, 1}));
}

TEST(LanesTest, PutsCommandsOfNoLengthAtOneTimeOnOneLane) {
  EXPECT_EQ(lanes_of({{5, 0}, {5, 0}, {5, 3}}), (std::vector<std::uint32_t>{0, 0, 0}));
}

TEST(LanesTest, NudgesNeighboursThatOnlyRoundingMakesOverlap) {
  const std::vector<Placement> placements = place_all({{0, 10'000, 500}, {9'995, 10'000, 500}, {19'995, 10, 500}});
  EXPECT_EQ(placements[1].lane, 0u);
  EXPECT_EQ(placements[1].nudge_ns, 5u);
  EXPECT_EQ(placements[2].lane, 0u);
  EXPECT_EQ(placements[2].nudge_ns, 5u) << "behind where its neighbour is drawn";
}

TEST(LanesTest, NudgesNobodyFurtherThanItsError) {
  const std::vector<Placement> placements = place_all({{0, 10'000, 4}, {9'995, 10'000, 4}});
  EXPECT_EQ(placements[1].lane, 1u);
  EXPECT_EQ(placements[1].nudge_ns, 0u);
}

TEST(LanesTest, KeepsARealOverlapHoweverLargeTheError) {
  const std::vector<Placement> placements = place_all({{0, 10'000, 1'000'000}, {9'900, 10'000, 1'000'000}});
  EXPECT_EQ(placements[1].lane, 1u) << "1 % of the earlier command is more than two clocks drift apart";
}

TEST(LanesTest, KeepsAChainOfBackToBackCommandsOnFewLanesUnderDrift) {
  // The device counts 100 ppm fast, so each command seems 100 ns longer than the host's time to the next one.
  std::vector<Span> spans;
  for (std::int64_t i = 0; i < 10'000; ++i) spans.push_back({i * 1'000'000, 1'000'100, 5'000});
  const std::vector<Placement> placements = place_all(spans);
  EXPECT_LE(std::max_element(placements.begin(), placements.end(), [](auto a, auto b) { return a.lane < b.lane; })->lane, 1u);
  const auto beside = std::count_if(placements.begin(), placements.end(), [](auto placement) { return placement.lane != 0; });
  EXPECT_LE(beside, 200) << "one in fifty, when the nudge has used up the error";
}

TEST(LanesTest, LeavesNoOverlapOnAnyLaneWhateverTheCommands) {
  for (std::uint32_t seed = 1; seed <= 100'000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    std::vector<Span> spans(1 + below(24));
    const std::uint32_t horizon = 1 + below(2'000), longest = 1 + below(500), largest_error = 1 + below(50);
    for (Span& span : spans) span = {static_cast<std::int64_t>(below(horizon)), below(longest), below(largest_error)};
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });

    LaneAssigner lanes;
    std::vector<std::int64_t> end_of_lane;
    for (const Span& span : spans) {
      const Placement placement = lanes.place(span);
      const std::int64_t shown = span.start_ns + placement.nudge_ns;
      if (placement.lane >= end_of_lane.size()) {
        // A lane is made only when all others are taken.
        ASSERT_EQ(placement.lane, end_of_lane.size()) << "seed " << seed;
        for (const std::int64_t end : end_of_lane) ASSERT_GT(end, span.start_ns) << "seed " << seed;
        end_of_lane.push_back(shown);
      }
      ASSERT_LE(end_of_lane[placement.lane], shown) << "seed " << seed;
      ASSERT_LE(placement.nudge_ns, span.error_ns) << "seed " << seed;
      end_of_lane[placement.lane] = shown + static_cast<std::int64_t>(span.duration_ns);
    }
  }
}

TEST(LanesTest, ASpanThatComesLateOverlapsNothing) {
  std::mt19937 random(7);
  LaneAssigner lanes;
  struct Shown {
    std::int64_t begin_ns, end_ns;
  };
  std::map<std::uint32_t, std::vector<Shown>> rows;
  std::int64_t now_ns = 0;
  for (int i = 0; i < 20'000; ++i) {
    now_ns += random() % 20;
    const bool is_late = random() % 4 == 0;
    const Span span{now_ns - (is_late ? static_cast<std::int64_t>(random() % 500) : 0), random() % 60, random() % 3};
    const Placement placement = lanes.place(span);
    const std::int64_t begin_ns = span.start_ns + placement.nudge_ns;
    rows[placement.lane].push_back({begin_ns, begin_ns + static_cast<std::int64_t>(span.duration_ns)});
  }
  EXPECT_LE(rows.size(), 100u) << "lanes are used again";
  for (auto& [lane, spans] : rows) {
    std::stable_sort(spans.begin(), spans.end(), [](const Shown& a, const Shown& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns < b.end_ns;
    });
    for (std::size_t i = 1; i < spans.size(); ++i) ASSERT_GE(spans[i].begin_ns, spans[i - 1].end_ns) << "lane " << lane;
  }
}

}  // namespace
}  // namespace xpu::profiler
