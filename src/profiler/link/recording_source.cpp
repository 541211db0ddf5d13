#include "xpu/profiler/record_source.hpp"

namespace xpu::profiler {

const trace::Manifest& RecordingSource::manifest() const { return recording_.manifest(); }
const std::vector<trace::ProcessInfo>& RecordingSource::processes() const { return recording_.processes(); }
Result<> RecordingSource::for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const {
  return recording_.for_each_batch(kinds, visit);
}

}  // namespace xpu::profiler
