#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <utility>

#include "drivers/sim/test_support/sim_fixture.hpp"

namespace xpu::drivers::sim {
namespace {

constexpr std::size_t kQueues = 4, kOperations = 80;

/// Operations of all kinds at random on some queues, with records, waits, queries and synchronisations between them, and what each of them
/// has to come after.
class RandomWork {
 public:
  explicit RandomWork(unsigned seed) : random_(seed) {
    for (auto& queue : queues_) queue = sim_.queue();
    for (auto& event : events_) event = sim_.event();
  }

  void submit_all() {
    for (std::uint64_t token = 1; token <= kOperations; ++token) {
      submit(token);
      if (pick(2) == 0) record();
      if (pick(2) == 0) wait();
      if (pick(8) == 0) queues_[pick(kQueues)]->query().value();
      if (pick(16) == 0) queues_[pick(kQueues)]->synchronize_blocking().value();
    }
    sim_.device->synchronize_blocking().value();
  }

  /// The position in which each operation ended.
  std::map<std::uint64_t, std::size_t> positions() const {
    std::map<std::uint64_t, std::size_t> positions;
    for (const hal::Completion& completion : sim_.sink.completions()) positions.emplace(completion.token, positions.size());
    return positions;
  }
  const std::vector<std::pair<std::uint64_t, std::uint64_t>>& dependencies() const { return dependencies_; }
  const KeepingSink& sink() const { return sim_.sink; }

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }

  void submit(std::uint64_t token) {
    const std::size_t queue = pick(kQueues);
    switch (pick(3)) {
      case 0: sim_.store(*queues_[queue], &place_, token, token); break;
      case 1: queues_[queue]->copy(target_.data(), source_.data(), 1 + pick(source_.size()), {.token = token}).value(); break;
      default: queues_[queue]->host_function(counting_function(counter_), {.token = token}).value(); break;
    }
    for (const std::uint64_t earlier : std::exchange(in_front_[queue], {token})) dependencies_.emplace_back(earlier, token);
  }
  void record() {
    const std::size_t queue = pick(kQueues), event = pick(kQueues);
    sim_.record(*queues_[queue], *events_[event]);
    captured_[event] = in_front_[queue];
  }
  void wait() {
    const std::size_t queue = pick(kQueues), event = pick(kQueues);
    queues_[queue]->wait(*events_[event]).value();
    in_front_[queue].insert(in_front_[queue].end(), captured_[event].begin(), captured_[event].end());
  }

  std::mt19937 random_;
  SimDeviceUnderTest sim_;
  std::array<std::unique_ptr<hal::Queue>, kQueues> queues_;
  std::array<std::unique_ptr<hal::Event>, kQueues> events_;
  std::array<std::vector<std::uint64_t>, kQueues> in_front_, captured_;  // what an operation, or a wait for the event, comes after
  std::vector<std::pair<std::uint64_t, std::uint64_t>> dependencies_;
  std::uint64_t place_ = 0, counter_ = 0;
  std::array<std::byte, 100'000> source_{}, target_{};
};

TEST(TimelinePropertyTest, NothingComesBeforeWhatItDependsOn) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto work = std::make_unique<RandomWork>(seed);
    work->submit_all();
    const auto positions = work->positions();
    ASSERT_EQ(positions.size(), kOperations) << "seed " << seed;
    std::map<std::uint64_t, hal::Ticks> ticks;
    for (const hal::Completion& completion : work->sink().completions()) ticks[completion.token] = completion.ticks;
    for (const auto& [earlier, later] : work->dependencies()) {
      EXPECT_LT(positions.at(earlier), positions.at(later)) << "seed " << seed << ": " << earlier << " and " << later;
      EXPECT_LE(ticks.at(earlier).end, ticks.at(later).start) << "seed " << seed << ": " << earlier << " and " << later;
    }
  }
}

TEST(TimelinePropertyTest, TheSameWorkHasTheSameTimes) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto first = std::make_unique<RandomWork>(seed), second = std::make_unique<RandomWork>(seed);
    first->submit_all();
    second->submit_all();
    const auto same = [](const hal::Completion& one, const hal::Completion& other) {
      return one.token == other.token && one.ticks.queued == other.ticks.queued && one.ticks.submit == other.ticks.submit &&
             one.ticks.start == other.ticks.start && one.ticks.end == other.ticks.end;
    };
    const auto of_first = first->sink().completions(), of_second = second->sink().completions();
    EXPECT_TRUE(std::equal(of_first.begin(), of_first.end(), of_second.begin(), of_second.end(), same)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace xpu::drivers::sim
