#include <fmt/format.h>
#include <libkineto.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device_type.hpp"
#include "kineto_sink.hpp"
#include "xpu/base/version.hpp"
#include "xpu/profiler/activity_api.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/runtime/device.hpp"

// A child profiler of Kineto's: for each of its profiles a session of ours, whose activities become Kineto's.
namespace xpu_torch {
namespace {

using libkineto::ActivityType;
using xpu::profiler::ActivityApi;
using xpu::profiler::ActivityKind;

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

xpu::profiler::Config config_of(const std::set<ActivityType>& types) {
  xpu::profiler::Config config;
  // Kinds have the numbers of Kineto's types.
  config.kinds = {ActivityKind::external_correlation};
  for (const ActivityType type : types) {
    const auto kind = static_cast<ActivityKind>(type);
    if (kind == ActivityKind::kernel || kind == ActivityKind::gpu_memcpy || kind == ActivityKind::gpu_memset ||
        kind == ActivityKind::xpu_runtime || kind == ActivityKind::overhead) {
      config.kinds.insert(kind);
    } else if (kind == ActivityKind::privateuse1_runtime) {
      config.kinds.insert(ActivityKind::xpu_runtime);
    }
  }
  config.max_buffer_mib = 1024;  // used as it is needed, and given back
  return config;
}

// What was submitted, and what became of it.
std::string books_of(const xpu::profiler::LinkSummary& summary) {
  return fmt::format(
      "{{\"submitted\": {}, \"completed\": {}, \"pending\": {}, \"lost\": {}, \"refused\": {}, \"untimed\": {}, \"dropped\": {}}}",
      summary.commands, summary.linked, summary.pending, summary.lost, summary.refused, summary.untimed + summary.unplaced,
      summary.errors.dropped_for_room);
}

class ChildSession final : public libkineto::IActivityProfilerSession {
 public:
  explicit ChildSession(const std::set<ActivityType>& types) : session_(config_of(types)) { note(session_.prepare()); }

  void start() override {
    note(session_.start());
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    note(session_.stop());
    status_ = libkineto::TraceStatus::PROCESSING;
  }
  std::vector<std::string> errors() override { return errors_; }

  // Numbers are kept for every thread, whether or not the session sees it: pairs stay pairs.
  void pushCorrelationId(std::uint64_t id) override { ActivityApi::push_correlation_id(xpu::profiler::kOperationFamily, id); }
  void popCorrelationId() override { ActivityApi::pop_correlation_id(xpu::profiler::kOperationFamily); }
  void pushUserCorrelationId(std::uint64_t id) override { ActivityApi::push_correlation_id(xpu::profiler::kUserAnnotationFamily, id); }
  void popUserCorrelationId() override { ActivityApi::pop_correlation_id(xpu::profiler::kUserAnnotationFamily); }

  void processTrace(libkineto::ActivityLogger& logger) override { processTrace(logger, nullptr, INT64_MIN, INT64_MAX); }
  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, std::int64_t begin_ns,
                    std::int64_t end_ns) override {
    KinetoSink sink(logger, std::move(linked), begin_ns, end_ns, session_.clock_domain());
    std::vector<xpu::profiler::Sink*> sinks = {&sink};
    if (auto summary = session_.run(std::move(sinks)); !summary) errors_.push_back(to_string(summary.error()));
    buffer_ = sink.take_buffer();
    rows_ = sink.rows();
    for (std::string& warning : sink.warnings()) errors_.push_back(std::move(warning));
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return rows_; }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    const auto device = xpu::Device::get(0);
    if (!device) return nullptr;
    return std::make_unique<libkineto::DeviceInfo>(
        libkineto::DeviceInfo{0, libkineto::kExceedMaxPid, device->properties().name, fmt::format("{} 0", device->driver())});
  }
  std::string getDeviceProperties() override {
    std::string all;
    for (int index = 0; index < xpu::Device::count().value(); ++index) {
      const auto device = xpu::Device::get(index);
      if (!device) continue;
      const xpu::DeviceProperties& facts = device->properties();
      all += fmt::format("{}{{\"id\": {}, \"name\": {}, \"driver\": {}, \"uuid\": {}, \"totalGlobalMem\": {}, \"numSms\": {}}}",
                         all.empty() ? "" : ", ", index, json_text(facts.name), json_text(device->driver()),
                         json_text(to_string(facts.uuid)), facts.total_memory_bytes, facts.max_compute_units);
    }
    return all;
  }
  // Asked for before the trace is processed, so the books are linked for by themselves.
  std::unordered_map<std::string, std::string> getMetadata() override {
    std::unordered_map<std::string, std::string> metadata = {{"libxpu_version", json_text(xpu::version())}};
    if (session_.state() != xpu::profiler::SessionState::stopped && session_.state() != xpu::profiler::SessionState::collected)
      return metadata;
    if (const auto summary = session_.run(std::vector<xpu::profiler::Sink*>())) metadata.emplace("xpu_commands", books_of(*summary));
    return metadata;
  }

 private:
  void note(const xpu::Result<>& result) {
    if (!result) errors_.push_back(to_string(result.error()));
  }

  xpu::profiler::Session session_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
  std::vector<libkineto::ResourceInfo> rows_;
  std::vector<std::string> errors_;
};

class ChildProfiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return types_; }
  // Called for every profile, also those of the CPU alone.
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& types, const libkineto::Config&) override {
    if (types.count(ActivityType::CONCURRENT_KERNEL) == 0) return nullptr;
    return std::make_unique<ChildSession>(types);
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(std::int64_t, std::int64_t, const std::set<ActivityType>& types,
                                                                 const libkineto::Config& config) override {
    return configure(types, config);
  }

 private:
  const std::string name_ = "libxpu";
  const std::set<ActivityType> types_ = {ActivityType::GPU_MEMCPY,         ActivityType::GPU_MEMSET, ActivityType::CONCURRENT_KERNEL,
                                         ActivityType::XPU_RUNTIME,        ActivityType::OVERHEAD,   ActivityType::EXTERNAL_CORRELATION,
                                         ActivityType::PRIVATEUSE1_RUNTIME};
};

// Directly: what PyTorch has for extensions passes profilers of the device type PrivateUse1 on only.
[[maybe_unused]] const bool g_registered_child = [] {
  libkineto::api().registerProfilerFactory([] { return std::make_unique<ChildProfiler>(); });
  return true;
}();

}  // namespace
}  // namespace xpu_torch
