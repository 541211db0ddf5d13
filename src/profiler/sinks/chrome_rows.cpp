#include "profiler/sinks/chrome_rows.hpp"

#include <algorithm>

#include "profiler/sinks/chrome_text.hpp"
#include "profiler/sinks/json_text.hpp"
#include "profiler/sinks/names.hpp"

namespace xpu::profiler {
namespace {

using std::to_string;

// The row of lane L of stream S is S + L x this.
constexpr std::uint64_t kRowsPerLane = 1'000'000;
// Annotations have lanes from here on: numbers of rows must fit into 32 bits.
constexpr std::uint64_t kFirstAnnotationLane = 2'000;
// Kineto's order: programs, devices, overhead.
constexpr std::uint64_t kDeviceSortIndex = 5'000'000, kOverheadSortIndex = 0x100000A;
// A process of its own for what recording cost. Kineto's is -1, which Perfetto takes for 0: the rows would be the first device's.
constexpr std::uint64_t kOverheadPid = 2 * kFirstMadeUpId;

}  // namespace

void ChromeRows::name_process(const ProcessDefinition& process) {
  if (!named_processes_.insert(process.pid).second) return;
  const std::string pid = to_string(process.pid);
  metadata_ += metadata_event(pid, "0", "process_name", name_argument(row_name(process)));
  metadata_ += metadata_event(pid, "0", "process_sort_index", sort_argument(process.index));
}

std::string ChromeRows::new_row(const ThreadDefinition& thread) {
  name_process(*thread.process);
  const std::uint64_t tid_number = thread.os_thread != 0 ? thread.os_thread : kFirstMadeUpId + thread.index;
  const std::string pid = to_string(thread.process->pid), tid = to_string(tid_number);
  if (named_threads_.emplace(thread.process->pid, tid_number).second)
    metadata_ += metadata_event(pid, tid, "thread_name", name_argument(row_name(thread, tid_number)));
  return "\"pid\":" + pid + ",\"tid\":" + tid + ",\"ts\":";
}

/// The index of the device, unless a process of the recording has that id.
std::string ChromeRows::device_pid(const DeviceDefinition& device) const {
  const auto taken = [&](std::uint64_t id) {
    return std::any_of(definitions_->processes.begin(), definitions_->processes.end(),
                       [&](const ProcessDefinition& process) { return process.pid == id; });
  };
  const std::uint64_t pid = device.index;
  return to_string(taken(pid) ? kFirstMadeUpId + pid : pid);
}

void ChromeRows::name_device(const DeviceDefinition& device) {
  if (device.index >= named_devices_.size()) named_devices_.resize(device.index + 1);
  if (named_devices_[device.index]) return;
  named_devices_[device.index] = true;
  const std::string pid = device_pid(device);
  metadata_ += metadata_event(pid, "0", "process_name", name_argument(row_name(device)));
  metadata_ += metadata_event(pid, "0", "process_labels", "\"labels\":" + json_string("XPU " + to_string(device.index)));
  metadata_ += metadata_event(pid, "0", "process_sort_index", sort_argument(kDeviceSortIndex + device.index));
}

ChromeRows::QueueRows& ChromeRows::new_rows(const QueueDefinition& queue) {
  if (queue.index >= queue_rows_.size()) queue_rows_.resize(queue.index + 1);
  QueueRows& rows = queue_rows_[queue.index];
  rows.args = ",\"device\":" + to_string(queue.device->index) + ",\"stream\":" + to_string(queue.index + 1) +
              ",\"context\":" + to_string(queue.context);
  return rows;
}

const std::string& ChromeRows::new_row(const QueueDefinition& queue, std::uint32_t lane) {
  name_device(*queue.device);
  const std::string pid = device_pid(*queue.device);
  const std::uint64_t stream = std::uint64_t{queue.index} + 1;
  const std::string tid = to_string(stream + lane * kRowsPerLane);
  metadata_ += metadata_event(pid, tid, "thread_name", name_argument(row_name(queue, lane, definitions_->processes.size() > 1)));
  metadata_ += metadata_event(pid, tid, "thread_sort_index", sort_argument(stream * 1000 + std::min<std::uint32_t>(lane, 999)));
  std::vector<std::string>& lanes = rows_of(queue).lanes;
  if (lane >= lanes.size()) lanes.resize(lane + 1);
  return lanes[lane] = "\"pid\":" + pid + ",\"tid\":" + tid + ",\"ts\":";
}

const std::string& ChromeRows::new_annotation_row(const QueueDefinition& queue, std::uint32_t lane) {
  name_device(*queue.device);
  const std::string pid = device_pid(*queue.device);
  const std::uint64_t stream = std::uint64_t{queue.index} + 1;
  const std::string tid = to_string(stream + (kFirstAnnotationLane + lane) * kRowsPerLane);
  metadata_ += metadata_event(pid, tid, "thread_name", name_argument(annotation_row_name(queue, lane, definitions_->processes.size() > 1)));
  // Right above the queue's own row.
  metadata_ += metadata_event(pid, tid, "thread_sort_index", sort_argument(stream * 1000 - 100 + std::min<std::uint32_t>(lane, 99)));
  std::vector<std::string>& lanes = rows_of(queue).annotation_lanes;
  if (lane >= lanes.size()) lanes.resize(lane + 1);
  return lanes[lane] = "\"pid\":" + pid + ",\"tid\":" + tid + ",\"ts\":";
}

const std::string& ChromeRows::of_overhead(const ThreadDefinition& thread) {
  return overhead_rows_.get(thread.index, [&] {
    const std::string pid = to_string(kOverheadPid), tid = to_string(thread.os_thread);
    if (named_processes_.insert(kOverheadPid).second) {
      metadata_ += metadata_event(pid, "0", "process_name", name_argument("overhead of recording"));
      metadata_ += metadata_event(pid, "0", "process_sort_index", sort_argument(kOverheadSortIndex));
    }
    if (named_threads_.emplace(kOverheadPid, thread.os_thread).second)
      metadata_ += metadata_event(pid, tid, "thread_name", name_argument("thread " + tid));
    return "\"pid\":" + pid + ",\"tid\":" + tid + ",\"ts\":";
  });
}

}  // namespace xpu::profiler
