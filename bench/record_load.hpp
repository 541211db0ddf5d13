#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "xpu/profiler/record_source.hpp"

namespace xpu::bench {

/// Records in memory as a recorder would have left them: one process with one thread and one in-order queue that does one step after the
/// other, a range around a launch of one of 20 kernels or, every fourth time, a copy. A third each of ranges, calls and commands: the
/// mixture that sizes of trace formats are given for.
class RecordLoad final : public profiler::RecordSource {
 public:
  explicit RecordLoad(std::uint64_t steps);

  /// The range, the call, the command, and what the queue did for the range.
  static constexpr std::uint64_t kSlicesOfStep = 4;
  /// Besides descriptions.
  std::uint64_t records() const noexcept { return records_; }

  const trace::Manifest& manifest() const override { return manifest_; }
  const std::vector<trace::ProcessInfo>& processes() const override { return processes_; }
  Result<> for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const override;

 private:
  struct Batch {
    trace::RecordKind kind;
    std::vector<std::uint64_t> words;  // aligned as records are
  };
  /// Goes to the batch of its kind that is being filled.
  template <typename Record>
  void add(trace::RecordKind kind, Record record, std::string_view text = {});
  std::uint32_t add_string(std::string_view text);
  void describe();
  void add_step(std::uint64_t step);

  trace::Manifest manifest_;
  std::vector<trace::ProcessInfo> processes_;
  std::vector<Batch> batches_;
  std::map<trace::RecordKind, std::size_t> open_;  // index of the batch that is being filled
  std::uint64_t records_ = 0;
  std::uint32_t strings_ = 0, launch_api_ = 0, copy_api_ = 0, range_name_ = 0;
};

}  // namespace xpu::bench
