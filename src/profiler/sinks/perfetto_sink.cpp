#include "xpu/profiler/perfetto_sink.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "profiler/sinks/names.hpp"
#include "profiler/sinks/perfetto_arguments.hpp"
#include "profiler/sinks/perfetto_rows.hpp"
#include "profiler/time_difference.hpp"

namespace xpu::profiler {
namespace {

namespace fields = perfetto;

std::string_view state_name(CommandState state) {
  switch (state) {
    case CommandState::failed: return "failed";
    case CommandState::unfinished: return "unfinished";
    default: return "";
  }
}

Category category_of(ActivityKind kind) {
  switch (kind) {
    case ActivityKind::user_annotation: return Category::user_annotation;
    case ActivityKind::cpu_instant_event: return Category::cpu_instant_event;
    case ActivityKind::python_function: return Category::python_function;
    default: return Category::cpu_op;
  }
}

}  // namespace

struct PerfettoSink::Impl {
  Impl(Write write_function, Options sink_options)
      : options(std::move(sink_options)),
        write(std::move(write_function)),
        out([this](std::string_view piece) {
          if (status) status = write(piece);
        }),
        rows(out) {}

  /// What all track events of one kind have in common.
  struct Event {
    std::uint64_t track = 0;
    Category category = Category::xpu_runtime;
    std::uint64_t name = 0;       // interned, or
    std::string_view plain_name;  // as it is
  };

  [[gnu::always_inline]] void plain_event(std::int64_t ns, std::uint32_t type, std::uint64_t track) {
    const ProtoWriter::Message packet = rows.begin_packet(ns);
    out.message(fields::packet::kTrackEvent, fields::track_event::kType, type, fields::track_event::kTrackUuid, track);
    rows.end_packet(packet);
  }
  [[gnu::always_inline]] ProtoWriter::Message begin_track_event(std::uint32_t type, const Event& event) {
    namespace track_event = fields::track_event;
    if (event.name != 0) [[likely]] {
      return out.begin(fields::packet::kTrackEvent, track_event::kType, type, track_event::kTrackUuid, event.track,
                       track_event::kCategoryId, id_of(event.category), track_event::kNameId, event.name);
    }
    const ProtoWriter::Message message = out.begin(fields::packet::kTrackEvent, track_event::kType, type, track_event::kTrackUuid,
                                                   event.track, track_event::kCategoryId, id_of(event.category));
    out.text(track_event::kName, event.plain_name);
    return message;
  }
  template <typename WriteArguments>
  void named_event(std::int64_t ns, std::uint32_t type, const Event& event, WriteArguments&& arguments) {
    const ProtoWriter::Message packet = rows.begin_packet(ns);
    const ProtoWriter::Message message = begin_track_event(type, event);
    arguments();
    out.end(message);
    rows.end_packet(packet);
  }
  template <typename WriteArguments>
  void instant(std::int64_t ns, const Event& event, WriteArguments&& arguments) {
    named_event(ns, fields::track_event::kInstant, event, arguments);
  }
  /// Readers end the innermost slice that is open on the track, in the order of time and, where times are equal, of the file. Ours are not
  /// equal: between the end of one thing on a thread and the beginning of the next lies the cost of recording the first.
  template <typename WriteArguments>
  void slice(const Activity& activity, const Event& event, WriteArguments&& arguments) {
    named_event(activity.start_ns, fields::track_event::kSliceBegin, event, arguments);
    plain_event(end_ns(activity.start_ns, activity.duration_ns), fields::track_event::kSliceEnd, event.track);
    ++summary.slices;
  }
  void annotate(ArgumentName name, std::uint32_t value_field, std::integral auto value) {
    out.message(fields::track_event::kAnnotation, fields::annotation::kNameId, id_of(name), value_field, value);
  }

  /// `command`: what the held call submitted, or null where that has no slice.
  void settle_call(const DeviceActivity* command) {
    if (held_call) write_held_call(command);
  }
  void write_held_call(const DeviceActivity* command);
  template <typename WriteArguments>
  void command(const DeviceActivity& activity, std::uint64_t stage, std::uint64_t kernel, WriteArguments&& arguments);
  bool has_slice(const DeviceActivity& activity);
  void copied(const DeviceActivity& activity, std::uint64_t stage, const std::optional<std::uint64_t>& bytes, bool with_bandwidth);

  void launch_argument(ArgumentName name, std::uint32_t value_field, std::integral auto value) {
    out.message(fields::launch::kArgument, fields::launch::kNameId, id_of(name), value_field, value);
  }
  /// How long before the start of its command something was.
  void time_before(ArgumentName name, const DeviceActivity& activity, const std::optional<std::int64_t>& ns) {
    if (ns) launch_argument(name, fields::launch::kSigned, difference_ns(activity.start_ns, *ns));
  }

  Options options;
  Write write;
  Result<> status;
  ProtoWriter out;
  PerfettoRows rows;
  std::int64_t origin_ns = 0;
  std::uint64_t commands_expected = 0, commands_seen = 0;
  // The last call, until it is known whether its command, which comes right behind it, has a slice to point to.
  std::optional<RuntimeActivity> held_call;
  ExportSummary summary;
};

PerfettoSink::PerfettoSink(Write write, Options options) : impl_(std::make_unique<Impl>(std::move(write), std::move(options))) {}
PerfettoSink::~PerfettoSink() = default;

const ExportSummary& PerfettoSink::summary() const noexcept { return impl_->summary; }

void PerfettoSink::begin(const SessionInfo& info) {
  impl_->origin_ns = info.origin_ns;
  impl_->commands_expected = info.commands;
  impl_->rows.begin(info);
  for (const ParticipantReport& participant : info.participants) {
    for (const std::string& error : participant.errors) {
      const std::string name = valid_utf8("child profiler " + participant.name + ": " + error);
      impl_->instant(info.origin_ns, {impl_->rows.recording_track(), Category::xpu_recording, 0, name}, [] {});
    }
  }
}

void PerfettoSink::handle_runtime_activity(const RuntimeActivity& activity) {
  if (impl_->options.device_only) return;
  impl_->settle_call(nullptr);
  impl_->held_call = activity;
}

void PerfettoSink::Impl::write_held_call(const DeviceActivity* command) {
  const RuntimeActivity& call = *held_call;
  const std::uint64_t unknown = call.duration_known ? 0 : rows.string_value("unknown");
  slice(call, {rows.track(*call.thread), Category::xpu_runtime, rows.event_name(*call.api), {}}, [&] {
    annotate(ArgumentName::correlation, fields::annotation::kUnsigned, call.correlation);
    if (call.result != 0) annotate(ArgumentName::result, fields::annotation::kSigned, call.result);
    if (!call.duration_known) annotate(ArgumentName::end, fields::annotation::kStringId, unknown);
    if (command == nullptr) return;
    out.message(fields::track_event::kGpuCorrelation, fields::track_event::kSubmittedEventId, command->correlation);
    ++summary.flows;
  });
  held_call.reset();
}

bool PerfettoSink::Impl::has_slice(const DeviceActivity& activity) {
  constexpr std::uint64_t kEvery = 1u << 14;
  if (options.progress && ++commands_seen % kEvery == 0) options.progress(commands_seen, std::max(commands_seen, commands_expected));
  if (activity.timed && activity.placed) return true;
  if (activity.state != CommandState::refused) ++summary.untimed;
  return false;
}

/// The render stage with what all commands say of themselves. `kernel`: the interned one, or 0.
template <typename WriteArguments>
void PerfettoSink::Impl::command(const DeviceActivity& activity, std::uint64_t stage, std::uint64_t kernel, WriteArguments&& arguments) {
  const bool its_call = activity.call != nullptr && held_call && held_call->correlation == activity.call->correlation;
  settle_call(its_call ? &activity : nullptr);
  const std::uint64_t hardware_queue = rows.hardware_queue(*activity.queue, activity.lane);
  const std::uint64_t context = rows.context_of(*activity.queue);
  const std::string_view state = state_name(activity.state);
  const std::uint64_t state_id = state.empty() ? 0 : rows.string_value(state);
  const ProtoWriter::Message packet = rows.begin_packet(end_ns(activity.start_ns, activity.nudge_ns));
  namespace stage_event = fields::gpu_render_stage_event;
  const ProtoWriter::Message event =
      out.begin(fields::packet::kGpuRenderStageEvent, stage_event::kEventId, activity.correlation, stage_event::kDuration,
                activity.duration_ns, stage_event::kHardwareQueueId, hardware_queue, stage_event::kStageId, stage);
  if (activity.queue->device->index != 0) out.number(stage_event::kGpuId, activity.queue->device->index);
  out.number(stage_event::kContext, context, stage_event::kSubmissionId, activity.correlation);
  if (kernel != 0) out.number(stage_event::kComputeKernelId, kernel);
  const ProtoWriter::Message launch = out.begin(stage_event::kLaunch);
  arguments();
  if (activity.operation != nullptr) {
    launch_argument(ArgumentName::external_id, fields::launch::kUnsigned, activity.operation->external_id->id);
  } else if (!activity.external_ids.empty()) {
    launch_argument(ArgumentName::external_id, fields::launch::kUnsigned, activity.external_ids.front().id);
  }
  if (activity.graph_node) {
    launch_argument(ArgumentName::graph_id, fields::launch::kUnsigned, activity.graph_node->graph);
    launch_argument(ArgumentName::graph_node_id, fields::launch::kUnsigned, activity.graph_node->node);
  }
  time_before(ArgumentName::queued_before_ns, activity, activity.queued_ns);
  time_before(ArgumentName::submitted_before_ns, activity, activity.submitted_ns);
  if (activity.error_ns != 0) launch_argument(ArgumentName::clock_error_ns, fields::launch::kUnsigned, activity.error_ns);
  if (activity.nudge_ns != 0) launch_argument(ArgumentName::moved_ns, fields::launch::kUnsigned, activity.nudge_ns);
  if (state_id != 0) launch_argument(ArgumentName::state, fields::launch::kStringId, state_id);
  if (activity.state == CommandState::failed) launch_argument(ArgumentName::status, fields::launch::kSigned, activity.native_status);
  out.end(launch);
  out.end(event);
  rows.end_packet(packet);
  ++summary.slices;
  if (activity.lane != 0) ++summary.overlapping;
}

void PerfettoSink::handle_kernel_activity(const KernelActivity& activity) {
  Impl& impl = *impl_;
  if (!impl.has_slice(activity)) return;
  const std::uint64_t kernel = impl.rows.compute_kernel(*activity.kernel);
  const std::string_view launch = activity.geometry == nullptr ? std::string_view() : impl.rows.launch_fields(*activity.geometry);
  const std::string collective = activity.operation == nullptr ? std::string() : impl.rows.collective_fields(*activity.operation);
  impl.command(activity, impl.rows.stage(*activity.kernel), kernel, [&] {
    impl.out.raw(launch);
    impl.out.raw(collective);
  });
  ++impl.summary.kernels;
}

void PerfettoSink::Impl::copied(const DeviceActivity& activity, std::uint64_t stage, const std::optional<std::uint64_t>& bytes,
                                bool with_bandwidth) {
  command(activity, stage, 0, [&] {
    if (!bytes) return;
    launch_argument(ArgumentName::bytes, fields::launch::kUnsigned, *bytes);
    if (!with_bandwidth || activity.duration_ns == 0) return;
    const ProtoWriter::Message argument = out.begin(fields::launch::kArgument);
    out.number(fields::launch::kNameId, id_of(ArgumentName::bandwidth));
    // Bytes per nanosecond are GB/s.
    out.real(fields::launch::kDouble, static_cast<double>(*bytes) / static_cast<double>(activity.duration_ns));
    out.end(argument);
  });
}

void PerfettoSink::handle_memcpy_activity(const MemcpyActivity& activity) {
  if (!impl_->has_slice(activity)) return;
  impl_->copied(activity, impl_->rows.stage(activity), activity.bytes, true);
}

void PerfettoSink::handle_memset_activity(const MemsetActivity& activity) {
  if (!impl_->has_slice(activity)) return;
  impl_->copied(activity, impl_->rows.stage(activity), activity.bytes, false);
}

void PerfettoSink::handle_command_activity(const CommandActivity& activity) {
  if (!impl_->has_slice(activity)) return;
  impl_->command(activity, impl_->rows.stage(activity), 0, [] {});
}

void PerfettoSink::handle_synchronization_activity(const SynchronizationActivity& activity) {
  Impl& impl = *impl_;
  // A call that blocks is a slice already. Its wait begins with it and ends a little later: slices of a track must not cross.
  if (impl.options.device_only || activity.type == WaitType::blocking_call) return;
  impl.settle_call(nullptr);
  const std::uint64_t waits_for = impl.rows.string_value(to_string(activity.type));
  impl.slice(activity, {impl.rows.track(*activity.thread), Category::xpu_sync, impl.rows.event_name(*activity.api), {}}, [&] {
    impl.annotate(ArgumentName::waits_for, fields::annotation::kStringId, waits_for);
    if (activity.queue != nullptr) impl.annotate(ArgumentName::queue, fields::annotation::kUnsigned, activity.queue->index + 1);
    if (activity.wait_count != 0) impl.annotate(ArgumentName::events, fields::annotation::kUnsigned, activity.wait_count);
    if (activity.result != 0) impl.annotate(ArgumentName::result, fields::annotation::kSigned, activity.result);
  });
}

void PerfettoSink::handle_overhead_activity(const OverheadActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call(nullptr);
  impl.slice(activity, {impl.rows.overhead_track(*activity.thread), Category::overhead, 0, to_string(activity.type)},
             [&] { impl.annotate(ArgumentName::stands_for_calls, fields::annotation::kUnsigned, activity.count); });
}

void PerfettoSink::handle_communication_activity(const CommunicationActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call(nullptr);
  impl.slice(activity, {impl.rows.track(*activity.thread), Category::collective_comm, impl.rows.event_name(*activity.name), {}}, [&] {
    impl.annotate(ArgumentName::communicator, fields::annotation::kUnsigned, activity.communicator);
    impl.annotate(ArgumentName::bytes_sent, fields::annotation::kUnsigned, activity.send_bytes);
    impl.annotate(ArgumentName::bytes_received, fields::annotation::kUnsigned, activity.receive_bytes);
  });
}

void PerfettoSink::handle_memory_activity(const MemoryActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call(nullptr);
  const std::uint64_t track = impl.rows.memory_counter(*activity.process, activity.context);
  const ProtoWriter::Message packet = impl.rows.begin_packet(activity.start_ns);
  impl.out.message(fields::packet::kTrackEvent, fields::track_event::kType, fields::track_event::kCounter, fields::track_event::kTrackUuid,
                   track, fields::track_event::kCounterValue, activity.alive_bytes);
  impl.rows.end_packet(packet);
}

void PerfettoSink::handle_annotation_activity(const AnnotationActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call(nullptr);
  if (activity.type == AnnotationActivity::Type::counter) {
    const std::uint64_t track = impl.rows.counter(*activity.process, *activity.text);
    const ProtoWriter::Message packet = impl.rows.begin_packet(activity.start_ns);
    const ProtoWriter::Message counter = impl.out.begin(fields::packet::kTrackEvent, fields::track_event::kType,
                                                        fields::track_event::kCounter, fields::track_event::kTrackUuid, track);
    impl.out.real(fields::track_event::kDoubleCounterValue, activity.value);
    impl.out.end(counter);
    impl.rows.end_packet(packet);
    return;
  }
  const Impl::Event event{impl.rows.track(*activity.thread), Category::user_annotation, impl.rows.event_name(*activity.text), {}};
  if (activity.type == AnnotationActivity::Type::mark) return impl.instant(activity.start_ns, event, [] {});
  const std::uint64_t unknown = activity.duration_known ? 0 : impl.rows.string_value("unknown");
  impl.slice(activity, event, [&] {
    if (unknown != 0) impl.annotate(ArgumentName::end, fields::annotation::kStringId, unknown);
  });
}

void PerfettoSink::handle_loss_activity(const LossActivity& activity) {
  Impl& impl = *impl_;
  impl.settle_call(nullptr);
  const std::string name = loss_name(activity);
  impl.instant(activity.start_ns, {impl.rows.loss_track(*activity.process), Category::xpu_lost, 0, name}, [&] {
    if (activity.queue != nullptr) impl.annotate(ArgumentName::queue, fields::annotation::kUnsigned, activity.queue->index + 1);
  });
}

Result<> PerfettoSink::flush(const LinkSummary&) {
  impl_->settle_call(nullptr);
  impl_->out.flush();
  return impl_->status;
}

void PerfettoSink::handle_cpu_operation_activity(const CpuOperationActivity& activity) {
  Impl& impl = *impl_;
  if (impl.options.device_only) return;
  impl.settle_call(nullptr);
  const Impl::Event event{impl.rows.track(*activity.thread), category_of(activity.kind), impl.rows.event_name(*activity.name), {}};
  const auto write_more = [&] {
    if (activity.external_id) impl.annotate(ArgumentName::external_id, fields::annotation::kUnsigned, activity.external_id->id);
    for (const CpuArgument& argument : activity.arguments) write_argument(impl.out, argument);
    if (!activity.is_finished) impl.annotate(ArgumentName::finished, fields::annotation::kBool, 0);
    if (!activity.flow) return;
    impl.out.fixed(fields::track_event::kFlowId, activity.flow->id);
    if (activity.flow->is_start) ++impl.summary.flows;
  };
  if (activity.kind == ActivityKind::cpu_instant_event) {
    impl.instant(activity.start_ns, event, write_more);
  } else {
    impl.slice(activity, event, write_more);
  }
}

void PerfettoSink::handle_device_annotation_activity(const DeviceAnnotationActivity& activity) {
  Impl& impl = *impl_;
  impl.settle_call(nullptr);
  namespace stage_event = fields::gpu_render_stage_event;
  const std::uint64_t hardware_queue = impl.rows.annotation_queue(*activity.queue, activity.lane);
  const std::uint64_t context = impl.rows.context_of(*activity.queue);
  const std::uint64_t stage = impl.rows.annotation_stage(activity.name);
  const ProtoWriter::Message packet = impl.rows.begin_packet(activity.start_ns);
  const ProtoWriter::Message event =
      impl.out.begin(fields::packet::kGpuRenderStageEvent, stage_event::kDuration, activity.duration_ns, stage_event::kHardwareQueueId,
                     hardware_queue, stage_event::kStageId, stage, stage_event::kContext, context);
  if (activity.queue->device->index != 0) impl.out.number(stage_event::kGpuId, activity.queue->device->index);
  const ProtoWriter::Message launch = impl.out.begin(stage_event::kLaunch);
  impl.launch_argument(ArgumentName::commands, fields::launch::kUnsigned, activity.commands);
  if (activity.external_id) impl.launch_argument(ArgumentName::external_id, fields::launch::kUnsigned, activity.external_id->id);
  impl.out.end(launch);
  impl.out.end(event);
  impl.rows.end_packet(packet);
  ++impl.summary.slices;
}

Result<> PerfettoSink::end(const LinkSummary& summary) {
  Impl& impl = *impl_;
  impl.settle_call(nullptr);
  // What is missing stands in the trace itself, at its beginning.
  impl.instant(impl.origin_ns, {impl.rows.recording_track(), Category::xpu_recording, 0, "recording"}, [&] {
    const auto count = [&](ArgumentName name, std::uint64_t value) { impl.annotate(name, fields::annotation::kUnsigned, value); };
    count(ArgumentName::lost, summary.lost);
    count(ArgumentName::pending, summary.pending);
    count(ArgumentName::without_times, summary.untimed);
    count(ArgumentName::without_place, summary.unplaced);
    count(ArgumentName::completions_without_call, summary.orphans);
    const auto count_unless_none = [&](ArgumentName name, std::uint64_t value) {
      if (value != 0) count(name, value);
    };
    count_unless_none(ArgumentName::discarded_cpu_traces, summary.discarded_cpu_traces);
    count_unless_none(ArgumentName::discarded_cpu_operations, summary.discarded_cpu_operations);
    count_unless_none(ArgumentName::dangling_flow_ends, summary.dangling_flow_ends);
  });
  impl.out.flush();
  return impl.status;
}

}  // namespace xpu::profiler
