#include "xpu/profiler/chrome_sink.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "profiler/sinks/argument_text.hpp"
#include "profiler/sinks/chrome_head.hpp"
#include "profiler/sinks/chrome_rows.hpp"
#include "profiler/sinks/chrome_text.hpp"
#include "profiler/sinks/fragments.hpp"
#include "profiler/sinks/json_writer.hpp"
#include "profiler/sinks/names.hpp"
#include "profiler/time_difference.hpp"

namespace xpu::profiler {

struct ChromeSink::Impl {
  Impl(Write write_function, Options sink_options)
      : options(std::move(sink_options)), write(std::move(write_function)), out([this](std::string_view piece) {
          if (status) status = write(piece);
        }) {}

  /// Begins an event, whose text begins with a comma; the first event leaves that out.
  template <typename... Pieces>
  [[gnu::always_inline]] void event(std::string_view head, const Pieces&... pieces) {
    if (first_event) [[unlikely]] {
      first_event = false;
      out.append(head.substr(1), pieces...);
    } else {
      out.append(head, pieces...);
    }
  }
  JsonWriter::Microseconds time(std::int64_t ns) const { return {difference_ns(ns, base_ns)}; }
  /// An event with a start and a length; `row` is one of `rows`.
  [[gnu::always_inline]] void slice(std::string_view head, std::string_view row, std::int64_t start_ns, std::uint64_t duration_ns) {
    event(head, row, time(start_ns), ",\"dur\":", JsonWriter::Thousandths{duration_ns});
    ++summary.slices;
  }

  void write_call(const RuntimeActivity& call, std::string_view alias);
  /// Before anything else is written, or even prepared.
  void settle_call(std::string_view alias = {}) {
    if (waiting_call) [[unlikely]]
      write_call(*std::exchange(waiting_call, std::nullopt), alias);
  }
  /// Where names are not our own: the call that submitted this command is named so.
  void settle_call_of(const DeviceActivity& activity, std::string_view alias) {
    settle_call(waiting_call && activity.correlation == waiting_call->correlation ? alias : std::string_view());
  }
  bool has_slice(const DeviceActivity& activity);
  void begin_command(const DeviceActivity& activity, std::string_view head);
  void begin_arguments(const DeviceActivity& activity) {
    out.append(",\"args\":{\"correlation\":", activity.correlation, rows.args_of(*activity.queue));
  }
  void end_command(const DeviceActivity& activity);
  void progress();
  void write_flow(const CpuOperationActivity& activity);

  void write_head(const SessionInfo& info);
  void write_devices();
  void add_legacy_times(const DeviceActivity& activity);
  void add_legacy_copy(const DeviceActivity& activity);

  Options options;
  Write write;
  Result<> status;
  JsonWriter out;
  const Definitions* definitions = nullptr;
  std::int64_t base_ns = 0;
  std::uint64_t commands_expected = 0, commands_seen = 0;
  bool first_event = true;
  bool devices_come_last = false;
  Fragments cpu_heads[kActivityKinds];  // by kind, then name
  Fragments api_heads, wait_heads, overhead_heads, communication_heads, range_heads, counter_heads, mark_heads, kernel_heads, kernel_tails,
      geometry_tails, fill_heads, command_heads;
  std::unordered_map<std::uint32_t, std::string> copy_heads;  // by `name_key`
  std::optional<RuntimeActivity> waiting_call;                // its command, which comes next, decides how it is named
  ChromeRows rows;
  ExportSummary summary;
};

ChromeSink::ChromeSink(Write write, Options options) : impl_(std::make_unique<Impl>(std::move(write), std::move(options))) {}
ChromeSink::~ChromeSink() = default;

const ExportSummary& ChromeSink::summary() const noexcept { return impl_->summary; }

void ChromeSink::begin(const SessionInfo& info) {
  impl_->definitions = info.definitions;
  impl_->rows.begin(*info.definitions);
  impl_->base_ns = info.origin_ns;
  impl_->commands_expected = info.commands;
  impl_->write_head(info);
}

void ChromeSink::Impl::write_head(const SessionInfo& info) {
  const trace::Manifest& manifest = *info.manifest;
  out.begin_object();
  out.member("schemaVersion", 1);
  out.raw("\n");
  devices_come_last = info.goes_on;
  if (!devices_come_last) write_devices();
  if (!manifest.xpu_version.empty()) out.member("xpu_version", manifest.xpu_version);
  if (!manifest.system.empty()) out.member("system", manifest.system);
  if (!manifest.host.empty()) out.member("host_name", manifest.host);
  write_distributed_info(out, info);
  write_participants(out, info.participants);
  out.key("program");
  out.begin_array();
  for (const std::string& argument : manifest.argv) out.value(argument);
  out.end_array();
  for (const auto& [key, text] : options.metadata) out.member(key, text);
  out.member("displayTimeUnit", "ms");
  out.member("baseTimeNanoseconds", manifest.start_realtime_ns + (static_cast<std::uint64_t>(base_ns) - manifest.start_monotonic_ns));
  out.raw("\n");
  out.key("traceEvents");
  out.begin_array();
}

void ChromeSink::Impl::write_devices() {
  write_device_properties(out, *definitions);
  write_drivers(out, *definitions);
}

void ChromeSink::handle_runtime_activity(const RuntimeActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call();
  if (impl.options.compatibility == Compatibility::hta && activity.submits && !activity.failed) {
    impl.waiting_call = activity;
  } else {
    impl.write_call(activity, {});
  }
}

void ChromeSink::Impl::write_call(const RuntimeActivity& call, std::string_view alias) {
  if (first_event) [[unlikely]] {
    // HTA links events by their index and takes 0 for "none": the first one is not to be a call.
    rows.of(*call.thread);
    event(rows.take_metadata());
  }
  const std::string_view category = options.compatibility == Compatibility::hta ? "cuda_runtime" : "xpu_runtime";
  const auto head = [&](std::string_view name) {
    return std::string(",\n{\"ph\":\"X\",\"cat\":\"").append(category).append("\",\"name\":").append(json_string(name)).append(",");
  };
  const std::string own_head = alias.empty() ? std::string() : head(alias);
  slice(alias.empty() ? api_heads.get(call.api->index, [&] { return head(call.api->text); }) : own_head, rows.of(*call.thread),
        call.start_ns, call.duration_ns);
  out.append(",\"args\":{\"correlation\":", call.correlation);
  if (!call.external_ids.empty()) out.append(",\"External id\":", call.external_ids.front().id);
  if (!alias.empty()) out.append(",\"api\":", json_string(call.api->text));
  if (call.result != 0) out.append(",\"result\":", call.result);
  if (!call.duration_known) out.raw(",\"end\":\"unknown\"");
  out.raw("}}");
}

bool ChromeSink::Impl::has_slice(const DeviceActivity& activity) {
  progress();
  if (activity.timed && activity.placed) return true;
  if (activity.state != CommandState::refused) ++summary.untimed;
  return false;
}

void ChromeSink::Impl::progress() {
  constexpr std::uint64_t kEvery = 1u << 14;
  if (options.progress && ++commands_seen % kEvery == 0) options.progress(commands_seen, std::max(commands_seen, commands_expected));
}

/// The arrow's start and the slice, up to where what is special about the command follows.
void ChromeSink::Impl::begin_command(const DeviceActivity& activity, std::string_view head) {
  if (activity.call != nullptr && !options.device_only) {
    event(",\n{\"ph\":\"s\",\"id\":", activity.correlation, ",\"cat\":\"ac2g\",\"name\":\"ac2g\",", rows.of(*activity.call->thread),
          time(activity.call->start_ns), "}");
  }
  slice(head, rows.of(*activity.queue, activity.lane), activity.start_ns + activity.nudge_ns, activity.duration_ns);
  if (activity.lane != 0) ++summary.overlapping;
}

/// What Kineto's plugin for XPUs says of times beside `submitted`, in numbers and with the right sign; only where readers ask for its
/// names.
void ChromeSink::Impl::add_legacy_times(const DeviceActivity& activity) {
  const auto since_start = [&](std::int64_t ns) { return JsonWriter::Microseconds{difference_ns(ns, activity.start_ns)}; };
  if (activity.queued_ns)
    out.append(",\"appended\":", time(*activity.queued_ns), ",\"appended_rel_to_start\":", since_start(*activity.queued_ns));
  if (activity.submitted_ns) out.append(",\"submitted_rel_to_start\":", since_start(*activity.submitted_ns));
  out.append(",\"sycl queue\":", activity.queue->index + 1);
}

/// The second key is spelled as that plugin spells it: readers look for it.
void ChromeSink::Impl::add_legacy_copy(const DeviceActivity& activity) {
  if (options.compatibility != Compatibility::hta) return;
  if (activity.call != nullptr) out.append(",\"l0 call\":", json_string(activity.call->api->text));
  out.append(",\"memory opration id\":", activity.correlation);
}

/// What all commands say of themselves, and the arrow's end.
void ChromeSink::Impl::end_command(const DeviceActivity& activity) {
  if (activity.operation != nullptr) {
    out.append(",\"External id\":", activity.operation->external_id->id);
  } else if (!activity.external_ids.empty()) {
    out.append(",\"External id\":", activity.external_ids.front().id);
  }
  if (activity.graph_node) out.append(",\"graph id\":", activity.graph_node->graph, ",\"graph node id\":", activity.graph_node->node);
  if (activity.queued_ns) out.append(",\"queued\":", time(*activity.queued_ns));
  if (activity.submitted_ns) out.append(",\"submitted\":", time(*activity.submitted_ns));
  if (activity.state == CommandState::failed) out.append(",\"status\":", activity.native_status);
  if (options.compatibility == Compatibility::hta) add_legacy_times(activity);
  if (activity.ends_late) out.raw(",\"ends\":\"after the stop\"");
  if (activity.nudge_ns != 0) out.append(",\"moved ns\":", activity.nudge_ns);
  out.raw("}}");
  if (activity.call != nullptr && !options.device_only) {
    event(",\n{\"ph\":\"f\",\"bp\":\"e\",\"id\":", activity.correlation, ",\"cat\":\"ac2g\",\"name\":\"ac2g\",",
          rows.of(*activity.queue, activity.lane), time(activity.start_ns + activity.nudge_ns), "}");
    ++summary.flows;
  }
}

void ChromeSink::handle_kernel_activity(const KernelActivity& activity) {
  Impl& impl = *impl_;
  impl.settle_call_of(activity, "cudaLaunchKernel");
  if (!impl.has_slice(activity)) return;
  const KernelDefinition& kernel = *activity.kernel;
  impl.begin_command(activity, impl.kernel_heads.get(kernel.index, [&] {
    return ",\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":" + json_string(kernel.name) + ',';
  }));
  impl.begin_arguments(activity);
  if (activity.geometry != nullptr) {
    impl.out.raw(impl.geometry_tails.get(activity.geometry->index, [&] { return geometry_args(*activity.geometry); }));
  }
  impl.out.raw(impl.kernel_tails.get(kernel.index, [&] { return kernel_args(kernel); }));
  if (activity.operation != nullptr && is_collective(activity.operation->arguments)) {
    std::string arguments;
    for (const CpuArgument& argument : activity.operation->arguments) {
      if (is_of_collective(argument)) append_arguments(arguments, {&argument, 1});
    }
    impl.out.raw(arguments);
  }
  if (impl.options.compatibility == Compatibility::hta) impl.out.append(",\"kernel_id\":", activity.correlation);
  impl.end_command(activity);
  ++impl.summary.kernels;
}

void ChromeSink::handle_memcpy_activity(const MemcpyActivity& activity) {
  Impl& impl = *impl_;
  impl.settle_call_of(activity, "cudaMemcpyAsync");
  if (!impl.has_slice(activity)) return;
  std::string& head = impl.copy_heads[name_key(activity)];
  if (head.empty()) head = ",\n{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"" + copy_name(activity) + "\",";
  impl.begin_command(activity, head);
  impl.begin_arguments(activity);
  impl.add_legacy_copy(activity);
  if (activity.bytes) {
    impl.out.append(",\"bytes\":", *activity.bytes);
    // Bytes per nanosecond are GB/s.
    const bool fits = *activity.bytes <= UINT64_MAX / 1000;
    if (activity.duration_ns != 0 && fits) {
      impl.out.append(",\"memory bandwidth (GB/s)\":", JsonWriter::Thousandths{*activity.bytes * 1000 / activity.duration_ns});
    }
  }
  impl.end_command(activity);
}

void ChromeSink::handle_memset_activity(const MemsetActivity& activity) {
  Impl& impl = *impl_;
  impl.settle_call_of(activity, "cudaMemsetAsync");
  if (!impl.has_slice(activity)) return;
  impl.begin_command(activity, impl.fill_heads.get(static_cast<std::size_t>(activity.destination), [&] {
    return ",\n{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"" + fill_name(activity) + "\",";
  }));
  impl.begin_arguments(activity);
  impl.add_legacy_copy(activity);
  if (activity.bytes) impl.out.append(",\"bytes\":", *activity.bytes);
  impl.end_command(activity);
}

void ChromeSink::handle_command_activity(const CommandActivity& activity) {
  Impl& impl = *impl_;
  impl.settle_call();
  if (!impl.has_slice(activity)) return;
  impl.begin_command(activity, impl.command_heads.get(static_cast<std::size_t>(activity.command), [&] {
    const std::string_view category = works(activity.command) ? "xpu_command" : "xpu_sync";
    return std::string(",\n{\"ph\":\"X\",\"cat\":\"")
        .append(category)
        .append("\",\"name\":\"")
        .append(to_string(activity.command))
        .append("\",");
  }));
  // Neither "stream" nor "correlation": readers would count a marker as computation, or as the second call of the pair.
  impl.out.append(",\"args\":{\"device\":", activity.queue->device->index, ",\"queue\":", activity.queue->index + 1);
  impl.end_command(activity);
}

void ChromeSink::handle_synchronization_activity(const SynchronizationActivity& activity) {
  Impl& impl = *impl_;
  // A call that blocks is a slice already. Its wait begins with it and ends a little later, which viewers take for an overlap and drop.
  if (impl.options.device_only || activity.type == WaitType::blocking_call) return;
  impl.settle_call();
  JsonWriter& out = impl.out;
  const std::string& head = impl.wait_heads.get(
      activity.api->index, [&] { return ",\n{\"ph\":\"X\",\"cat\":\"xpu_sync\",\"name\":" + json_string(activity.api->text) + ','; });
  impl.slice(head, impl.rows.of(*activity.thread), activity.start_ns, activity.duration_ns);
  out.append(",\"args\":{\"waits for\":\"", to_string(activity.type), "\"");
  if (activity.queue != nullptr) out.append(",\"queue\":", activity.queue->index + 1);
  if (activity.wait_count != 0) out.append(",\"events\":", activity.wait_count);
  if (activity.result != 0) out.append(",\"result\":", activity.result);
  out.raw("}}");
}

void ChromeSink::handle_overhead_activity(const OverheadActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call();
  const std::string& head = impl.overhead_heads.get(static_cast<std::size_t>(activity.type), [&] {
    return std::string(",\n{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"").append(to_string(activity.type)).append("\",");
  });
  impl.slice(head, impl.rows.of_overhead(*activity.thread), activity.start_ns, activity.duration_ns);
  impl.out.append(",\"args\":{\"stands for calls\":", activity.count, "}}");
}

void ChromeSink::handle_communication_activity(const CommunicationActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call();
  const std::string& head = impl.communication_heads.get(activity.name->index, [&] {
    return ",\n{\"ph\":\"X\",\"cat\":\"collective_comm\",\"name\":" + json_string(activity.name->text) + ',';
  });
  impl.slice(head, impl.rows.of(*activity.thread), activity.start_ns, activity.duration_ns);
  impl.out.append(",\"args\":{\"communicator\":", activity.communicator, ",\"bytes sent\":", activity.send_bytes,
                  ",\"bytes received\":", activity.receive_bytes, "}}");
}

void ChromeSink::handle_memory_activity(const MemoryActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call();
  impl.rows.name_process(*activity.process);
  impl.event(",\n{\"ph\":\"C\",\"name\":\"memory of context ", activity.context, "\",\"pid\":", activity.process->pid,
             ",\"ts\":", impl.time(activity.start_ns), ",\"args\":{\"bytes\":", activity.alive_bytes, "}}");
}

void ChromeSink::handle_annotation_activity(const AnnotationActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call();
  JsonWriter& out = impl.out;
  // The same for every event of the name, up to the row.
  const auto head = [&](Fragments& heads, std::string_view begin) -> const std::string& {
    return heads.get(activity.text->index, [&] { return std::string(begin) + json_string(activity.text->text) + ','; });
  };
  switch (activity.type) {
    case AnnotationActivity::Type::range:
      impl.slice(head(impl.range_heads, ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"), impl.rows.of(*activity.thread),
                 activity.start_ns, activity.duration_ns);
      if (!activity.duration_known) out.raw(",\"args\":{\"end\":\"unknown\"}");
      out.raw("}");
      return;
    case AnnotationActivity::Type::counter:
      impl.event(head(impl.counter_heads, ",\n{\"ph\":\"C\",\"name\":"), impl.rows.of(*activity.thread), impl.time(activity.start_ns),
                 ",\"args\":{\"value\":");
      out.real(activity.value);
      out.raw("}}");
      return;
    case AnnotationActivity::Type::mark:
      impl.event(head(impl.mark_heads, ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"user_annotation\",\"name\":"),
                 impl.rows.of(*activity.thread), impl.time(activity.start_ns), "}");
      return;
  }
}

void ChromeSink::handle_loss_activity(const LossActivity& activity) {
  Impl& impl = *impl_;
  impl.settle_call();
  JsonWriter& out = impl.out;
  impl.event(",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"xpu_lost\",\"name\":\"", loss_name(activity), "\",");
  if (activity.queue != nullptr) {
    out.raw(impl.rows.of(*activity.queue, 0));
  } else {
    impl.rows.name_process(*activity.process);
    out.append("\"pid\":", activity.process->pid, ",\"tid\":0,\"ts\":");
  }
  out.append(impl.time(activity.start_ns), "}");
}

/// With the rows that are new, so that a trace that ends here has names for all of them.
Result<> ChromeSink::flush(const LinkSummary&) {
  Impl& impl = *impl_;
  impl.settle_call();
  if (const std::string metadata = impl.rows.take_metadata(); !metadata.empty()) impl.event(metadata);
  impl.out.flush();
  return impl.status;
}

void ChromeSink::handle_cpu_operation_activity(const CpuOperationActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call();
  const bool is_instant = activity.kind == ActivityKind::cpu_instant_event;
  const std::string& head = impl.cpu_heads[static_cast<std::size_t>(activity.kind)].get(activity.name->index, [&] {
    return std::string(is_instant ? ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"" : ",\n{\"ph\":\"X\",\"cat\":\"")
        .append(to_string(activity.kind))
        .append("\",\"name\":")
        .append(json_string(activity.name->text))
        .append(",");
  });
  const std::string& row = impl.rows.of(*activity.thread);
  if (is_instant) {
    impl.event(head, row, impl.time(activity.start_ns));
  } else {
    impl.slice(head, row, activity.start_ns, activity.duration_ns);
  }
  std::string arguments;
  if (activity.external_id) arguments += ",\"External id\":" + std::to_string(activity.external_id->id);
  append_arguments(arguments, activity.arguments);
  if (!activity.is_finished) arguments += ",\"finished\":false";
  if (!arguments.empty()) impl.out.append(",\"args\":{", std::string_view(arguments).substr(1), "}");
  impl.out.raw("}");
  if (activity.flow) impl.write_flow(activity);
}

/// The end of the arrow that is at this operation, which has been written.
void ChromeSink::Impl::write_flow(const CpuOperationActivity& activity) {
  const CpuFlow& flow = *activity.flow;
  event(flow.is_start ? ",\n{\"ph\":\"s\",\"id\":" : ",\n{\"ph\":\"f\",\"bp\":\"e\",\"id\":", flow.id,
        ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",", rows.of(*activity.thread), time(activity.start_ns), "}");
  if (flow.is_start) ++summary.flows;
}

void ChromeSink::handle_device_annotation_activity(const DeviceAnnotationActivity& activity) {
  Impl& impl = *impl_;
  impl.settle_call();
  const std::string head = ",\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":" + json_string(activity.name) + ',';
  impl.slice(head, impl.rows.of_annotations(*activity.queue, activity.lane), activity.start_ns, activity.duration_ns);
  // No "stream": readers would count it as computation.
  impl.out.append(",\"args\":{\"device\":", activity.queue->device->index, ",\"queue\":", activity.queue->index + 1,
                  ",\"commands\":", activity.commands);
  if (activity.external_id) impl.out.append(",\"External id\":", activity.external_id->id);
  impl.out.raw("}}");
}

Result<> ChromeSink::end(const LinkSummary& summary) {
  Impl& impl = *impl_;
  JsonWriter& out = impl.out;
  impl.settle_call();
  if (const std::string metadata = impl.rows.take_metadata(); !metadata.empty()) impl.event(metadata);
  out.raw("\n");
  out.end_array();
  out.raw("\n");
  if (impl.devices_come_last) impl.write_devices();
  out.key("droppedRecords");
  out.begin_object();
  out.member("lost", summary.lost);
  out.member("pending", summary.pending);
  out.member("without times", summary.untimed);
  out.member("without place in time", summary.unplaced);
  out.member("completions without call", summary.orphans);
  // Of a framework, which most profiles have none of.
  const auto member_unless_none = [&](std::string_view name, std::uint64_t count) {
    if (count != 0) out.member(name, count);
  };
  member_unless_none("CPU traces out of time", summary.discarded_cpu_traces);
  member_unless_none("CPU operations discarded", summary.discarded_cpu_operations);
  member_unless_none("dangling flow ends", summary.dangling_flow_ends);
  out.end_object();
  out.raw("\n");
  const ErrorStatistics& errors = summary.errors;
  out.key("errorStatistics");
  out.begin_object();
  out.member("external ids without operation", errors.unused_external_ids);
  out.member("out of range", errors.out_of_range);
  out.member("before their call", errors.before_call);
  out.member("calls without a name", errors.unnamed_calls);
  out.member("unexpected records", errors.unexpected_records);
  out.member("dropped for room", errors.dropped_for_room);
  out.member("records that were there twice", summary.duplicates);
  out.member("refused calls", summary.refused);
  out.end_object();
  out.raw("\n");
  out.key("filtered");
  out.begin_object();
  out.member("not recorded", summary.filtered);
  out.member("left out", summary.left_out);
  out.end_object();
  out.raw("\n");
  out.key("writtenEvents");
  out.begin_object();
  out.member("commands", summary.commands);
  out.member("slices of commands", summary.linked - summary.untimed - summary.unplaced);
  out.member("slices", impl.summary.slices);
  out.member("kernels", impl.summary.kernels);
  out.member("flows", impl.summary.flows);
  member_unless_none("CPU operations", impl.options.device_only ? 0 : summary.cpu_operations);
  out.end_object();
  out.raw("\n");
  out.key("clocks");
  out.begin_array();
  for (const ClockDefinition& clock : impl.definitions->clocks) {
    out.begin_object();
    out.member("device", clock.device->index);
    out.member("pid", clock.process->pid);
    out.member("readings", clock.readings);
    out.member("error median ns", clock.error_median_ns);
    out.member("error max ns", clock.error_max_ns);
    out.end_object();
  }
  out.end_array();
  out.member("traceName", impl.options.name);
  out.end_object();
  out.raw("\n");
  out.flush();
  return impl.status;
}

}  // namespace xpu::profiler
