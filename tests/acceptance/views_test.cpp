#include <algorithm>
#include <atomic>
#include <barrier>
#include <ctime>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "tests/acceptance/support.hpp"
#include "xpu/annotate.h"
#include "xpu/trace/view/callback_subscriber.hpp"
#include "xpu/trace/view/next_record.hpp"

// V1 to V5: what a subscriber to views is told of real work, on every driver.

namespace xpu::acceptance {
namespace {

using namespace trace::view;

/// A subscriber with memory for its buffers, and everything that it was told.
class Views {
 public:
  explicit Views(std::initializer_list<ViewKind> kinds) {
    EXPECT_EQ(subscriber_.set_callbacks(
                  [](std::byte** buffer, std::size_t* bytes) {
                    *bytes = 32 << 10;
                    *buffer = reinterpret_cast<std::byte*>(new std::uint64_t[*bytes / 8]);
                  },
                  [this](std::byte* buffer, std::size_t, std::size_t used) {
                    take(buffer, used);
                    delete[] reinterpret_cast<std::uint64_t*>(buffer);
                  }),
              ResultCode::success);
    for (const ViewKind kind : kinds) EXPECT_EQ(subscriber_.enable(kind), ResultCode::success) << subscriber_.problem();
  }
  ViewSubscriber& operator*() { return subscriber_; }
  ViewSubscriber* operator->() { return &subscriber_; }

  template <typename View>
  std::vector<View> all(ViewKind kind) {
    const std::lock_guard lock(mutex_);
    std::vector<View> views;
    for (const std::vector<std::byte>& bytes : views_[kind]) views.push_back(*reinterpret_cast<const View*>(bytes.data()));
    return views;
  }

 private:
  void take(const std::byte* buffer, std::size_t used) {
    const std::lock_guard lock(mutex_);
    const ViewHeader* record = nullptr;
    while (next_record(buffer, used, &record) == ResultCode::success) {
      const auto* bytes = reinterpret_cast<const std::byte*>(record);
      views_[record->kind].emplace_back(bytes, bytes + view_bytes(record->kind));
    }
  }
  std::mutex mutex_;
  std::map<ViewKind, std::vector<std::vector<std::byte>>> views_;
  ViewSubscriber subscriber_;
};

/// Without a call that waits for it.
void wait_unnoticed(const Stream& stream) {
  ASSERT_TRUE(eventually([&] { return stream.query().value(); }));
}

TEST(V1_ViewsTest, EveryCommandHasItsViewInOrderWithoutAWaitByTheProgram) {
  constexpr int kRounds = 40;
  ASSERT_THAT(initialize(), Succeeds());
  const Kernel kernel = add_kernel();
  const Buffer firsts[2] = {zeros(256), zeros(256)}, seconds[2] = {zeros(256), zeros(256)};  // each stream its own
  const Stream streams[2] = {Stream::from_pool().value(), Stream::from_pool().value()};
  Views views({ViewKind::kernel, ViewKind::memory_copy, ViewKind::memory_fill, ViewKind::runtime_api});
  for (int round = 0; round < kRounds; ++round) {
    const Stream& stream = streams[round % 2];
    const Buffer &first = firsts[round % 2], &second = seconds[round % 2];
    ASSERT_THAT(stream.fill(values_of(first), 7, 256), Succeeds());
    ASSERT_THAT(stream.launch(kernel, {.global = {256, 1, 1}, .local = {64, 1, 1}}, values_of(first), 1), Succeeds());
    ASSERT_THAT(stream.copy(values_of(second), values_of(first), 1'024), Succeeds());
  }
  for (const Stream& stream : streams) wait_unnoticed(stream);
  ASSERT_EQ(views->flush(), ResultCode::success);

  const auto kernels = views.all<KernelView>(ViewKind::kernel);
  const auto copies = views.all<CopyView>(ViewKind::memory_copy);
  const auto fills = views.all<FillView>(ViewKind::memory_fill);
  ASSERT_EQ(kernels.size(), kRounds);
  ASSERT_EQ(copies.size(), kRounds);
  ASSERT_EQ(fills.size(), kRounds);
  for (const FillView& fill : fills) {
    EXPECT_EQ(fill.bytes, 1'024u);
    EXPECT_EQ(fill.value & 0xffff'ffff, 7u);
  }
  for (const CopyView& copy : copies) EXPECT_EQ(copy.bytes, 1'024u);

  // One queue runs one command at a time: as exactly as its device's clock is known, which on `sim` drifts against the host's.
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> by_queue;
  std::uint64_t error_ns = 0;
  const auto check_times = [&](const auto& view) {
    EXPECT_EQ(view.details.flags & (kViewUndescribed | kViewUnplaced | kViewUntimed), 0u);
    // 0 = unknown.
    EXPECT_TRUE(view.submit_ns == 0 || view.append_ns <= view.submit_ns);
    EXPECT_LE(view.submit_ns, view.start_ns);
    EXPECT_LE(view.start_ns, view.end_ns);
    error_ns = std::max(error_ns, view.details.clock_error_ns);
    by_queue[view.queue_id].emplace_back(view.start_ns, view.end_ns);
  };
  for (const KernelView& view : kernels) {
    EXPECT_STREQ(view.name, "acceptance_add");
    EXPECT_EQ(view.global_size[0], 256u);
    EXPECT_EQ(view.local_size[0], 64u);
    check_times(view);
  }
  for (const CopyView& view : copies) check_times(view);
  for (const FillView& view : fills) check_times(view);
  EXPECT_EQ(by_queue.size(), 2u);
  EXPECT_LE(error_ns, 100'000u);
  for (auto& [queue, times] : by_queue) {
    std::sort(times.begin(), times.end());
    for (std::size_t index = 1; index < times.size(); ++index) EXPECT_LE(times[index - 1].second, times[index].first + error_ns);
  }

  // The call of a kernel has its correlation.
  std::map<std::uint32_t, const char*> calls;
  const auto api_views = views.all<ApiView>(ViewKind::runtime_api);
  for (const ApiView& call : api_views) {
    EXPECT_LE(call.start_ns, call.end_ns);
    calls[call.correlation] = call.name;
  }
  for (const KernelView& view : kernels) {
    ASSERT_TRUE(calls.contains(view.correlation));
    EXPECT_STREQ(calls[view.correlation], "xpu::Stream::launch");
  }
}

TEST(V2_ViewsTest, CallbacksComeOnTheSubmittingThreadAndAtTheEnd) {
  constexpr int kRounds = 25;
  ASSERT_THAT(initialize(), Succeeds());
  const Kernel kernel = add_kernel();
  const Buffer buffer = zeros(64);
  const Stream stream = Stream::from_pool().value();
  Views views({ViewKind::kernel});
  std::atomic<int> enters = 0, exits = 0, dispatched = 0, completed = 0, waits = 0, elsewhere = 0;
  const std::thread::id submitter = std::this_thread::get_id();
  CallbackSubscriber callbacks(*views, [&](const CallbackEvent& event) {
    switch (event.domain) {
      case CallbackDomain::operation_appended:
        ++(event.phase == CallbackPhase::api_enter ? enters : exits);
        if (std::this_thread::get_id() != submitter) ++elsewhere;
        EXPECT_STREQ(event.operation->operation_details->name, "acceptance_add");
        EXPECT_NE(event.operation->queue_handle, nullptr);
        break;
      case CallbackDomain::operation_dispatched: ++dispatched; break;
      case CallbackDomain::operation_completed: ++completed; break;
      case CallbackDomain::host_synchronization: ++waits; break;
      default: ADD_FAILURE();
    }
  });
  for (const CallbackDomain domain : {CallbackDomain::operation_appended, CallbackDomain::operation_dispatched,
                                      CallbackDomain::operation_completed, CallbackDomain::host_synchronization}) {
    ASSERT_EQ(callbacks.enable(domain, true, true), ResultCode::success);
  }
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_THAT(stream.launch(kernel, {.global = {64, 1, 1}, .local = {64, 1, 1}}, values_of(buffer), 1), Succeeds());
  }
  ASSERT_THAT(stream.synchronize(), Succeeds());
  ASSERT_EQ(views->flush(), ResultCode::success);
  EXPECT_EQ(enters, kRounds);
  EXPECT_EQ(exits, kRounds);
  EXPECT_EQ(dispatched, kRounds);
  EXPECT_EQ(completed, kRounds);
  EXPECT_EQ(waits, 2) << "an enter and an exit";
  EXPECT_EQ(elsewhere, 0);
}

TEST(V3_ViewsTest, WaitsHaveTheirViews) {
  ASSERT_THAT(initialize(), Succeeds());
  const Stream stream = Stream::from_pool().value();
  const Buffer buffer = zeros(64);
  Views views({ViewKind::kernel, ViewKind::synchronization});
  Event event;
  ASSERT_THAT(stream.launch(add_kernel(), {.global = {64, 1, 1}, .local = {64, 1, 1}}, values_of(buffer), 1), Succeeds());
  ASSERT_THAT(event.record(stream), Succeeds());
  ASSERT_THAT(event.synchronize(), Succeeds());
  ASSERT_THAT(stream.synchronize(), Succeeds());
  ASSERT_EQ(views->flush(), ResultCode::success);
  std::vector<SynchronizationType> types;
  for (const SynchronizationView& wait : views.all<SynchronizationView>(ViewKind::synchronization)) {
    types.push_back(wait.type);
    EXPECT_EQ(wait.return_code, 0u);
    EXPECT_LE(wait.start_ns, wait.end_ns);
  }
  EXPECT_THAT(types, ::testing::ElementsAre(SynchronizationType::host_event, SynchronizationType::host_command_queue));
}

/// What a library of collectives does, between the threads of a program.
class SharedSum {
 public:
  static constexpr std::uint64_t kCommunicator = 0x5ca1e;
  explicit SharedSum(std::size_t ranks, std::size_t values) : sum_(values), arrived_(static_cast<std::ptrdiff_t>(ranks)) {}

  void all_reduce(std::vector<int>& values) {
    const std::uint64_t bytes = values.size() * sizeof(int);
    xpu_annotate_begin_communication("all_reduce", kCommunicator, bytes);
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t index = 0; index < values.size(); ++index) sum_[index] += values[index];
    }
    arrived_.arrive_and_wait();
    values = sum_;
    arrived_.arrive_and_wait();
    xpu_annotate_end_communication(bytes);
  }

 private:
  std::mutex mutex_;
  std::vector<int> sum_;
  std::barrier<> arrived_;
};

TEST(V4_ViewsTest, ACollectiveHasItsNameSizesAndCommunicator) {
  constexpr std::size_t kRanks = 3, kValues = 100;
  ASSERT_THAT(initialize(), Succeeds());
  Views views({ViewKind::communication});
  SharedSum library(kRanks, kValues);
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&library, rank] {
      std::vector<int> values(kValues, static_cast<int>(rank + 1));
      library.all_reduce(values);
      EXPECT_EQ(values, std::vector<int>(kValues, 6));
    });
  }
  for (std::thread& rank : ranks) rank.join();
  ASSERT_EQ(views->flush(), ResultCode::success);
  const auto told = views.all<CommunicationView>(ViewKind::communication);
  ASSERT_EQ(told.size(), kRanks);
  std::set<std::uint32_t> threads;
  std::uint64_t last_start_ns = 0, first_end_ns = UINT64_MAX;
  for (const CommunicationView& view : told) {
    EXPECT_STREQ(view.name, "all_reduce");
    EXPECT_EQ(view.communicator, SharedSum::kCommunicator);
    EXPECT_EQ(view.send_bytes, kValues * sizeof(int));
    EXPECT_EQ(view.receive_bytes, kValues * sizeof(int));
    threads.insert(view.thread);
    last_start_ns = std::max(last_start_ns, view.start_ns);
    first_end_ns = std::min(first_end_ns, view.end_ns);
  }
  EXPECT_EQ(threads.size(), kRanks);
  EXPECT_LE(last_start_ns, first_end_ns) << "none ended before all had come";
}

std::uint64_t own_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

TEST(V5_ViewsTest, OverheadExplainsByWhatRecordingSlowsAProgramDown) {
  constexpr int kLaunches = 640;
  ASSERT_THAT(initialize(), Succeeds());
  const Kernel kernel = add_kernel();
  const Buffer buffer = zeros(64);
  const Stream stream = Stream::from_pool().value();
  const auto launch_all = [&] {
    const std::uint64_t begin_ns = own_cpu_ns();
    for (int launch = 0; launch < kLaunches; ++launch) {
      EXPECT_THAT(stream.launch(kernel, {.global = {64, 1, 1}, .local = {64, 1, 1}}, values_of(buffer), 1), Succeeds());
    }
    const std::uint64_t took_ns = own_cpu_ns() - begin_ns;
    EXPECT_THAT(stream.synchronize(), Succeeds());
    return took_ns;
  };
  launch_all();
  const std::uint64_t alone_ns = launch_all();
  Views views({ViewKind::kernel, ViewKind::overhead});
  // A tool that takes its time.
  CallbackSubscriber callbacks(*views, [](const CallbackEvent&) {
    const std::uint64_t begin_ns = own_cpu_ns();
    while (own_cpu_ns() - begin_ns < 100'000) {
    }
  });
  ASSERT_EQ(callbacks.enable(CallbackDomain::operation_appended, true, false), ResultCode::success);
  const std::uint64_t watched_ns = launch_all();
  ASSERT_EQ(callbacks.disable(CallbackDomain::operation_appended), ResultCode::success);
  ASSERT_EQ(views->flush(), ResultCode::success);
  std::uint64_t explained_ns = 0;
  for (const OverheadView& view : views.all<OverheadView>(ViewKind::overhead)) explained_ns += view.duration_ns;
  EXPECT_GE(explained_ns, (watched_ns - alone_ns) / 10 * 9);
}

TEST(V5_ViewsTest, OverheadIsOfEveryKind) {
  ASSERT_THAT(initialize(), Succeeds());
  const Kernel kernel = add_kernel();
  const Buffer buffer = zeros(64);
  const Stream stream = Stream::from_pool().value();
  Views views({ViewKind::kernel, ViewKind::overhead, ViewKind::runtime_api});
  std::set<OverheadKind> kinds;
  // Memory is taken anew, and what is handed over in one round is much, sooner or later.
  ASSERT_TRUE(eventually([&] {
    for (int launch = 0; launch < 2'000; ++launch) {
      EXPECT_THAT(stream.launch(kernel, {.global = {64, 1, 1}, .local = {64, 1, 1}}, values_of(buffer), 1), Succeeds());
    }
    EXPECT_EQ(views->flush(), ResultCode::success);
    for (const OverheadView& view : views.all<OverheadView>(ViewKind::overhead)) {
      kinds.insert(view.overhead_kind);
      EXPECT_LE(view.start_ns, view.end_ns);
    }
    return kinds.size() == 4;
  }));
  EXPECT_EQ(kinds, (std::set{OverheadKind::time, OverheadKind::resource, OverheadKind::buffer_flush, OverheadKind::driver}));
}

}  // namespace
}  // namespace xpu::acceptance
