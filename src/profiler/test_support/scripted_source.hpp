#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/probe.hpp"
#include "xpu/profiler/record_source.hpp"

namespace xpu::profiler::test_support {

/// One command as a test writes it down. Ticks are nanoseconds of the device's clock unless the device says otherwise.
struct ScriptedCommand {
  std::uint32_t queue = 1;
  std::uint64_t start = 0, end = 0;  ///< Ticks; both 0: no completion is written.
  std::uint64_t enter_ns = 0, exit_ns = 0;
  std::uint32_t kernel = 1, geometry = 0;
  probe::Command command = probe::Command::ndrange_kernel;
  std::uint64_t queued = 0, submit = 0;
  std::uint32_t writer = 1;
  std::int32_t result = 0;  ///< Not 0: the driver refused it.
  std::uint32_t completion_flags = 0;
  std::int32_t status = 0;
  std::uint64_t bytes = 0;  ///< Of a copy or fill; 0: no detail is written.
  probe::CopyDirection direction = probe::CopyDirection::unknown;
  probe::MemoryType source = probe::MemoryType::unknown, destination = probe::MemoryType::unknown;
};

/// A source of records that a test writes line by line.
class ScriptedSource final : public RecordSource {
 public:
  ScriptedSource();

  /// Everything below goes to the process that was added last.
  std::size_t add_process(std::uint64_t pid, std::string_view name = "program", std::int32_t rank = -1);
  std::uint32_t add_string(std::string_view text);
  void add_thread(std::uint32_t writer, std::uint32_t os_thread, std::string_view name = "");
  /// Ids count from 1 per process.
  std::uint32_t add_device(std::string_view name, std::string_view driver = "driver 1", std::uint32_t numerator = 1,
                           std::uint32_t denominator = 1, std::uint32_t valid_bits = 64);
  /// A device as its driver describes it, with a fact behind it for each that is not 0.
  std::uint32_t add_device(trace::DeviceRecord record, std::string_view name, std::string_view driver,
                           const std::vector<std::pair<trace::FactKey, std::uint64_t>>& numbers, std::string_view vendor = "",
                           std::string_view driver_version = "");
  std::uint32_t add_queue(std::uint32_t device, bool out_of_order = false, std::uint32_t context = 1);
  std::uint32_t add_kernel(std::string_view name);
  std::uint32_t add_geometry(std::uint64_t global, std::uint64_t local);
  /// The device showed `ticks` at `host_ns`, within `bracket_ns` / 2.
  void add_reading(std::uint32_t device, std::uint64_t host_ns, std::uint64_t ticks, std::uint64_t bracket_ns = 0,
                   probe::ClockMethod method = {});
  /// Returns the operation's id.
  std::uint64_t add_command(const ScriptedCommand& command);
  void add_call(std::string_view api, std::uint64_t enter_ns, std::uint64_t exit_ns, std::int32_t result = 0, std::uint32_t writer = 1);
  void add_call_begin(std::string_view api, std::uint64_t enter_ns, std::uint32_t writer = 1);
  void add_wait(std::string_view api, probe::WaitType type, std::uint64_t enter_ns, std::uint64_t exit_ns, std::uint32_t queue = 1,
                std::uint32_t writer = 1);
  void add_memory(probe::MemoryAction action, std::uint64_t time_ns, std::uint64_t bytes, std::uint64_t total, std::uint32_t context = 1);
  void add_annotation(probe::AnnotationType type, std::uint64_t time_ns, std::string_view text, double value = 0, std::uint32_t writer = 1);
  void add_overhead(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t count, std::uint32_t writer = 1, std::uint32_t type = 0);
  /// Of communicator 9, with 1,024 bytes sent and 2,048 received.
  void add_communication(std::uint64_t begin_ns, std::uint64_t end_ns, const char* name, std::uint32_t writer = 1);
  void add_loss(const trace::LossRecord& loss);
  /// Any record.
  template <typename Record>
  void add(trace::RecordKind kind, Record record) {
    record.header.kind = static_cast<std::uint16_t>(kind);
    record.header.size = sizeof(Record);
    append(reinterpret_cast<const std::byte*>(&record), sizeof record);
  }

  /// A device, a queue, a kernel "kernel" and the map "host = ticks" in process 100: what most tests begin with.
  void add_simple_process(std::uint64_t pid = 100);

  /// Hands every record over in a batch of its own, in an order drawn from `seed`.
  void shuffle(std::uint32_t seed);

  const trace::Manifest& manifest() const override { return manifest_; }
  const std::vector<trace::ProcessInfo>& processes() const override { return processes_; }
  Result<> for_each_batch(std::span<const trace::RecordKind> kinds, const Visitor& visit) const override;

  trace::Manifest& mutable_manifest() { return manifest_; }
  trace::ProcessInfo& process_info(std::size_t process) { return processes_[process]; }

 private:
  struct Record {
    std::size_t process;
    std::vector<std::uint64_t> words;  // 8-byte aligned
  };
  struct Counters {
    std::uint32_t strings = 0, devices = 0, queues = 0, kernels = 0, geometries = 0;
    std::map<std::uint32_t, std::uint64_t> operations;  // by writer
    std::map<std::uint32_t, std::uint32_t> sequences;   // by queue
    std::vector<std::pair<std::string, std::uint32_t>> texts;
  };
  void append(const std::byte* bytes, std::size_t count);

  trace::Manifest manifest_;
  std::vector<trace::ProcessInfo> processes_;
  std::vector<Counters> counters_;
  std::vector<Record> records_;
};

}  // namespace xpu::profiler::test_support
