// Records that are handed over in rounds must come to what they come to at once, wherever the rounds are cut.

#include "profiler/link/stream_linker.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "profiler/test_support/described_sink.hpp"
#include "profiler/test_support/written_program.hpp"
#include "xpu/profiler/linker.hpp"

namespace xpu::profiler {
namespace {

using test_support::DescribedSink;
using test_support::WrittenProgram;
using testing::IsEmpty;

/// A program of three threads that submit, one that completes, two queues in order, one out of order and one of a device whose clock has to
/// be mapped.
WrittenProgram random_program(std::uint32_t seed, std::size_t steps) {
  WrittenProgram program;
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (std::size_t step = 0; step < steps; ++step) {
    program.let_time_pass(1 + below(300));
    const std::uint32_t writer = 1 + below(WrittenProgram::kSubmitters);
    const std::uint32_t queue = 1 + below(WrittenProgram::kQueues);
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
      case 3: program.submit(writer, queue); break;
      case 4: program.submit(writer, queue, {.bytes = 1 + below(1'000)}); break;
      case 5: program.submit(writer, queue, {.external_ids = 1 + below(2)}); break;
      case 6: program.submit(writer, queue, {.is_refused = true}); break;
      case 7:
      case 8:
      case 9:
      case 10: program.complete(queue, below(8)); break;
      case 11:
        if (below(10) == 0) program.lose_completion(queue);
        break;
      case 12: program.call(writer, below(4) == 0); break;
      case 13: program.wait(writer, queue); break;
      case 14: program.use_memory(writer); break;
      case 15: program.begin_range(writer); break;
      case 16: program.end_range(writer); break;
      case 17: program.mark(writer); break;
      case 18: program.lose(writer, queue); break;
      default:
        program.read_clock();
        if (below(4) == 0) program.complete_foreign(queue);
    }
  }
  return program;
}

struct Outcome {
  DescribedSink sink;
  LinkSummary summary;
  trace::Conservation books;
};

Outcome link_at_once(const WrittenProgram& program) {
  Outcome outcome;
  const auto source = program.source();
  outcome.summary = Linker(*source).run(outcome.sink).value();
  const trace::ReadBatches read = [&](std::span<const trace::RecordKind> kinds, const RecordSource::Visitor& visit) {
    return source->for_each_batch(kinds, visit);
  };
  outcome.books = trace::check_conservation_of_part(source->processes(), read).value();
  return outcome;
}

Outcome link_in_rounds(const WrittenProgram& program, std::uint32_t seed, std::size_t longest_interval,
                       std::uint64_t* most_carried = nullptr) {
  Outcome outcome;
  std::mt19937 random(seed);
  WrittenProgram::Taking taking(program, seed);
  const auto source = program.source();
  StreamLinker linker(*source);
  const trace::RecordBuffer texts = program.texts();
  while (!taking.has_taken_all()) {
    taking.let_pass(random() % longest_interval);
    const auto settled = taking.take(), young = taking.take();
    EXPECT_TRUE(linker.advance({texts, settled, young}, outcome.sink));
    if (most_carried != nullptr) *most_carried = std::max(*most_carried, linker.carried().bytes);
  }
  outcome.summary = linker.finish({texts, {}, {}}, outcome.sink).value();
  outcome.books = linker.close_books();
  return outcome;
}

std::vector<std::uint64_t> figures(const LinkSummary& summary) {
  return {summary.commands, summary.refused, summary.linked,  summary.untimed,   summary.unplaced,
          summary.pending,  summary.lost,    summary.orphans, summary.duplicates};
}
std::vector<std::uint64_t> figures(const trace::QueueBooks& books) {
  return {books.queue,   books.submitted, books.recorded, books.lost,
          books.pending, books.untimed,   books.failed,   static_cast<std::uint64_t>(books.unexplained)};
}
std::vector<std::vector<std::uint64_t>> figures(const trace::Conservation& books) {
  std::vector<std::vector<std::uint64_t>> all = {
      figures(books.total), {books.refused_calls, books.other_records_lost, books.filtered, books.lost_before_any_chunk}};
  for (const trace::QueueBooks& queue : books.queues) all.push_back(figures(queue));
  for (const trace::LossSummary& loss : books.losses) all.push_back({loss.queue, loss.cause, loss.count});
  for (const trace::PendingOperation& pending : books.pending) all.push_back({pending.queue, pending.operation, pending.enter_ns});
  return all;
}

/// Lines that only one of the two has.
std::vector<std::string> differences(DescribedSink& one, DescribedSink& other) {
  const std::vector<std::string> left = one.sorted(), right = other.sorted();
  std::vector<std::string> found;
  std::set_symmetric_difference(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(found));
  return found;
}

TEST(StreamLinkerTest, RoundsComeToWhatAllRecordsAtOnceComeTo) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const WrittenProgram program = random_program(seed, 400);
    Outcome at_once = link_at_once(program);
    ASSERT_GT(at_once.summary.linked, 20u);
    for (const std::size_t longest_interval : {3u, 40u, 1'000u}) {
      Outcome in_rounds = link_in_rounds(program, seed, longest_interval);
      EXPECT_THAT(differences(in_rounds.sink, at_once.sink), IsEmpty()) << "seed " << seed << ", interval " << longest_interval;
      EXPECT_THAT(in_rounds.sink.problems(), IsEmpty());
      EXPECT_EQ(figures(in_rounds.summary), figures(at_once.summary)) << seed;
      EXPECT_EQ(figures(in_rounds.books), figures(at_once.books)) << seed;
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(StreamLinkerTest, APlaceThatWasMappedIsWithinBothBounds) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const WrittenProgram program = random_program(seed, 400);
    const auto at_once = link_at_once(program).sink.mapped(), in_rounds = link_in_rounds(program, seed, 30).sink.mapped();
    ASSERT_EQ(in_rounds.size(), at_once.size());
    for (const auto& [call, place] : at_once) {
      ASSERT_TRUE(in_rounds.contains(call));
      const auto& other = in_rounds.at(call);
      EXPECT_LE(std::abs(other.start_ns - place.start_ns), static_cast<std::int64_t>(other.error_ns + place.error_ns)) << seed;
    }
  }
}

TEST(StreamLinkerTest, ACommandThatRunsThroughManyRoundsIsCarriedAsACopy) {
  WrittenProgram program;
  program.submit(1, 1, {.bytes = 77, .external_ids = 2});
  program.begin_range(2);
  for (int other = 0; other < 1'000; ++other) {
    program.let_time_pass(100);
    program.submit(1, 2);
    program.complete(2, 0);
  }
  program.end_range(2);
  program.complete(1, 0);
  std::uint64_t most_carried = 0;
  Outcome in_rounds = link_in_rounds(program, 1, 20, &most_carried), at_once = link_at_once(program);
  EXPECT_THAT(differences(in_rounds.sink, at_once.sink), IsEmpty());
  constexpr std::uint64_t kLongCommandBytes = 64 + 64 + 2 * 32;  // a submission, a copy detail and two numbers
  EXPECT_GE(most_carried, kLongCommandBytes);
  EXPECT_LE(most_carried, kLongCommandBytes + 4'096) << "beside it only what was under way where a round was cut";
}

TEST(StreamLinkerTest, LostCompletionsAreNotCarriedForEver) {
  WrittenProgram program;
  for (int command = 0; command < 5'000; ++command) {
    program.let_time_pass(100);
    program.submit(1, 1);
    if (command % 2 == 0) {
      program.complete(1, 0);
    } else {
      program.lose_completion(1);
    }
  }
  std::uint64_t most_carried = 0;
  Outcome in_rounds = link_in_rounds(program, 1, 40, &most_carried), at_once = link_at_once(program);
  EXPECT_EQ(in_rounds.summary.lost, 2'500u);
  EXPECT_EQ(figures(in_rounds.books), figures(at_once.books));
  EXPECT_THAT(differences(in_rounds.sink, at_once.sink), IsEmpty());
  EXPECT_LE(most_carried, 10u << 10);
}

TEST(StreamLinkerTest, ReadingsOfAClockAreThinnedOut) {
  WrittenProgram program;
  for (int command = 0; command < 5'000; ++command) {
    program.let_time_pass(100'000);
    program.submit(1, WrittenProgram::kMappedQueue);
    program.complete(WrittenProgram::kMappedQueue, 0);
    program.read_clock();
  }
  Outcome in_rounds = link_in_rounds(program, 1, 100), at_once = link_at_once(program);
  EXPECT_EQ(in_rounds.sink.clock_readings(), at_once.sink.clock_readings()) << "all are counted";
  for (const auto& [call, place] : at_once.sink.mapped()) {
    const auto other = in_rounds.sink.mapped().at(call);
    ASSERT_LE(std::abs(other.start_ns - place.start_ns), static_cast<std::int64_t>(other.error_ns + place.error_ns));
    ASSERT_LE(other.error_ns, place.error_ns + 100);
  }
}

}  // namespace
}  // namespace xpu::profiler
