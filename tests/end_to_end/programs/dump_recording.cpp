// Prints what a recording holds, raw and mapped, for tests: one line per record, `key=value` separated by blanks.
//
//   dump_recording FILE
//
//   operation process=0 id=… queue=… sequence=… api=… name=… enter=… exit=… failed=0 done=1 untimed=0 queued=… submit=… start=… end=…
//             mapped_queued=… error_queued=… mapped_end=… error_end=…
//   wait process=0 api=… queue=… enter=… exit=… result=…
//   reading process=0 device=… before=… ticks=… after=… method=…
//   map process=0 device=… narrowest=… gap=… tick_ns=…
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xpu/trace/clock_map.hpp"
#include "xpu/trace/recording/recording.hpp"
#include "xpu/trace/records.hpp"

namespace {

using namespace xpu::trace;

struct Process {
  std::unordered_map<std::uint32_t, std::string> strings;
  std::uint32_t continued_string = 0;  ///< 0: none.
  std::unordered_map<std::uint32_t, std::uint32_t> kernel_names, queue_devices;
  std::unordered_map<std::uint32_t, TickUnit> units;
  std::map<std::uint32_t, std::vector<ClockPoint>> readings;
  std::map<std::uint32_t, ClockMap> maps;
  std::unordered_map<std::uint64_t, OperationCompletedRecord> completed;
  std::vector<OperationSubmittedRecord> submitted;
  std::vector<SynchronizationRecord> waits;
  std::map<std::uint32_t, std::vector<ClockReadingRecord>> raw_readings;

  std::string text(std::uint32_t id) const {
    const auto found = strings.find(id);
    std::string name = found == strings.end() ? "-" : found->second;
    for (char& c : name) {
      if (c == ' ') c = '_';
    }
    return name.empty() ? "-" : name;
  }
};

template <typename Record>
Record as(const RecordHeader& header) {
  Record record;
  std::memcpy(&record, &header, sizeof(record));
  return record;
}

void take(Process& process, const RecordHeader& header) {
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::string: {
      const auto record = as<StringRecord>(header);
      // A text may be there again, and whole, when definitions had to be written a second time.
      std::string& text = process.strings[record.id];
      if (process.continued_string != record.id) text.clear();
      text.append(reinterpret_cast<const char*>(&header) + sizeof(StringRecord), record.bytes);
      process.continued_string = (header.flags & kFlagContinues) != 0 ? record.id : 0;
      break;
    }
    case RecordKind::kernel: {
      const auto record = as<KernelRecord>(header);
      process.kernel_names[record.what] = record.name;
      break;
    }
    case RecordKind::queue: {
      const auto record = as<QueueRecord>(header);
      process.queue_devices[record.queue] = record.device;
      break;
    }
    case RecordKind::device: {
      const auto record = as<DeviceRecord>(header);
      process.units[record.device] = {record.tick_numerator, record.tick_denominator, record.valid_bits};
      break;
    }
    case RecordKind::clock_reading: {
      const auto record = as<ClockReadingRecord>(header);
      process.raw_readings[record.device].push_back(record);
      process.readings[record.device].push_back({record.host_before_ns, record.host_after_ns, record.device_ticks, record.error_ps});
      break;
    }
    case RecordKind::operation_submitted: process.submitted.push_back(as<OperationSubmittedRecord>(header)); break;
    case RecordKind::operation_completed: {
      const auto record = as<OperationCompletedRecord>(header);
      process.completed[record.operation] = record;
      break;
    }
    case RecordKind::synchronization: process.waits.push_back(as<SynchronizationRecord>(header)); break;
    default: break;
  }
}

void print(std::size_t index, Process& process) {
  for (const auto& [device, points] : process.readings) {
    process.maps[device] = ClockMap(points, process.units[device]);
    for (const ClockReadingRecord& r : process.raw_readings[device]) {
      std::printf("reading process=%zu device=%u before=%" PRIu64 " ticks=%" PRIu64 " after=%" PRIu64 " method=%u\n", index, device,
                  r.host_before_ns, r.device_ticks, r.host_after_ns, r.header.flags);
    }
    const TickUnit unit = process.units[device];
    std::printf("map process=%zu device=%u narrowest=%" PRIu64 " gap=%" PRIu64 " tick_ns=%.3f\n", index, device,
                process.maps[device].narrowest_bracket_ns(), process.maps[device].largest_gap_ns(),
                static_cast<double>(unit.numerator) / unit.denominator);
  }
  for (const OperationSubmittedRecord& s : process.submitted) {
    const auto name = process.kernel_names.find(s.what);
    std::printf("operation process=%zu id=%" PRIu64 " queue=%u sequence=%u api=%s name=%s enter=%" PRIu64 " exit=%" PRIu64 " failed=%d",
                index, s.operation, s.queue, s.queue_sequence, process.text(s.api).c_str(),
                name == process.kernel_names.end() ? "-" : process.text(name->second).c_str(), s.enter_ns, s.exit_ns,
                (s.header.flags & kFlagFailed) != 0);
    const auto found = process.completed.find(s.operation);
    if (found == process.completed.end()) {
      std::printf(" done=0\n");
      continue;
    }
    const OperationCompletedRecord& c = found->second;
    std::printf(" done=1 status=%d untimed=%d command_failed=%d clamped=%d queued=%" PRIu64 " submit=%" PRIu64 " start=%" PRIu64
                " end=%" PRIu64,
                c.status, (c.header.flags & kFlagUntimed) != 0, (c.header.flags & kFlagFailed) != 0, (c.header.flags & kFlagClamped) != 0,
                c.queued, c.submit, c.start, c.end);
    const ClockMap& map = process.maps[process.queue_devices[s.queue]];
    if (map.usable()) {
      const MappedTime queued = map.to_host(c.queued, s.enter_ns), end = map.to_host(c.end, s.enter_ns);
      std::printf(" mapped_queued=%" PRId64 " error_queued=%" PRIu64 " mapped_end=%" PRId64 " error_end=%" PRIu64, queued.host_ns,
                  queued.error_ns, end.host_ns, end.error_ns);
    }
    std::printf("\n");
  }
  for (const SynchronizationRecord& w : process.waits) {
    std::printf("wait process=%zu api=%s queue=%u enter=%" PRIu64 " exit=%" PRIu64 " result=%d\n", index, process.text(w.api).c_str(),
                w.queue, w.enter_ns, w.exit_ns, w.result);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: dump_recording FILE\n");
    return 2;
  }
  auto recording = Recording::open(argv[1]);
  if (!recording) {
    std::fprintf(stderr, "dump_recording: %s\n", to_string(recording.error()).c_str());
    return 1;
  }
  if (!recording->damage().empty()) std::fprintf(stderr, "dump_recording: %s\n", recording->damage().c_str());
  std::vector<Process> processes(recording->processes().size());
  const auto read = recording->for_each_batch([&](std::size_t process, std::span<const std::byte> records) {
    for_each_record(records, [&](const RecordHeader& header) { take(processes[process], header); });
  });
  if (!read) {
    std::fprintf(stderr, "dump_recording: %s\n", to_string(read.error()).c_str());
    return 1;
  }
  for (std::size_t index = 0; index < processes.size(); ++index) print(index, processes[index]);
  return 0;
}
