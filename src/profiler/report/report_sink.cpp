#include "profiler/report/report_sink.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "profiler/time_difference.hpp"

namespace xpu::profiler {
namespace {

constexpr std::size_t kSlowest = 10;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Whether bytes move: a map may only hand out an address, so that bytes over time say nothing.
bool is_transfer(const MemcpyActivity& copy) { return copy.command != Command::map && copy.command != Command::unmap; }

std::string route_of(const MemcpyActivity& copy) {
  const auto host_memory = [](MemoryType type) { return type == MemoryType::pinned ? "pinned" : "host"; };
  switch (copy.command) {
    case Command::map:
    case Command::unmap:
    case Command::migrate: return std::string(to_string(copy.command));
    default: break;
  }
  switch (copy.direction) {
    case CopyDirection::host_to_device: return "host_to_device";
    case CopyDirection::device_to_host: return "device_to_host";
    case CopyDirection::device_to_device: return "device_to_device";
    case CopyDirection::host_to_host: return std::string(host_memory(copy.source)) + "_to_" + host_memory(copy.destination);
    case CopyDirection::peer: return "peer";
    case CopyDirection::unknown: break;
  }
  return "unknown";
}

/// The slower call first; equal ones in an order that does not depend on when they were seen.
bool slower(const Report::Call& a, const Report::Call& b) {
  if (*a.duration_ns != *b.duration_ns) return *a.duration_ns > *b.duration_ns;
  return std::tie(a.start_ns, a.pid, a.thread, a.name) < std::tie(b.start_ns, b.pid, b.thread, b.name);
}

std::vector<Report::Geometry> geometries_of(const std::unordered_map<const GeometryDefinition*, std::uint64_t>& counts) {
  std::vector<Report::Geometry> geometries;
  for (const auto& [definition, calls] : counts) {
    Report::Geometry& geometry = geometries.emplace_back();
    geometry.dimensions = definition->dimensions;
    std::memcpy(geometry.offset, definition->offset, sizeof geometry.offset);
    std::memcpy(geometry.global, definition->global, sizeof geometry.global);
    std::memcpy(geometry.local, definition->local, sizeof geometry.local);
    geometry.calls = calls;
  }
  const auto sizes = [](const Report::Geometry& g) {
    return std::tie(g.global[0], g.global[1], g.global[2], g.local[0], g.local[1], g.local[2], g.offset[0], g.offset[1], g.offset[2],
                    g.dimensions);
  };
  // Two processes describe the same geometry each for itself.
  std::sort(geometries.begin(), geometries.end(), [&](const auto& a, const auto& b) { return sizes(a) < sizes(b); });
  std::vector<Report::Geometry> merged;
  for (const Report::Geometry& geometry : geometries) {
    if (!merged.empty() && sizes(merged.back()) == sizes(geometry)) {
      merged.back().calls += geometry.calls;
    } else {
      merged.push_back(geometry);
    }
  }
  std::stable_sort(merged.begin(), merged.end(), [](const auto& a, const auto& b) { return a.calls > b.calls; });
  return merged;
}

std::vector<Report::Transfer> transfers_of(const auto& sums_by_route) {
  std::vector<Report::Transfer> transfers;
  for (const auto& [route, sums] : sums_by_route) {
    Report::Transfer& transfer = transfers.emplace_back();
    transfer.route = route;
    transfer.calls = sums.calls;
    transfer.failed = sums.failed;
    if (sums.bytes_known) transfer.bytes = sums.bytes;
    if (sums.timed != 0) transfer.total_ns = sums.total_ns;
    if (sums.rated_ns != 0) {
      transfer.bytes_per_s = static_cast<std::uint64_t>(static_cast<unsigned __int128>(sums.rated_bytes) * 1'000'000'000u / sums.rated_ns);
    }
  }
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const auto& a, const auto& b) { return a.total_ns.value_or(0) > b.total_ns.value_or(0); });
  return transfers;
}

}  // namespace

void ReportSink::begin(const SessionInfo& info) {
  definitions_ = info.definitions;
  manifest_ = info.manifest;
}

void ReportSink::add_call(const NameDefinition& name, const ThreadDefinition& thread, const Activity& activity, bool duration_known,
                          bool failed, std::int32_t result, bool waits) {
  if (name.index >= api_.size()) api_.resize(name.index + 1);
  ApiSums& sums = api_[name.index];
  ++sums.calls;
  sums.failed += failed;
  sums.waits = sums.waits || waits;
  if (duration_known) {
    ++sums.timed;
    sums.total_ns += activity.duration_ns;
    sums.max_ns = std::max(sums.max_ns, activity.duration_ns);
  }
  const bool slow = duration_known && (slowest_.size() < kSlowest || activity.duration_ns >= *slowest_.back().duration_ns);
  if (!slow && !failed) return;

  Report::Call call;
  call.name = name.text;
  call.pid = activity.process->pid;
  call.thread = thread.os_thread;
  call.start_ns = difference_ns(activity.start_ns, static_cast<std::int64_t>(manifest_->start_monotonic_ns));
  if (duration_known) call.duration_ns = activity.duration_ns;
  call.result = result;
  if (slow) {
    slowest_.insert(std::upper_bound(slowest_.begin(), slowest_.end(), call, slower), call);
    if (slowest_.size() > kSlowest) slowest_.pop_back();
  }
  if (failed) {
    const auto [entry, is_new] = failed_.try_emplace({call.name, result}, call);
    if (!is_new) {
      const std::uint64_t calls = entry->second.calls + 1;
      // The first of them in time stands for all.
      if (std::tie(call.start_ns, call.pid) < std::tie(entry->second.start_ns, entry->second.pid)) entry->second = call;
      entry->second.calls = calls;
    }
  }
}

void ReportSink::handle_runtime_activity(const RuntimeActivity& activity) {
  add_call(*activity.api, *activity.thread, activity, activity.duration_known, activity.failed, activity.result, false);
}

void ReportSink::handle_synchronization_activity(const SynchronizationActivity& activity) {
  // The call that blocks is on record as the call that submits.
  if (activity.type == WaitType::blocking_call) {
    if (activity.api->index >= api_.size()) api_.resize(activity.api->index + 1);
    api_[activity.api->index].waits = true;
    return;
  }
  add_call(*activity.api, *activity.thread, activity, true, activity.result != 0, activity.result, true);
}

ReportSink::DeviceSums& ReportSink::device_sums(const DeviceActivity& activity) {
  const std::uint32_t index = activity.queue->device->index;
  if (index >= devices_.size()) devices_.resize(index + 1);
  return devices_[index];
}

/// What every command adds to its device.
void ReportSink::add_command(const DeviceActivity& activity) {
  range_usage_.add(activity);
  if (activity.state == CommandState::refused) return;
  DeviceSums& sums = device_sums(activity);
  ++sums.commands;
  if (!activity.timed || activity.command == Command::marker || activity.command == Command::barrier) return;
  if (!activity.placed) {
    sums.incomparable = sums.incomparable || (!sums.busy.empty() && sums.own_clock != activity.queue->clock);
    sums.own_clock = activity.queue->clock;
  } else if (sums.own_clock != nullptr) {
    sums.incomparable = true;
  }
  const Interval run{activity.start_ns, end_ns(activity.start_ns, activity.duration_ns)};
  sums.busy.push_back(run);
  sums.first_ns = std::min(sums.first_ns.value_or(run.begin_ns), run.begin_ns);
  sums.last_ns = std::max(sums.last_ns.value_or(run.end_ns), run.end_ns);
}

ReportSink::Group& ReportSink::group_of(const KernelActivity& activity) {
  const QueueDefinition* queue = activity.queue;
  const ThreadDefinition* thread = activity.call == nullptr ? nullptr : activity.call->thread;
  if (activity.kernel->index >= cached_.size()) cached_.resize(activity.kernel->index + 1);
  CachedGroup& cached = cached_[activity.kernel->index];
  if (cached.group != nullptr && cached.device == queue->device && cached.queue == queue && cached.thread == thread) return *cached.group;

  GroupKey key;
  key.name = activity.kernel->name;
  if (by_ != ReportOptions::By::kernel) key.device = queue->device->index;
  if (by_ == ReportOptions::By::process) key.process = activity.process->index;
  if (by_ == ReportOptions::By::queue) key.queue = queue->index;
  if (by_ == ReportOptions::By::thread && thread != nullptr) key.thread = thread->index + 1;
  const auto [entry, is_new] = groups_.try_emplace(key);
  Group& group = entry->second;
  if (is_new) {
    group.device = queue->device->index;
    group.queue = queue;
    group.thread = thread;
    group.process = activity.process;
    group.raw_name = activity.kernel->raw_name;
  } else {
    if (group.device != queue->device->index) group.device.reset();
    group.raw_name = std::min(group.raw_name, activity.kernel->raw_name);
  }
  cached = {queue->device, queue, thread, &group};
  return group;
}

void ReportSink::handle_kernel_activity(const KernelActivity& activity) {
  add_command(activity);
  Group& group = group_of(activity);
  if (activity.state == CommandState::refused || activity.state == CommandState::failed) ++group.failed;
  if (activity.state == CommandState::refused) return;
  ++group.calls;
  if (activity.geometry != nullptr) ++group.geometries[activity.geometry];
  if (!activity.timed) return;
  group.durations_ns.push_back(activity.duration_ns);
  group.total_ns += activity.duration_ns;
  device_sums(activity).kernel_ns += activity.duration_ns;
  if (activity.placed && activity.call != nullptr && activity.call->duration_known) {
    group.delays_ns.push_back(difference_ns(activity.start_ns, end_ns(activity.call->start_ns, activity.call->duration_ns)));
  }
}

void ReportSink::add_transfer(TransferSums& sums, const DeviceActivity& activity, std::optional<std::uint64_t> bytes, bool is_rated) {
  if (activity.state == CommandState::refused || activity.state == CommandState::failed) ++sums.failed;
  if (activity.state == CommandState::refused) return;
  ++sums.calls;
  if (bytes) {
    sums.bytes_known = true;
    sums.bytes += *bytes;
  }
  if (!activity.timed) return;
  ++sums.timed;
  sums.total_ns += activity.duration_ns;
  if (bytes && is_rated) {
    sums.rated_bytes += *bytes;
    sums.rated_ns += activity.duration_ns;
  }
}

void ReportSink::handle_memcpy_activity(const MemcpyActivity& activity) {
  add_command(activity);
  // An unmap does not say how much was mapped.
  const bool is_known = activity.command != Command::unmap || activity.bytes.value_or(0) != 0;
  add_transfer(copies_[route_of(activity)], activity, is_known ? activity.bytes : std::nullopt, is_transfer(activity));
}

void ReportSink::handle_memset_activity(const MemsetActivity& activity) {
  add_command(activity);
  const std::string place(activity.destination == MemoryType::unknown ? "device" : to_string(activity.destination));
  add_transfer(fills_[place], activity, activity.bytes);
}

void ReportSink::handle_command_activity(const CommandActivity& activity) { add_command(activity); }

void ReportSink::handle_overhead_activity(const OverheadActivity& activity) {
  overhead_samples_.push_back({activity.duration_ns, activity.count});
}

// A sample is wall time and stands for many calls; the few in which the thread was interrupted stand for none but themselves. They are far
// longer than any other, and count for the rest as the longest sample that is plausible.
std::uint64_t ReportSink::overhead_ns() const {
  constexpr std::uint64_t kAlwaysPlausibleNs = 50'000, kPlausibleMedians = 64;
  std::vector<std::uint64_t> durations_ns;
  durations_ns.reserve(overhead_samples_.size());
  for (const OverheadSample& sample : overhead_samples_) durations_ns.push_back(sample.duration_ns);
  const std::uint64_t longest_ns = std::max(kAlwaysPlausibleNs, kPlausibleMedians * nearest_rank(durations_ns, 50));
  std::uint64_t sum_ns = 0;
  for (const OverheadSample& sample : overhead_samples_) {
    const std::uint64_t plausible_ns = std::min(sample.duration_ns, longest_ns);
    sum_ns += plausible_ns * sample.count + (sample.duration_ns - plausible_ns);
  }
  return sum_ns;
}

std::vector<Report::Device> ReportSink::take_devices() {
  devices_.resize(std::max(devices_.size(), definitions_->devices.size()));
  std::vector<Report::Device> devices;
  for (const DeviceDefinition& definition : definitions_->devices) {
    DeviceSums& sums = devices_[definition.index];
    Report::Device& device = devices.emplace_back();
    device.id = definition.index;
    device.name = definition.name;
    device.driver = definition.driver;
    device.commands = sums.commands;
    if (!sums.first_ns || sums.incomparable) continue;
    device.span_ns = static_cast<std::uint64_t>(*sums.last_ns - *sums.first_ns);
    device.busy_ns = union_length(sums.busy);
    device.idle_ns = *device.span_ns - *device.busy_ns;
  }
  return devices;
}

std::vector<Report::Kernel> ReportSink::take_kernels() {
  std::uint64_t all_devices_ns = 0;
  for (const DeviceSums& sums : devices_) all_devices_ns += sums.kernel_ns;
  std::vector<Report::Kernel> kernels;
  for (auto& [key, group] : groups_) {
    Report::Kernel& kernel = kernels.emplace_back();
    kernel.name = key.name;
    kernel.raw_name = group.raw_name;
    kernel.device = group.device;
    const bool one_process = by_ == ReportOptions::By::process || by_ == ReportOptions::By::queue || by_ == ReportOptions::By::thread;
    if (one_process) kernel.process = group.process->pid;
    if (by_ == ReportOptions::By::queue) kernel.queue = group.queue->id;
    if (by_ == ReportOptions::By::thread && group.thread != nullptr) kernel.thread = group.thread->os_thread;
    kernel.calls = group.calls;
    kernel.failed = group.failed;
    kernel.timed = group.durations_ns.size();
    kernel.geometries = geometries_of(group.geometries);
    if (!group.durations_ns.empty()) {
      std::vector<std::uint64_t>& durations = group.durations_ns;
      kernel.total_ns = group.total_ns;
      kernel.avg_ns = rounded_average(group.total_ns, durations.size());
      kernel.min_ns = *std::min_element(durations.begin(), durations.end());
      kernel.max_ns = *std::max_element(durations.begin(), durations.end());
      kernel.median_ns = nearest_rank(durations, 50);
      kernel.p99_ns = nearest_rank(durations, 99);
      const std::uint64_t whole_ns = group.device ? devices_[*group.device].kernel_ns : all_devices_ns;
      if (whole_ns != 0) kernel.share = static_cast<double>(group.total_ns) / static_cast<double>(whole_ns);
    }
    if (!group.delays_ns.empty()) kernel.launch_delay_ns = {nearest_rank(group.delays_ns, 50), nearest_rank(group.delays_ns, 99)};
  }
  return kernels;
}

std::vector<Report::Api> ReportSink::take_api() const {
  std::vector<Report::Api> table;
  for (const NameDefinition& name : definitions_->names) {
    if (name.index >= api_.size() || api_[name.index].calls == 0) continue;
    const ApiSums& sums = api_[name.index];
    Report::Api& api = table.emplace_back();
    api.name = name.text;
    api.calls = sums.calls;
    api.failed = sums.failed;
    api.waits = sums.waits;
    if (sums.timed != 0) {
      api.total_ns = sums.total_ns;
      api.max_ns = sums.max_ns;
    }
  }
  std::sort(table.begin(), table.end(), [](const Report::Api& a, const Report::Api& b) {
    const std::uint64_t left = a.total_ns.value_or(0), right = b.total_ns.value_or(0);
    return left != right ? left > right : a.name < b.name;
  });
  return table;
}

std::vector<Report::Clock> ReportSink::take_clocks() const {
  std::vector<Report::Clock> clocks;
  for (const ClockDefinition& definition : definitions_->clocks) {
    Report::Clock& clock = clocks.emplace_back();
    clock.device = definition.device->index;
    clock.pid = definition.process->pid;
    clock.domain = definition.domain;
    if (definition.tick_numerator != 0 && definition.tick_denominator != 0) {
      clock.tick_ns = static_cast<double>(definition.tick_numerator) / definition.tick_denominator;
    }
    clock.error_median_ns = definition.error_median_ns;
    clock.error_max_ns = definition.error_max_ns;
    clock.readings = definition.readings;
  }
  return clocks;
}

Report ReportSink::take_report() {
  Report report;
  report.program.argv = manifest_->argv;
  if (manifest_->end.known) {
    if (manifest_->end.signal != 0) {
      report.program.signal = manifest_->end.signal;
    } else {
      report.program.exit_code = manifest_->end.exit_code;
    }
    report.program.wall_ns = manifest_->end.wall_ns;
    report.overhead.recorder_ns = manifest_->end.recorder_cpu_ns;
  }
  std::string command_line;
  for (const std::string& argument : manifest_->argv) command_line += (command_line.empty() ? "" : " ") + argument;
  const ProcessDefinition* program = nullptr;
  for (const ProcessDefinition& definition : definitions_->processes) {
    if (base_name(definition.name) != base_name(manifest_->program)) continue;
    if (program == nullptr || definition.start_ns < program->start_ns) program = &definition;
  }
  for (const ProcessDefinition& definition : definitions_->processes) {
    Report::Process& process = report.processes.emplace_back();
    process.pid = definition.pid;
    process.name = definition.name;
    process.rank = definition.rank;
    process.command = &definition == program ? command_line : definition.name;
    process.closed = definition.closed;
  }
  report.devices = take_devices();
  report.kernels = take_kernels();
  report.copies = transfers_of(copies_);
  report.fills = transfers_of(fills_);
  report.api = take_api();
  report.slowest_calls = std::move(slowest_);
  for (auto& [key, call] : failed_) report.failed_calls.push_back(std::move(call));
  report.ranges = range_usage_.take(ranges_);
  report.memory = memory_.take(*definitions_, ranges_, static_cast<std::int64_t>(manifest_->start_monotonic_ns));
  report.clocks = take_clocks();
  if (!overhead_samples_.empty()) report.overhead.program_ns = overhead_ns();
  return report;
}

}  // namespace xpu::profiler
