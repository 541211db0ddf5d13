#include "xpu/profiler/linker.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "profiler/link/annotation_table.hpp"
#include "profiler/link/cpu_operations.hpp"
#include "profiler/link/linking.hpp"
#include "profiler/link/record_cast.hpp"

namespace xpu::profiler {
namespace {

using trace::RecordKind;

constexpr std::array kFirstPass = {RecordKind::string,      RecordKind::process,
                                   RecordKind::thread,      RecordKind::device,
                                   RecordKind::fact,        RecordKind::queue,
                                   RecordKind::kernel,      RecordKind::geometry,
                                   RecordKind::annotation,  RecordKind::clock_reading,
                                   RecordKind::loss,        RecordKind::operation_completed,
                                   RecordKind::copy_detail, RecordKind::external_correlation,
                                   RecordKind::session,     RecordKind::graph_node};
constexpr std::array kHintPass = {RecordKind::operation_submitted};
constexpr std::array kSecondPass = {RecordKind::operation_submitted,
                                    RecordKind::api_call,
                                    RecordKind::call_begin,
                                    RecordKind::synchronization,
                                    RecordKind::memory,
                                    RecordKind::loss,
                                    RecordKind::overhead,
                                    RecordKind::communication};

}  // namespace

Sink::~Sink() = default;
RecordSource::~RecordSource() = default;

struct Linker::Impl {
  explicit Impl(const RecordSource& source) : linking(source) {
    linking.ranges = &annotations;
    linking.operations = &cpu_operations;
  }

  Result<> first_pass();
  Result<> second_pass(Sink& sink);

  Linking linking;
  AnnotationTable annotations;
  CpuOperations cpu_operations;
  std::span<const CpuTrace> cpu_traces;
  ActivityKinds cpu_kinds;
  std::int64_t window_end_ns = 0;
};

Linker::Linker(const RecordSource& source) : impl_(std::make_unique<Impl>(source)) {}
Linker::~Linker() = default;
Linker::Linker(Linker&&) noexcept = default;
Linker& Linker::operator=(Linker&&) noexcept = default;

const Definitions& Linker::definitions() const noexcept { return impl_->linking.definitions.definitions(); }

void Linker::set_cpu_traces(std::span<const CpuTrace> traces, ActivityKinds kinds, std::int64_t window_end_ns) {
  impl_->cpu_traces = traces;
  impl_->cpu_kinds = kinds;
  impl_->window_end_ns = window_end_ns;
}

Result<LinkSummary> Linker::run(Sink& sink) {
  XPU_TRY(impl_->first_pass());
  SessionInfo info = impl_->linking.info();
  // A framework's operation may have begun before the recording did.
  info.origin_ns = std::min(info.origin_ns, impl_->cpu_operations.earliest_ns());
  sink.begin(info);
  impl_->cpu_operations.hand_over(sink, impl_->linking.summary);
  XPU_TRY(impl_->second_pass(sink));
  XPU_TRY(sink.end(impl_->linking.summary));
  return impl_->linking.summary;
}

Result<> Linker::Impl::first_pass() {
  XPU_TRY(linking.source.for_each_batch(kFirstPass, [&](std::size_t process, std::span<const std::byte> records) {
    trace::for_each_record(records, [&](const trace::RecordHeader& header) {
      linking.read(process, header);
      if (static_cast<RecordKind>(header.kind) != RecordKind::annotation || process >= linking.processes()) return;
      if (const auto* annotation = record_cast<trace::AnnotationRecord>(header)) annotations.add(process, *annotation);
    });
  }));
  linking.definitions.finish();
  linking.external_ids.sort();
  linking.lost.sort();
  annotations.finish(linking.definitions);
  if (!cpu_traces.empty() && linking.processes() != 0) cpu_operations.add(cpu_traces, cpu_kinds, window_end_ns, linking.definitions);
  if (linking.completions.needs_host_hints(linking.definitions)) {
    XPU_TRY(linking.source.for_each_batch(kHintPass, [&](std::size_t process, std::span<const std::byte> records) {
      trace::for_each_record(records, [&](const trace::RecordHeader& header) { linking.read_host_hint(process, header); });
    }));
  }
  linking.completions.place(linking.definitions);
  linking.summary.duplicates = linking.completions.duplicates();
  return {};
}

Result<> Linker::Impl::second_pass(Sink& sink) {
  XPU_TRY(linking.source.for_each_batch(kSecondPass, [&](std::size_t process, std::span<const std::byte> records) {
    trace::for_each_record(records, [&](const trace::RecordHeader& header) { linking.hand_over(process, header, sink); });
  }));
  linking.hand_over_hung_calls(sink);
  annotations.hand_over(sink);
  linking.summary.orphans = linking.completions.size() - linking.summary.linked;
  linking.summary.errors.unused_external_ids = linking.external_ids.size() - linking.external_ids_used;
  linking.finish_summary();
  return {};
}

}  // namespace xpu::profiler
