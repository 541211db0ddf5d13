#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/link/paged_index.hpp"
#include "xpu/profiler/activity.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// What programs called their operations, found by process and operation. One owner at a time.
class ExternalIds {
 public:
  explicit ExternalIds(std::size_t processes) : processes_(processes) {}

  void add(std::size_t process, const trace::ExternalCorrelationRecord& record);
  /// Of all that were added.
  std::uint64_t size() const noexcept { return size_; }
  /// Once, after everything was added.
  void sort();
  /// Those of an operation, in the order in which they were written; they stay where they are as long as this object lives. Empty for most.
  std::span<const ExternalId> find(std::size_t process, std::uint64_t operation) const noexcept;

 private:
  struct Writer {
    std::vector<std::uint64_t> counters;  // one per id, ascending once sorted
    std::vector<ExternalId> ids;
  };
  static void sort(Writer& writer);

  std::vector<PagedIndex<Writer, 4>> processes_;
  std::uint64_t size_ = 0;
};

}  // namespace xpu::profiler
