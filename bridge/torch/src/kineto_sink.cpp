#include "kineto_sink.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "device_type.hpp"
#include "xpu/profiler/definitions.hpp"

namespace xpu_torch {
namespace {

using namespace xpu::profiler;
using libkineto::ActivityType;
using libkineto::GenericTraceActivity;

#if defined(XPU_TORCH_PRIVATEUSE1)
constexpr ActivityType kRuntimeType = ActivityType::PRIVATEUSE1_RUNTIME;
#else
constexpr ActivityType kRuntimeType = ActivityType::XPU_RUNTIME;
#endif

std::int64_t realtime_offset_ns(xpu::ClockDomain domain) {
  if (domain == xpu::ClockDomain::realtime) return 0;
  // The narrower of some readings, because this thread may be put aside between two clocks.
  std::int64_t best = 0, narrowest = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const auto before = static_cast<std::int64_t>(xpu::now_ns(domain));
    const auto realtime = static_cast<std::int64_t>(xpu::now_ns(xpu::ClockDomain::realtime));
    const auto after = static_cast<std::int64_t>(xpu::now_ns(domain));
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = realtime - (before + (after - before) / 2);
  }
  return best;
}

const char* direction_of(const MemcpyActivity& copy) {
  switch (copy.direction) {
    case CopyDirection::host_to_device: return "HtoD";
    case CopyDirection::device_to_host: return "DtoH";
    case CopyDirection::device_to_device: return "DtoD";
    case CopyDirection::host_to_host: return "HtoH";
    case CopyDirection::peer: return "PtoP";
    case CopyDirection::unknown: break;
  }
  return "";
}

void add_bytes(GenericTraceActivity& made, const std::optional<std::uint64_t>& bytes, std::uint64_t duration_ns) {
  if (!bytes) return;
  made.addMetadata("bytes", *bytes);
  if (duration_ns != 0) made.addMetadata("memory bandwidth (GB/s)", static_cast<double>(*bytes) / static_cast<double>(duration_ns));
}

}  // namespace

KinetoSink::KinetoSink(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, std::int64_t begin_ns,
                       std::int64_t end_ns, xpu::ClockDomain domain)
    : logger_(logger),
      linked_(std::move(linked)),
      begin_ns_(begin_ns),
      end_ns_(end_ns),
      to_realtime_ns_(realtime_offset_ns(domain)),
      buffer_(std::make_unique<libkineto::CpuTraceBuffer>()) {
  buffer_->span = libkineto::TraceSpan(begin_ns, end_ns, "libxpu");
}

GenericTraceActivity& KinetoSink::add(ActivityType type, const std::string& name, const Activity& activity,
                                      std::span<const ExternalId> ids) {
  buffer_->emplace_activity(buffer_->span, type, name);
  GenericTraceActivity& made = *buffer_->activities.back();
  made.startTime = activity.start_ns + to_realtime_ns_;
  made.endTime = made.startTime + static_cast<std::int64_t>(activity.duration_ns);
  made.id = static_cast<std::int32_t>(activity.correlation);
  for (const ExternalId& id : ids) {
    if (id.family == static_cast<std::uint32_t>(kOperationFamily) && linked_) made.linked = linked_(static_cast<std::int32_t>(id.id));
  }
  return made;
}

void KinetoSink::hand_over(const GenericTraceActivity& activity) { activity.log(logger_); }

void KinetoSink::handle_runtime_activity(const RuntimeActivity& activity) {
  const std::int64_t start_ns = activity.start_ns + to_realtime_ns_;
  if (start_ns < begin_ns_ || start_ns > end_ns_) {
    if (!activity.submits) ++outside_;
    return;
  }
  GenericTraceActivity& made = add(kRuntimeType, activity.api != nullptr ? activity.api->text : "unknown", activity, activity.external_ids);
  made.device = ::getpid();
  made.resource = activity.thread != nullptr ? static_cast<std::int32_t>(activity.thread->os_thread) : 0;
  made.threadId = made.resource;
  made.addMetadata("correlation", activity.correlation);
  if (activity.failed) made.addMetadata("error", activity.result);
  if (activity.submits && !activity.failed) {
    made.flow.id = activity.correlation;
    made.flow.type = libkineto::kLinkAsyncCpuGpu;
    made.flow.start = 1;
  }
  hand_over(made);
}

GenericTraceActivity* KinetoSink::add_command(ActivityType type, const std::string& name, const DeviceActivity& activity) {
  if (!activity.placed) {
    ++unplaced_;
    return nullptr;
  }
  // A device on a virtual clock is at a time of its own.
  const bool is_virtual = activity.queue->device != nullptr && activity.queue->device->driver == "libxpu sim";
  const std::int64_t start_ns = activity.start_ns + to_realtime_ns_;
  if (!is_virtual && (start_ns < begin_ns_ || start_ns > end_ns_)) {
    ++outside_;
    return nullptr;
  }
  GenericTraceActivity& made = add(type, name, activity, activity.external_ids);
  made.device = activity.queue->device != nullptr ? static_cast<std::int32_t>(activity.queue->device->index) : 0;
  made.resource = static_cast<std::int32_t>(activity.queue->id);
  made.flow.id = activity.correlation;
  made.flow.type = libkineto::kLinkAsyncCpuGpu;
  made.flow.start = 0;
  made.addMetadata("device", made.device);
  made.addMetadata("context", activity.queue->context);
  made.addMetadata("stream", activity.queue->id);
  made.addMetadata("correlation", activity.correlation);
  made.addMetadata("clock error (ns)", activity.error_ns);
  if (activity.queued_ns) made.addMetadata("queued", *activity.queued_ns + to_realtime_ns_);
  if (activity.state == CommandState::failed) made.addMetadata("error", activity.native_status);
  rows_.try_emplace({made.device, made.resource},
                    activity.queue->name.empty() ? fmt::format("stream {}", activity.queue->id) : activity.queue->name);
  ++buffer_->gpuOpCount;
  return &made;
}

void KinetoSink::handle_kernel_activity(const KernelActivity& activity) {
  GenericTraceActivity* const made =
      add_command(ActivityType::CONCURRENT_KERNEL, activity.kernel != nullptr ? activity.kernel->name : "unknown", activity);
  if (made == nullptr) return;
  made->addMetadataQuoted("kind", activity.command == Command::native_kernel ? "fallback" : "kernel");
  if (activity.geometry != nullptr) {
    const GeometryDefinition& geometry = *activity.geometry;
    std::uint64_t groups[3], items[3];
    for (int i = 0; i < 3; ++i) {
      items[i] = geometry.local[i] != 0 ? geometry.local[i] : 1;
      groups[i] = (geometry.global[i] + items[i] - 1) / items[i];
    }
    made->addMetadata("grid", fmt::format("[{}, {}, {}]", groups[0], groups[1], groups[2]));
    made->addMetadata("block", fmt::format("[{}, {}, {}]", items[0], items[1], items[2]));
  }
  hand_over(*made);
}

void KinetoSink::handle_memcpy_activity(const MemcpyActivity& activity) {
  const std::string name =
      fmt::format("Memcpy {} ({} -> {})", direction_of(activity), to_string(activity.source), to_string(activity.destination));
  if (GenericTraceActivity* const made = add_command(ActivityType::GPU_MEMCPY, name, activity)) {
    add_bytes(*made, activity.bytes, activity.duration_ns);
    hand_over(*made);
  }
}

void KinetoSink::handle_memset_activity(const MemsetActivity& activity) {
  const std::string name = fmt::format("Memset ({})", to_string(activity.destination));
  if (GenericTraceActivity* const made = add_command(ActivityType::GPU_MEMSET, name, activity)) {
    add_bytes(*made, activity.bytes, activity.duration_ns);
    hand_over(*made);
  }
}

void KinetoSink::handle_overhead_activity(const OverheadActivity& activity) {
  GenericTraceActivity& made = add(ActivityType::OVERHEAD, std::string(to_string(activity.type)), activity, {});
  made.device = -1;
  made.resource = activity.thread != nullptr ? static_cast<std::int32_t>(activity.thread->os_thread) : 0;
  made.threadId = made.resource;
  hand_over(made);
}

std::vector<std::string> KinetoSink::warnings() const {
  std::vector<std::string> sentences;
  if (outside_ != 0) sentences.push_back(fmt::format("{} activities lie outside of the profile and were left out", outside_));
  if (unplaced_ != 0) sentences.push_back(fmt::format("{} commands have no place in time and were left out", unplaced_));
  return sentences;
}

std::vector<libkineto::ResourceInfo> KinetoSink::rows() const {
  std::vector<libkineto::ResourceInfo> infos;
  for (const auto& [row, name] : rows_) infos.emplace_back(libkineto::ResourceInfo{row.second, row.second, row.first, name});
  return infos;
}

}  // namespace xpu_torch
