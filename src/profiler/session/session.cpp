#include "xpu/profiler/session.hpp"

#include <utility>

namespace xpu::profiler {

Session::Session(const RecordSource& source) : linker_(source) {}

void Session::add_sink(Sink& sink) { sinks_.push_back(&sink); }

Result<LinkSummary> Session::run() { return linker_.run(*this); }

void Session::begin(const SessionInfo& info) {
  for (Sink* sink : sinks_) sink->begin(info);
}
void Session::handle_runtime_activity(const RuntimeActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_runtime_activity(activity);
}
void Session::handle_kernel_activity(const KernelActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_kernel_activity(activity);
}
void Session::handle_memcpy_activity(const MemcpyActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_memcpy_activity(activity);
}
void Session::handle_memset_activity(const MemsetActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_memset_activity(activity);
}
void Session::handle_command_activity(const CommandActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_command_activity(activity);
}
void Session::handle_synchronization_activity(const SynchronizationActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_synchronization_activity(activity);
}
void Session::handle_overhead_activity(const OverheadActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_overhead_activity(activity);
}
void Session::handle_memory_activity(const MemoryActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_memory_activity(activity);
}
void Session::handle_annotation_activity(const AnnotationActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_annotation_activity(activity);
}
void Session::handle_loss_activity(const LossActivity& activity) {
  for (Sink* sink : sinks_) sink->handle_loss_activity(activity);
}

Result<> Session::end(const LinkSummary& summary) {
  Result<> first;
  for (Sink* sink : sinks_) {
    Result<> result = sink->end(summary);
    if (!result && first) first = std::move(result);
  }
  return first;
}

}  // namespace xpu::profiler
