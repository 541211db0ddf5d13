#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profiler/sinks/export_source.hpp"
#include "profiler/sinks/file_output.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// Writes what it is told while the program goes on: into one file, or into numbered ones, each a whole trace, of which the next begins at
/// the first flush that finds so many bytes in the one before. Whatever is told between two flushes stands in one file. One owner at a
/// time.
///
/// A file that was not ended stays as NAME.tmp.
class StreamedFiles final : public Sink {
 public:
  /// `split_bytes`: 0 = one file, named as the options say. Errors: those of `FileOutput::create`.
  static Result<std::unique_ptr<StreamedFiles>> create(const ExportOptions& options, std::uint64_t split_bytes);

  void begin(const SessionInfo& info) override;
  void handle_runtime_activity(const RuntimeActivity& activity) override { sink().handle_runtime_activity(activity); }
  void handle_driver_activity(const DriverActivity& activity) override { sink().handle_driver_activity(activity); }
  void handle_external_correlation_activity(const ExternalCorrelationActivity& activity) override {
    sink().handle_external_correlation_activity(activity);
  }
  void handle_kernel_activity(const KernelActivity& activity) override { sink().handle_kernel_activity(activity); }
  void handle_memcpy_activity(const MemcpyActivity& activity) override { sink().handle_memcpy_activity(activity); }
  void handle_peer_memcpy_activity(const PeerMemcpyActivity& activity) override { sink().handle_peer_memcpy_activity(activity); }
  void handle_memset_activity(const MemsetActivity& activity) override { sink().handle_memset_activity(activity); }
  void handle_command_activity(const CommandActivity& activity) override { sink().handle_command_activity(activity); }
  void handle_synchronization_activity(const SynchronizationActivity& activity) override {
    sink().handle_synchronization_activity(activity);
  }
  void handle_overhead_activity(const OverheadActivity& activity) override { sink().handle_overhead_activity(activity); }
  void handle_communication_activity(const CommunicationActivity& activity) override { sink().handle_communication_activity(activity); }
  void handle_memory_activity(const MemoryActivity& activity) override { sink().handle_memory_activity(activity); }
  void handle_annotation_activity(const AnnotationActivity& activity) override { sink().handle_annotation_activity(activity); }
  void handle_loss_activity(const LossActivity& activity) override { sink().handle_loss_activity(activity); }
  Result<> flush(const LinkSummary& so_far) override;
  /// The last file has its name.
  Result<> end(const LinkSummary& summary) override;

  /// What is being written.
  const std::string& part() const noexcept { return file_->temporary_path(); }
  /// Those that are whole.
  const std::vector<std::string>& files() const noexcept { return files_; }
  /// Of all of them together; the path is the first one's.
  const ExportSummary& summary() const noexcept { return summary_; }
  /// Nothing stays: neither part nor files.
  void remove();

 private:
  StreamedFiles(const ExportOptions& options, std::uint64_t split_bytes) : options_(options), split_bytes_(split_bytes) {}
  Sink& sink() noexcept { return *named_.sink; }
  std::string next_path() const;
  Result<> open_next();
  Result<> close(const LinkSummary& so_far);

  const ExportOptions options_;
  const std::uint64_t split_bytes_;
  SessionInfo info_;
  std::unique_ptr<FileOutput> file_;
  NamedSink named_;
  LinkSummary before_;  // until the file began
  std::vector<std::string> files_;
  ExportSummary summary_;
};

}  // namespace xpu::profiler
