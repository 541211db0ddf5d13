#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/activity_kind.hpp"
#include "xpu/profiler/cpu_trace.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// Joins records into activities: by operation id, never by the order in which they lie in buffers, so that any order of batches gives the
/// same.
///
/// Two passes. The first reads descriptions, clock readings and completions and keeps the completions (56 bytes each, found by writer and
/// counter, no hashing), because a command ends long after its call was written. The second reads the calls and hands each over together
/// with its command. Memory grows with completions and copies only. One owner at a time.
class XPU_EXPORT Linker {
 public:
  /// `source` must outlive it.
  explicit Linker(const RecordSource& source);
  ~Linker();
  Linker(Linker&&) noexcept;
  Linker& operator=(Linker&&) noexcept;

  /// What a framework recorded of itself, in the source's first process; before `run`, and it must outlive the linker. Only operations of
  /// these kinds are handed out. `window_end_ns`: where those end that had not ended.
  void set_cpu_traces(std::span<const CpuTrace> traces, ActivityKinds kinds, std::int64_t window_end_ns);

  /// Reads the source and hands everything to `sink`, `begin` and `end` included. Once per linker. Errors: those of the source, and what
  /// `sink.end` returns.
  Result<LinkSummary> run(Sink& sink);

  /// Everything that activities point to. Lives as long as the linker.
  const Definitions& definitions() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::profiler
