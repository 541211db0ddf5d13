#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/activity_filter.hpp"
#include "xpu/profiler/activity_kind.hpp"
#include "xpu/profiler/external_id.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/trace/live_capture.hpp"

namespace xpu::profiler {

class UnfinishedOperations;

/// Raw records as the tracer hands them over: of one thread, in the order of writing. Whoever links them may take buffers in any order.
using ActivityBuffer = trace::RecordBuffer;

/// The profiler's one way to the tracer: what happens in this process from `enable` to `disable`, as a source of records that can be read
/// as often as wanted. Several may be enabled at a time; each sees everything of its own time.
///
/// `pause`, `resume` and the two stacks are for any thread at any time; the rest has one owner.
class XPU_EXPORT ActivityApi final : public RecordSource {
 public:
  ActivityApi();
  ~ActivityApi() override;

  /// Begins to record what these kinds are made of. `with_memory`: allocations as well. `max_bytes`: memory that records may take until
  /// `disable`; what comes then is dropped and counted. `filter`: what no session wants is not recorded, what another one wants comes
  /// along. Errors: invalid_argument for an expression that is none; failed_precondition when it is enabled, or as `LiveCapture::begin`
  /// answers for this process; unavailable, out_of_host_memory.
  Result<> enable(ActivityKinds kinds, bool with_memory, std::uint64_t max_bytes, const ActivityFilter& filter = {});
  /// Whether what begins now is recorded. What began before is followed to its end. Neither waits for anything; both do nothing when it is
  /// not enabled, or is already so.
  void pause() noexcept;
  void resume() noexcept;
  bool is_enabled() const noexcept { return capture_ != nullptr; }
  /// Gives the memory of what was recorded until now back, but for what describes things. What is recorded goes on as before.
  void drop_recorded();
  /// What was recorded until now is no part of it: what began before, and ends later, counts nowhere.
  void discard();
  /// `pause`, for good: when that was is a record, so that what ends later is told apart.
  void stop();
  /// Fetches everything that has ended by now, without a wait for what has not.
  void flush();
  /// The same for what was told already: no publisher is asked.
  void fetch();
  /// Hands what was fetched over and keeps nothing of it, but for what `unfinished` says. Nothing is read from here afterwards.
  std::vector<ActivityBuffer> take_fetched() noexcept;
  /// Every text that records of now refer to, and the process.
  ActivityBuffer texts() const;
  /// Operations among what was fetched whose end is not.
  std::uint64_t unfinished() const noexcept;
  /// `flush`, and then nothing more is recorded. Nothing to do when it is not enabled.
  void disable();

  /// Drops everything; after `disable`.
  void forget() noexcept;

  /// Where nothing is taken away.
  const std::vector<ActivityBuffer>& buffers() const noexcept { return buffers_; }
  std::uint64_t recorded_bytes() const noexcept;

  /// What this thread submits from now on carries `id`, until it is popped, or covered by another push of the family. Recorded or not, so
  /// that pushes and pops stay in pairs whatever is toggled between them. False for a number that is no family, and without memory.
  static bool push_correlation_id(CorrelationFamily family, std::uint64_t id) noexcept;
  /// What was pushed last; nothing when this thread's stack of the family is empty.
  static std::optional<std::uint64_t> pop_correlation_id(CorrelationFamily family) noexcept;

  const trace::Manifest& manifest() const override { return manifest_; }
  const std::vector<trace::ProcessInfo>& processes() const override { return processes_; }
  Result<> for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const override;

 private:
  void count(const ActivityBuffer& buffer);

  std::unique_ptr<trace::LiveCapture> capture_;
  trace::Manifest manifest_;
  std::vector<trace::ProcessInfo> processes_;
  std::vector<ActivityBuffer> buffers_;
  std::optional<ActivityBuffer> texts_;
  std::unique_ptr<UnfinishedOperations> unfinished_;
};

}  // namespace xpu::profiler
