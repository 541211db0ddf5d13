#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/link/paged_index.hpp"
#include "xpu/profiler/definitions.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/trace/clock_map.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// The clock of a device in one process, with what is needed to map its ticks.
struct DeviceClock {
  trace::ClockMap map;
  trace::TickUnit unit;
  bool counts = false;                      ///< The length of a tick is known.
  std::int64_t known_until_ns = INT64_MIN;  ///< Up to here no later reading is needed.
  bool wraps() const noexcept { return unit.valid_bits < 64; }
};

/// Collects the records that describe something and answers "what is id N of process P". One owner at a time.
///
/// Descriptions may come in any order and refer to each other, so `add` only keeps them; `finish` builds the definitions in the order of
/// processes and ids, which makes their indices independent of the order of batches. An id that nothing describes gets a definition when it
/// is first asked for.
///
/// `add` and `finish` may go on in turn where records come little by little: what is there stays as it is, and clocks get their newer
/// readings. What is young may refer to what has not come yet: `finish` leaves it to the next time, unless somebody has asked for it.
class DefinitionTable {
 public:
  /// `most_readings`: of a clock's; where more come, the older ones are thinned out.
  explicit DefinitionTable(const RecordSource& source, std::size_t most_readings = SIZE_MAX);

  void add(std::size_t process, const trace::RecordHeader& header, bool is_young = false);
  void finish();

  /// After `finish`. `process` is an index into the source's processes.
  const ProcessDefinition& process(std::size_t process) const { return definitions_.processes[process]; }
  const ThreadDefinition& thread(std::size_t process, std::uint32_t writer);
  const QueueDefinition& queue(std::size_t process, std::uint32_t id);
  bool has_queue(std::size_t process, std::uint32_t id) const noexcept;  ///< It was asked for, or `finish` made it.
  const KernelDefinition& kernel(std::size_t process, std::uint32_t id);
  const DeviceDefinition* find_device(std::size_t process, std::uint32_t id) { return id == 0 ? nullptr : device(process, id).definition; }
  const GeometryDefinition* geometry(std::size_t process, std::uint32_t id);  ///< Null for 0 and for what nothing describes.
  const NameDefinition& name(std::size_t process, std::uint32_t string);      ///< `unnamed` for 0 and for what nothing describes.
  const NameDefinition& name(std::string_view text) { return intern(text); }
  /// By the system's number, of the process's threads that are described; a new one where there is none.
  const ThreadDefinition& thread_of_system(std::size_t process, std::uint32_t os_thread);
  /// A new thread of a process that is none of the recording's, which must outlive the table.
  ThreadDefinition& add_thread(const ProcessDefinition& process, std::uint32_t os_thread);
  /// Does nothing where the program named it. Before an activity points to it.
  void name_thread(std::size_t process, std::uint32_t os_thread, std::string_view name);
  /// "unknown", which is no name that anything has; null as long as nothing needed it.
  const NameDefinition* unnamed() const noexcept { return unnamed_; }

  const DeviceClock& clock(const ClockDefinition& clock) const { return clocks_[clock.index]; }
  void set_error(const ClockDefinition& clock, std::uint64_t median_ns, std::uint64_t max_ns);

  const Definitions& definitions() const noexcept { return definitions_; }

 private:
  template <typename Record, typename Definition>
  struct Entry {
    std::optional<Record> record;
    const Definition* definition = nullptr;
    bool is_young = false;
  };
  template <typename Record, typename Definition>
  using Entries = PagedIndex<Entry<Record, Definition>, 32>;
  struct Text {
    std::string text;
    bool continues = false;
    bool known = false;
    const NameDefinition* definition = nullptr;
  };
  struct Device {
    std::optional<trace::DeviceRecord> record;
    std::vector<trace::FactRecord> facts;
    std::vector<trace::ClockPoint> points;
    std::size_t readings = 0;      ///< All that there were.
    std::size_t own_readings = 0;  ///< Of them, those in which the driver itself says which host clock its clock is.
    bool is_changed = false;       ///< Since its map was made.
    bool is_young = false;
    const DeviceDefinition* definition = nullptr;
    const ClockDefinition* clock = nullptr;
  };
  struct Process {
    PagedIndex<Text, 64> texts;
    PagedIndex<Device, 8> devices;
    Entries<trace::ThreadRecord, ThreadDefinition> threads;
    Entries<trace::QueueRecord, QueueDefinition> queues;
    Entries<trace::KernelRecord, KernelDefinition> kernels;
    Entries<trace::GeometryRecord, GeometryDefinition> geometries;
    std::unordered_map<std::uint32_t, ThreadDefinition*> threads_of_system;
    bool knows_threads_of_system = false;
    std::unordered_map<std::uint64_t, std::uint32_t> queue_names;   // native handle -> string
    std::unordered_map<std::uint32_t, std::uint32_t> thread_names;  // writer -> string
  };

  template <typename Record, typename Definition>
  static void keep(Entry<Record, Definition>& entry, const Record& record, bool is_young) {
    entry.is_young = is_young && !entry.record;
    entry.record = record;
  }
  void add_text(Process& process, const trace::StringRecord& record);
  void add_reading(std::size_t process, const trace::ClockReadingRecord& record, bool is_young);
  void add_facts(DeviceDefinition& device, std::size_t process, const Device& entry) const;
  void find_parents(std::size_t process);
  std::string_view text(std::size_t process, std::uint32_t id) const;
  Device& device(std::size_t process, std::uint32_t id);
  void make_clock(std::size_t process, Device& entry);
  static void thin_out(std::vector<trace::ClockPoint>& points);
  const NameDefinition& intern(std::string_view text);
  ThreadDefinition& made_thread_of_system(std::size_t process, std::uint32_t os_thread);
  const NameDefinition& make_name(std::string_view text);

  const std::vector<trace::ProcessInfo>& source_processes_;
  const std::size_t most_readings_;
  std::vector<Process> processes_;
  std::vector<DeviceClock> clocks_;
  std::unordered_map<std::string, const DeviceDefinition*> devices_by_identity_;
  std::vector<std::unordered_map<std::string, std::uint32_t>> equal_devices_;  // per process: how many of an identity there are
  std::unordered_map<std::string_view, const NameDefinition*> names_;
  const NameDefinition* unnamed_ = nullptr;
  Definitions definitions_;
};

}  // namespace xpu::profiler
