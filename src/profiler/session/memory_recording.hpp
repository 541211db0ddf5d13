#pragma once

#include <memory>
#include <string>

#include "xpu/base/result.hpp"

namespace xpu::base {
struct MemorySnapshotProvider;
}

namespace xpu::profiler {

/// What happens to this process's memory for a while, by whoever owns its allocators. When it ends they are as they were before.
class MemoryRecording {
 public:
  /// Error failed_precondition where nobody owns any (yet), or another one is under way.
  static Result<std::unique_ptr<MemoryRecording>> begin(bool with_stacks);
  ~MemoryRecording();
  MemoryRecording(const MemoryRecording&) = delete;
  MemoryRecording& operator=(const MemoryRecording&) = delete;

  /// Ends it and writes it down. Once. Errors: unavailable when the file cannot be written.
  Result<> write(const std::string& path);

 private:
  explicit MemoryRecording(const base::MemorySnapshotProvider& provider) : provider_(&provider) {}

  const base::MemorySnapshotProvider* provider_;  // null once it has ended
};

}  // namespace xpu::profiler
