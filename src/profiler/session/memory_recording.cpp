#include "profiler/session/memory_recording.hpp"

#include <utility>

#include "base/memory_snapshot.hpp"

namespace xpu::profiler {

Result<std::unique_ptr<MemoryRecording>> MemoryRecording::begin(bool with_stacks) {
  const base::MemorySnapshotProvider* const provider = base::memory_snapshots();
  if (provider == nullptr) {
    return Error{
        ErrorCode::failed_precondition,
        "PROFILE_MEMORY asks for a snapshot of memory, but nothing in this process has allocators: libxpu's runtime was not used yet"};
  }
  XPU_TRY(provider->begin(with_stacks));
  return std::unique_ptr<MemoryRecording>(new MemoryRecording(*provider));
}

MemoryRecording::~MemoryRecording() {
  if (provider_ != nullptr) provider_->cancel();
}

Result<> MemoryRecording::write(const std::string& path) {
  if (provider_ == nullptr) return Error{ErrorCode::failed_precondition, "the recording of memory has ended"};
  return std::exchange(provider_, nullptr)->end(path);
}

}  // namespace xpu::profiler
