#pragma once

#include <cstdint>

#include "profiler/link/stream_linker.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/activity_api.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {

/// The rounds of a session that is handed over while it goes on: what came since the last one goes to the linker and is let go. One owner
/// at a time.
class SessionStream {
 public:
  /// `api` must outlive it.
  explicit SessionStream(ActivityApi& api) : api_(api), linker_(api) {}

  Result<> advance(Sink& sink);
  /// After the collection has ended; once.
  Result<LinkSummary> finish(Sink& sink);
  Result<trace::Conservation> take_books();

  StreamCounts counts() const noexcept;
  const Definitions& definitions() const noexcept { return linker_.definitions(); }

 private:
  enum class State : std::uint8_t { goes_on, has_books, ended };
  void count(const std::vector<ActivityBuffer>& settled, const std::vector<ActivityBuffer>& young);

  ActivityApi& api_;
  StreamLinker linker_;
  StreamCounts counts_;
  State state_ = State::goes_on;
};

}  // namespace xpu::profiler
