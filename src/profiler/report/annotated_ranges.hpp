#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "xpu/profiler/activity.hpp"

namespace xpu::profiler {

/// Where what happened in no range is counted.
inline constexpr const char* kNoRange = "(no range)";

struct AnnotatedRange {
  std::int64_t begin_ns, end_ns;  ///< The latest there is where the end is not known.
  const NameDefinition* name;
  bool is_closed;
};

/// The ranges in which each thread said it was.
class AnnotatedRanges {
 public:
  /// Marks, counters and ranges without a name are passed over.
  void add(const AnnotationActivity& activity);
  bool is_empty() const noexcept { return by_thread_.empty(); }
  /// By their begin; of two that begin together the outer one first. After the last `add`.
  const std::vector<AnnotatedRange>& of(const ThreadDefinition* thread);
  std::vector<const ThreadDefinition*> threads() const;

 private:
  struct Ranges {
    std::vector<AnnotatedRange> ranges;
    bool is_sorted = false;
  };
  std::map<const ThreadDefinition*, Ranges> by_thread_;
  const std::vector<AnnotatedRange> none_;
};

/// A walk along the ranges of one thread.
class OpenRanges {
 public:
  /// `ranges`: of `AnnotatedRanges::of`; must outlive the walk.
  explicit OpenRanges(const std::vector<AnnotatedRange>& ranges) : ranges_(&ranges) {}
  /// Those that are open then, the innermost last. Times must not decrease from call to call.
  const std::vector<const AnnotatedRange*>& at(std::int64_t time_ns);

 private:
  const std::vector<AnnotatedRange>* ranges_;
  std::vector<const AnnotatedRange*> open_;
  std::size_t next_ = 0;
};

}  // namespace xpu::profiler
