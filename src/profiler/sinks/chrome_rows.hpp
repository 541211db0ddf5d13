#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiler/sinks/fragments.hpp"
#include "xpu/profiler/definitions.hpp"

namespace xpu::profiler {

/// The rows of a Chrome trace: which one an event belongs to, and the events that describe them, each row once. References stay valid until
/// the next call for another row.
class ChromeRows {
 public:
  /// Before all else. `definitions` must outlive it.
  void begin(const Definitions& definitions) { definitions_ = &definitions; }

  /// `"pid":1234,"tid":1235,"ts":`; describes the row when it is new.
  const std::string& of(const ThreadDefinition& thread) {
    return thread_rows_.get(thread.index, [&] { return new_row(thread); });
  }
  const std::string& of(const QueueDefinition& queue, std::uint32_t lane) {
    const std::vector<std::string>& lanes = rows_of(queue).lanes;
    return lane < lanes.size() && !lanes[lane].empty() ? lanes[lane] : new_row(queue, lane);
  }
  /// What a queue did for annotations. Not on the queue's own row, where Kineto has it: a span that begins or ends with a command lies
  /// neither in it nor around it for every viewer, and some drop one of the two.
  const std::string& of_annotations(const QueueDefinition& queue, std::uint32_t lane) {
    const std::vector<std::string>& lanes = rows_of(queue).annotation_lanes;
    return lane < lanes.size() && !lanes[lane].empty() ? lanes[lane] : new_annotation_row(queue, lane);
  }
  /// What recording the calls of a thread cost.
  const std::string& of_overhead(const ThreadDefinition& thread);
  /// `,"device":0,"stream":1,"context":1`
  const std::string& args_of(const QueueDefinition& queue) { return rows_of(queue).args; }

  /// For events of a process that belong to none of its threads.
  void name_process(const ProcessDefinition& process);

  /// The events that describe the rows which are new since the last time, to be written at the end: with a comma before each, or empty.
  std::string take_metadata() { return std::exchange(metadata_, {}); }

 private:
  struct QueueRows {
    std::vector<std::string> lanes, annotation_lanes;  // `"pid":0,"tid":1,"ts":` each
    std::string args;
  };
  QueueRows& rows_of(const QueueDefinition& queue) {
    return queue.index < queue_rows_.size() && !queue_rows_[queue.index].args.empty() ? queue_rows_[queue.index] : new_rows(queue);
  }
  std::string new_row(const ThreadDefinition& thread);
  const std::string& new_row(const QueueDefinition& queue, std::uint32_t lane);
  const std::string& new_annotation_row(const QueueDefinition& queue, std::uint32_t lane);
  QueueRows& new_rows(const QueueDefinition& queue);
  std::string device_pid(const DeviceDefinition& device) const;
  void name_device(const DeviceDefinition& device);

  const Definitions* definitions_ = nullptr;
  Fragments thread_rows_, overhead_rows_;
  std::vector<QueueRows> queue_rows_;
  std::set<std::uint64_t> named_processes_;                          // pids: a process may execute another program
  std::set<std::pair<std::uint64_t, std::uint64_t>> named_threads_;  // pid, tid: a thread's number is given again when it has ended
  std::vector<bool> named_devices_;
  std::string metadata_;
};

}  // namespace xpu::profiler
