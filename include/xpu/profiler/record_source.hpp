#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// Where the profiler gets records from. One owner at a time.
class XPU_EXPORT RecordSource {
 public:
  using Visitor = trace::Recording::Visitor;

  virtual ~RecordSource();
  virtual const trace::Manifest& manifest() const = 0;
  virtual const std::vector<trace::ProcessInfo>& processes() const = 0;
  /// Hands over every record of these kinds, others may come along; the rules are those of `trace::Recording::for_each_batch`. May be
  /// called any number of times and gives the same records each time.
  virtual Result<> for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const = 0;
};

/// The records of an opened recording, which must outlive it.
class XPU_EXPORT RecordingSource final : public RecordSource {
 public:
  explicit RecordingSource(const trace::Recording& recording) : recording_(recording) {}
  const trace::Manifest& manifest() const override;
  const std::vector<trace::ProcessInfo>& processes() const override;
  Result<> for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const override;

 private:
  const trace::Recording& recording_;
};

}  // namespace xpu::profiler
