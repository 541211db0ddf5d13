#pragma once

#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/linker.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// One look at a source of records: links them and hands each activity to every sink. One owner at a time.
class XPU_EXPORT Session final : public Sink {
 public:
  /// `source` must outlive the session.
  explicit Session(const RecordSource& source);

  /// Before `run`. The sink must outlive the session.
  void add_sink(Sink& sink);
  /// Once. The first error of the source or of a sink; every sink has seen `end` when the source could be read.
  Result<LinkSummary> run();
  const Definitions& definitions() const noexcept { return linker_.definitions(); }

  void begin(const SessionInfo& info) override;
  void handle_runtime_activity(const RuntimeActivity& activity) override;
  void handle_kernel_activity(const KernelActivity& activity) override;
  void handle_memcpy_activity(const MemcpyActivity& activity) override;
  void handle_memset_activity(const MemsetActivity& activity) override;
  void handle_command_activity(const CommandActivity& activity) override;
  void handle_synchronization_activity(const SynchronizationActivity& activity) override;
  void handle_overhead_activity(const OverheadActivity& activity) override;
  void handle_memory_activity(const MemoryActivity& activity) override;
  void handle_annotation_activity(const AnnotationActivity& activity) override;
  void handle_loss_activity(const LossActivity& activity) override;
  Result<> end(const LinkSummary& summary) override;

 private:
  Linker linker_;
  std::vector<Sink*> sinks_;
};

}  // namespace xpu::profiler
