#include "xpu/profiler/linker.hpp"

#include <array>
#include <span>

#include "profiler/link/linking.hpp"

namespace xpu::profiler {
namespace {

using trace::RecordKind;

constexpr std::array kFirstPass = {RecordKind::string,
                                   RecordKind::process,
                                   RecordKind::thread,
                                   RecordKind::device,
                                   RecordKind::queue,
                                   RecordKind::kernel,
                                   RecordKind::geometry,
                                   RecordKind::annotation,
                                   RecordKind::clock_reading,
                                   RecordKind::loss,
                                   RecordKind::operation_completed,
                                   RecordKind::copy_detail,
                                   RecordKind::external_correlation};
constexpr std::array kHintPass = {RecordKind::operation_submitted};
constexpr std::array kSecondPass = {
    RecordKind::operation_submitted, RecordKind::api_call, RecordKind::call_begin, RecordKind::synchronization, RecordKind::memory,
    RecordKind::annotation,          RecordKind::loss,     RecordKind::overhead};

}  // namespace

Sink::~Sink() = default;
RecordSource::~RecordSource() = default;

struct Linker::Impl {
  explicit Impl(const RecordSource& source) : linking(source) {}

  Result<> first_pass();
  Result<> second_pass(Sink& sink);

  Linking linking;
};

Linker::Linker(const RecordSource& source) : impl_(std::make_unique<Impl>(source)) {}
Linker::~Linker() = default;
Linker::Linker(Linker&&) noexcept = default;
Linker& Linker::operator=(Linker&&) noexcept = default;

const Definitions& Linker::definitions() const noexcept { return impl_->linking.definitions.definitions(); }

Result<LinkSummary> Linker::run(Sink& sink) {
  XPU_TRY(impl_->first_pass());
  sink.begin(impl_->linking.info());
  XPU_TRY(impl_->second_pass(sink));
  XPU_TRY(sink.end(impl_->linking.summary));
  return impl_->linking.summary;
}

Result<> Linker::Impl::first_pass() {
  XPU_TRY(linking.source.for_each_batch(kFirstPass, [&](std::size_t process, std::span<const std::byte> records) {
    trace::for_each_record(records, [&](const trace::RecordHeader& header) { linking.read(process, header); });
  }));
  linking.definitions.finish();
  linking.external_ids.sort();
  linking.lost.sort();
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
  linking.annotations.hand_over_all(sink);
  linking.summary.orphans = linking.completions.size() - linking.summary.linked;
  return {};
}

}  // namespace xpu::profiler
