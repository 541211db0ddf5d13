// Sessions that are about some commands: what nobody wants is not recorded and counted, what only others want is left out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/probe.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::TestPublisher;
using testing::Each;
using testing::HasSubstr;

class SessionFilterTest : public testing::Test {
 protected:
  SessionFilterTest() : publisher_(TestPublisher::instance()) {
    static const probe::Id gemm = publisher_.add_kernel("gemm_f32"), relu = publisher_.add_kernel("relu"),
                           second_queue = publisher_.add_queue();
    gemm_ = gemm;
    relu_ = relu;
    second_queue_ = second_queue;
  }
  ~SessionFilterTest() override { EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still"; }

  static Config about(const char* kernels) {
    Config config;
    config.filter.kernels = kernels;
    return config;
  }
  void run(probe::Id kernel, int launches, std::uint64_t duration_ns = 1'000) {
    for (int launch = 0; launch < launches; ++launch) publisher_.complete(publisher_.launch_on(publisher_.queue(), kernel), duration_ns);
  }
  struct Seen {
    std::vector<std::string> kernels;
    std::size_t copies, calls, numbers;
    std::uint64_t filtered, left_out;
  };
  /// And the books must balance.
  static Seen seen(Session& session) {
    CollectingSink sink;
    const Result<LinkSummary> summary = session.run({&sink});
    EXPECT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(summary->left_out, sink.summary->left_out);
    Seen seen{{}, sink.copies.size(), sink.calls.size(), sink.external.size(), summary->filtered, summary->left_out};
    for (const auto& kernel : sink.kernels) {
      seen.kernels.push_back(kernel.kernel->name);
      EXPECT_TRUE(kernel.has_call);
    }
    const Result<Report> report = make_report(session, {});
    EXPECT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->conservation.unexplained, 0);
    EXPECT_EQ(report->conservation.filtered, seen.filtered);
    EXPECT_EQ(report->conservation.left_out, seen.left_out);
    EXPECT_EQ(report->conservation.submitted, seen.kernels.size() + seen.copies + seen.left_out);
    return seen;
  }

  TestPublisher& publisher_;
  probe::Id gemm_ = 0, relu_ = 0, second_queue_ = 0;
};

TEST_F(SessionFilterTest, KernelsThatNobodyWantsAreCountedAndNotRecorded) {
  Session session(about("^gemm"));
  ASSERT_TRUE(session.start());
  run(gemm_, 3);
  run(relu_, 5);
  publisher_.complete(publisher_.copy(64));
  // One that is made while the session is under way.
  const probe::Id late = publisher_.add_kernel("late");
  run(late, 7);
  ASSERT_TRUE(session.stop());
  const Seen all = seen(session);
  EXPECT_EQ(all.kernels.size(), 3u);
  EXPECT_THAT(all.kernels, Each("gemm_f32"));
  EXPECT_EQ(all.copies, 1u) << "what is no kernel is not asked for its name";
  EXPECT_EQ(all.calls, 4u);
  EXPECT_EQ(all.filtered, 12u);
  EXPECT_EQ(all.left_out, 0u) << "they were not even recorded";
}

TEST_F(SessionFilterTest, EachOfTwoSessionsSeesItsOwn) {
  Session first(about("gemm")), second(about("relu"));
  ASSERT_TRUE(first.start());
  ASSERT_TRUE(second.start());
  run(gemm_, 3);
  run(relu_, 5);
  run(publisher_.kernel(), 2);
  ASSERT_TRUE(first.stop());
  ASSERT_TRUE(second.stop());
  const Seen of_first = seen(first), of_second = seen(second);
  EXPECT_THAT(of_first.kernels, Each("gemm_f32"));
  EXPECT_EQ(of_first.kernels.size(), 3u);
  EXPECT_EQ(of_first.calls, 3u) << "the calls of the others are not shown either";
  EXPECT_EQ(of_first.left_out, 5u);
  EXPECT_EQ(of_first.filtered, 2u) << "what neither wants";
  EXPECT_THAT(of_second.kernels, Each("relu"));
  EXPECT_EQ(of_second.kernels.size(), 5u);
  EXPECT_EQ(of_second.left_out, 3u);
  EXPECT_EQ(of_second.filtered, 2u);
}

TEST_F(SessionFilterTest, ASessionWithoutAFilterSeesEverythingBesideOneWithIt) {
  Session narrow(about("gemm"));
  ASSERT_TRUE(narrow.start());
  run(relu_, 4);
  {
    Session wide(Config{});
    ASSERT_TRUE(wide.start());
    run(gemm_, 1);
    run(relu_, 2);
    ASSERT_TRUE(wide.stop());
    const Seen of_wide = seen(wide);
    EXPECT_EQ(of_wide.kernels.size(), 3u);
    EXPECT_EQ(of_wide.filtered + of_wide.left_out, 0u);
  }
  run(relu_, 8);
  ASSERT_TRUE(narrow.stop());
  const Seen of_narrow = seen(narrow);
  EXPECT_EQ(of_narrow.kernels.size(), 1u);
  EXPECT_EQ(of_narrow.left_out, 2u);
  EXPECT_EQ(of_narrow.filtered, 12u);
  Session after(Config{});
  ASSERT_TRUE(after.start());
  run(relu_, 1);
  ASSERT_TRUE(after.stop());
  EXPECT_EQ(seen(after).kernels.size(), 1u) << "the filter ended with its session";
}

TEST_F(SessionFilterTest, WhatIsShorterIsLeftOutTogetherWithItsCallAndItsNumbers) {
  Config config;
  config.filter.least_duration = std::chrono::nanoseconds(1'000);
  Session session(config);
  ASSERT_TRUE(session.start());
  ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 5);
  run(gemm_, 2, 999);
  run(gemm_, 3, 1'000);
  ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
  publisher_.call("testQuery");
  const TestPublisher::Launched pending = publisher_.launch_on(publisher_.queue(), gemm_);
  ASSERT_TRUE(session.stop());
  ASSERT_TRUE(session.collect(std::chrono::milliseconds(1)));
  const Seen all = seen(session);
  publisher_.complete(pending);
  EXPECT_EQ(all.kernels.size(), 4u) << "how long the pending one takes nobody knows";
  EXPECT_EQ(all.calls, 5u);
  EXPECT_EQ(all.numbers, 3u);
  EXPECT_EQ(all.left_out, 2u);
  EXPECT_EQ(all.filtered, 0u) << "it was recorded: before its end nobody knew";
}

TEST_F(SessionFilterTest, QueuesAreWantedByTheirNumbers) {
  Config config;
  config.filter.queues = {second_queue_};
  Session session(config);
  ASSERT_TRUE(session.start());
  run(gemm_, 3);
  publisher_.complete(publisher_.copy(64));
  for (int launch = 0; launch < 2; ++launch) publisher_.complete(publisher_.launch_on(second_queue_, relu_));
  ASSERT_TRUE(session.stop());
  const Seen all = seen(session);
  EXPECT_EQ(all.kernels.size(), 2u);
  EXPECT_EQ(all.copies, 0u);
  EXPECT_EQ(all.filtered, 4u);
  EXPECT_EQ(all.left_out, 0u);
}

TEST_F(SessionFilterTest, NameQueueAndDurationTogetherMustAllMatchWithinOneSession) {
  Config first_config = about("gemm");
  first_config.filter.queues = {second_queue_};
  Session first(first_config), second(about("relu"));
  ASSERT_TRUE(first.start());
  ASSERT_TRUE(second.start());
  run(gemm_, 1);  // the first wants the kernel, and the second the queue: recorded for nobody
  run(relu_, 1);
  publisher_.complete(publisher_.launch_on(second_queue_, gemm_));
  ASSERT_TRUE(first.stop());
  ASSERT_TRUE(second.stop());
  const Seen of_first = seen(first), of_second = seen(second);
  EXPECT_EQ(of_first.kernels.size(), 1u);
  EXPECT_EQ(of_first.left_out, 2u);
  EXPECT_EQ(of_second.kernels.size(), 1u);
  EXPECT_EQ(of_second.left_out, 2u);
}

TEST_F(SessionFilterTest, AnExpressionThatIsNoneIsRefusedAndNobodyListens) {
  Session session(about("gemm["));
  const Result<> refused = session.start();
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("'gemm[' is not a regular expression"));
  EXPECT_EQ(probe::subscriber(), nullptr);
}

}  // namespace
}  // namespace xpu::profiler
