// Linking many asynchronous kernels of several threads, whose buffers come in any order.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "base/probe.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/profiler/activity_api.hpp"
#include "xpu/profiler/linker.hpp"

namespace xpu::profiler {
namespace {

using test_support::TestPublisher;

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kLaunchesPerThread = 250'000;
#else
constexpr std::uint64_t kLaunchesPerThread = 25'000;
#endif
constexpr std::uint64_t kThreads = 4;

/// The buffers of an ActivityApi in another order.
class ShuffledSource final : public RecordSource {
 public:
  ShuffledSource(const ActivityApi& api, unsigned seed) : api_(api), buffers_(api.buffers()) {
    std::shuffle(buffers_.begin(), buffers_.end(), std::mt19937(seed));
  }
  std::size_t size() const { return buffers_.size(); }
  const trace::Manifest& manifest() const override { return api_.manifest(); }
  const std::vector<trace::ProcessInfo>& processes() const override { return api_.processes(); }
  Result<> for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const override {
    for (const ActivityBuffer& buffer : buffers_) visit(0, buffer.records());
    static_cast<void>(kinds);
    return {};
  }

 private:
  const ActivityApi& api_;
  std::vector<ActivityBuffer> buffers_;
};

/// Every kernel carries the number of its launch: the thread's in the upper half. That its own link is the right one is seen by the length
/// of the kernel, which the launch chose.
class LinkCheckingSink final : public Sink {
 public:
  void handle_external_correlation_activity(const ExternalCorrelationActivity& activity) override { last_external_ = activity; }
  void handle_kernel_activity(const KernelActivity& activity) override {
    ++kernels;
    const bool right = activity.call != nullptr && activity.external_ids.size() == 1 &&
                       activity.call->external_ids.data() == activity.external_ids.data() &&
                       last_external_.correlation == activity.correlation && last_external_.external == activity.external_ids[0] &&
                       activity.duration_ns == 1'000 + activity.external_ids[0].id % 9'973;
    right_links += right ? 1 : 0;
  }
  std::uint64_t kernels = 0, right_links = 0;

 private:
  ExternalCorrelationActivity last_external_;
};

TEST(LinkingTest, EveryAsynchronousKernelIsLinkedToItsOperationWhateverTheOrderOfBuffers) {
  TestPublisher& publisher = TestPublisher::instance();
  ActivityApi api;
  ASSERT_TRUE(api.enable(default_activity_kinds(), false, std::uint64_t{1} << 30));
  std::vector<std::vector<TestPublisher::Launched>> launched(kThreads);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      launched[thread].reserve(kLaunchesPerThread);
      for (std::uint64_t index = 0; index < kLaunchesPerThread; ++index) {
        ActivityApi::push_correlation_id(CorrelationFamily::custom_0, thread << 32 | index);
        launched[thread].push_back(publisher.launch());
        ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
      }
      // The device is far behind: another thread's work ends here.
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::thread device([&] {
    for (std::uint64_t index = 0; index < kLaunchesPerThread; ++index) {
      for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
        publisher.complete(launched[thread][index], 1'000 + (thread << 32 | index) % 9'973);
      }
    }
  });
  device.join();
  api.disable();
  EXPECT_EQ(api.unfinished(), 0u);
  for (const unsigned seed : {1u, 2u}) {
    const ShuffledSource source(api, seed);
    EXPECT_GT(source.size(), 8u);
    LinkCheckingSink sink;
    const Result<LinkSummary> summary = Linker(source).run(sink);
    ASSERT_TRUE(summary);
    EXPECT_EQ(summary->commands, kThreads * kLaunchesPerThread);
    EXPECT_EQ(summary->linked, kThreads * kLaunchesPerThread);
    EXPECT_EQ(summary->orphans + summary->pending + summary->lost + summary->duplicates, 0u);
    EXPECT_EQ(sink.kernels, kThreads * kLaunchesPerThread);
    EXPECT_EQ(sink.right_links, sink.kernels);
  }
}

}  // namespace
}  // namespace xpu::profiler
