#include "profiler/link/linking.hpp"

#include <string_view>

#include "base/probe.hpp"
#include "profiler/link/record_cast.hpp"

namespace xpu::profiler {
namespace {

using trace::RecordKind;

// Activities are public and the probe is not, so the numbers exist twice.
template <typename Ours, typename Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<std::uint32_t>(ours) == static_cast<std::uint32_t>(theirs);
}
static_assert(same(Command::ndrange_kernel, probe::Command::ndrange_kernel) && same(Command::read, probe::Command::read) &&
              same(Command::fill, probe::Command::fill) && same(Command::marker, probe::Command::marker) &&
              same(Command::release_external, probe::Command::release_external));
static_assert(same(CopyDirection::peer, probe::CopyDirection::peer) && same(MemoryType::image, probe::MemoryType::image) &&
              same(WaitType::stream_on_event, probe::WaitType::stream_on_event));

/// Sets start and duration from a pair of host times; false when the end is not known.
bool set_host_times(Activity& activity, std::uint64_t enter_ns, std::uint64_t exit_ns) {
  activity.start_ns = static_cast<std::int64_t>(enter_ns);
  const bool known = exit_ns >= enter_ns && exit_ns != 0;
  activity.duration_ns = known ? exit_ns - enter_ns : 0;
  return known;
}

/// By its name: Level Zero's functions begin with ze, zes or zet.
bool is_of_driver(std::string_view api) {
  if (!api.starts_with("ze")) return false;
  api.remove_prefix(api.size() > 2 && (api[2] == 's' || api[2] == 't') ? 3 : 2);
  return !api.empty() && api.front() >= 'A' && api.front() <= 'Z';
}

CopyDirection direction_of(Command command, const CopyFacts* facts) {
  if (facts != nullptr && facts->direction != 0) return static_cast<CopyDirection>(facts->direction);
  if (command == Command::read) return CopyDirection::device_to_host;
  if (command == Command::write) return CopyDirection::host_to_device;
  return CopyDirection::unknown;
}

std::int64_t origin_of(const trace::Manifest& manifest, std::int64_t first_command_ns) {
  if (manifest.start_monotonic_ns != 0) return static_cast<std::int64_t>(manifest.start_monotonic_ns);
  return first_command_ns == INT64_MAX ? 0 : first_command_ns;
}

}  // namespace

Linking::Linking(const RecordSource& record_source, std::size_t most_readings)
    : source(record_source),
      definitions(record_source, most_readings),
      completions(record_source.processes().size()),
      external_ids(record_source.processes().size()),
      graph_nodes(record_source.processes().size()),
      lost(record_source.processes().size()),
      threads_(record_source.processes().size()),
      stops_ns_(record_source.processes().size()) {}

void Linking::finish_summary() {
  summary.filtered = 0;
  for (const trace::ProcessInfo& process : source.processes()) summary.filtered += process.filtered;
  summary.errors.unexpected_records = summary.orphans + summary.duplicates;
}

SessionInfo Linking::info() const {
  SessionInfo info;
  info.manifest = &source.manifest();
  info.definitions = &definitions.definitions();
  info.commands = completions.size();
  info.origin_ns = origin_of(*info.manifest, completions.earliest_ns());
  return info;
}

void Linking::read(std::size_t process, const trace::RecordHeader& header, CompletionAge age) {
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::operation_completed:
      if (const auto* completed = record_cast<trace::OperationCompletedRecord>(header)) completions.add(process, *completed, age);
      break;
    case RecordKind::copy_detail:
      if (const auto* copy = record_cast<trace::CopyDetailRecord>(header)) completions.add(process, *copy);
      break;
    case RecordKind::graph_node:
      if (const auto* node = record_cast<trace::GraphNodeRecord>(header)) graph_nodes.add(process, *node);
      break;
    case RecordKind::external_correlation:
      if (const auto* external = record_cast<trace::ExternalCorrelationRecord>(header)) external_ids.add(process, *external);
      break;
    case RecordKind::loss:
      if (const auto* loss = record_cast<trace::LossRecord>(header)) lost.add(process, *loss);
      break;
    case RecordKind::session:
      if (const auto* session = record_cast<trace::SessionRecord>(header)) see_stop(process, *session);
      break;
    default: definitions.add(process, header, (age & Completion::kYoung) != 0);
  }
}

void Linking::read_host_hint(std::size_t process, const trace::RecordHeader& header) {
  if (static_cast<RecordKind>(header.kind) != RecordKind::operation_submitted) return;
  const auto* submitted = record_cast<trace::OperationSubmittedRecord>(header);
  if (submitted != nullptr && process < threads_.size())
    completions.set_host_hint(process, submitted->operation, submitted->enter_ns, definitions);
}

void Linking::hand_over(std::size_t process, const trace::RecordHeader& header, Sink& sink) {
  if (process >= threads_.size()) return;
  const auto dispatch = [&]<typename Record>(const Record*) {
    if (const auto* record = record_cast<Record>(header)) hand_over(process, *record, sink);
  };
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::operation_submitted: dispatch(static_cast<const trace::OperationSubmittedRecord*>(nullptr)); break;
    case RecordKind::api_call: dispatch(static_cast<const trace::ApiCallRecord*>(nullptr)); break;
    case RecordKind::synchronization: dispatch(static_cast<const trace::SynchronizationRecord*>(nullptr)); break;
    case RecordKind::memory: dispatch(static_cast<const trace::MemoryRecord*>(nullptr)); break;
    case RecordKind::loss: dispatch(static_cast<const trace::LossRecord*>(nullptr)); break;
    case RecordKind::overhead: dispatch(static_cast<const trace::OverheadRecord*>(nullptr)); break;
    case RecordKind::communication: dispatch(static_cast<const trace::CommunicationRecord*>(nullptr)); break;
    case RecordKind::call_begin:
      if (const auto* begin = record_cast<trace::CallBeginRecord>(header)) see_begin(process, *begin);
      break;
    case RecordKind::annotation:
      if (ranges != nullptr) break;  // it knows them all
      if (const auto* annotation = record_cast<trace::AnnotationRecord>(header)) annotations.add(definitions, process, *annotation);
      break;
    default: break;
  }
}

void Linking::hand_over(std::size_t process, const trace::OperationSubmittedRecord& record, Sink& sink) {
  const Completion* completion = completions.find(process, record.operation);
  if (completion != nullptr && completion->has(Completion::kLinked)) {
    ++summary.duplicates;
    return;
  }
  RuntimeActivity call;
  call.process = &definitions.process(process);
  call.thread = &definitions.thread(process, record.thread);
  call.api = &definitions.name(process, record.api);
  call.correlation = next_correlation_++;
  call.result = record.result;
  call.submits = true;
  call.failed = (record.header.flags & trace::kFlagFailed) != 0;
  call.duration_known = set_host_times(call, record.enter_ns, (record.header.flags & trace::kFlagExitUnknown) ? 0 : record.exit_ns);
  call.external_ids = external_ids.find(process, record.operation);
  external_ids_used += call.external_ids.size();
  saw_return(process, record.thread, record.enter_ns);
  hand_over_external_ids(call, sink);
  hand_over_call(call, sink);
  hand_over_command(process, record, call, sink);
}

void Linking::hand_over_external_ids(const RuntimeActivity& call, Sink& sink) {
  for (const ExternalId& external : call.external_ids) {
    ExternalCorrelationActivity activity;
    activity.start_ns = call.start_ns;
    activity.correlation = call.correlation;
    activity.process = call.process;
    activity.thread = call.thread;
    activity.external = external;
    sink.handle_external_correlation_activity(activity);
  }
}

void Linking::hand_over_call(const RuntimeActivity& call, Sink& sink) {
  if (call.api == definitions.unnamed()) [[unlikely]]
    ++summary.errors.unnamed_calls;
  if (!is_of_driver(call.api->text)) return sink.handle_runtime_activity(call);
  sink.handle_driver_activity(DriverActivity{call});
}

/// Fills in what is the same for every kind of command.
void Linking::complete(DeviceActivity& activity, std::size_t process, const trace::OperationSubmittedRecord& record) {
  activity.queue = &definitions.queue(process, record.queue);
  if (is_refused(record)) {
    ++summary.refused;
    activity.state = CommandState::refused;
    return;
  }
  ++summary.commands;
  Completion* completion = completions.find(process, record.operation);
  if (completion == nullptr) {
    const bool is_lost = lost.covers(process, record.queue, record.operation);
    activity.state = is_lost ? CommandState::lost : CommandState::pending;
    ++(is_lost ? summary.lost : summary.pending);
    return;
  }
  ++summary.linked;
  completion->flags |= Completion::kLinked;
  activity.queue = &definitions.queue(process, completion->queue);
  activity.native_status = completion->status;
  activity.state = completion->has(Completion::kFailed)       ? CommandState::failed
                   : completion->has(Completion::kUnfinished) ? CommandState::unfinished
                                                              : CommandState::completed;
  activity.timed = completion->has(Completion::kTimed);
  activity.placed = completion->has(Completion::kPlaced);
  if (!activity.timed) {
    ++summary.untimed;
    return;
  }
  if (!activity.placed) ++summary.unplaced;
  activity.start_ns = completion->start_ns;
  activity.duration_ns = completion->duration_ns;
  activity.error_ns = completion->error_ns;
  activity.lane = completion->lane;
  activity.nudge_ns = completion->nudge_ns;
  if (completion->has(Completion::kQueued))
    activity.queued_ns = completion->start_ns - static_cast<std::int64_t>(completion->queued_before_ns);
  if (completion->has(Completion::kSubmit))
    activity.submitted_ns = completion->start_ns - static_cast<std::int64_t>(completion->submit_before_ns);
  if (activity.placed) check_times(activity, process);
}

void Linking::hand_over_command(std::size_t process, const trace::OperationSubmittedRecord& record, const RuntimeActivity& call,
                                Sink& sink) {
  const auto command = static_cast<Command>(record.header.flags >> trace::kCommandShift);
  const auto fill_in = [&](DeviceActivity& activity) {
    activity.process = call.process;
    activity.call = &call;
    activity.correlation = call.correlation;
    activity.external_ids = call.external_ids;
    if (operations != nullptr && !operations->is_empty()) operations->link(activity);
    if (ranges != nullptr) activity.range = ranges->find(*call.thread, call.start_ns);
    activity.graph_node = graph_nodes.find(process, record.operation);
    activity.command = command;
    complete(activity, process, record);
  };
  switch (command) {
    case Command::ndrange_kernel:
    case Command::task_kernel:
    case Command::native_kernel: {
      KernelActivity kernel;
      fill_in(kernel);
      kernel.kernel = &definitions.kernel(process, record.what);
      kernel.geometry = definitions.geometry(process, record.geometry);
      sink.handle_kernel_activity(kernel);
      return;
    }
    case Command::read:
    case Command::write:
    case Command::copy:
    case Command::map:
    case Command::unmap:
    case Command::migrate: {
      PeerMemcpyActivity copy;
      fill_in(copy);
      const CopyFacts* facts = completions.find_copy(process, record.operation);
      copy.direction = direction_of(command, facts);
      if (facts != nullptr) {
        copy.source = static_cast<MemoryType>(facts->source_type);
        copy.destination = static_cast<MemoryType>(facts->destination_type);
        copy.bytes = facts->bytes;
        copy.peer = definitions.find_device(process, facts->peer_device);
      }
      if (copy.direction == CopyDirection::peer) {
        sink.handle_peer_memcpy_activity(copy);
      } else {
        sink.handle_memcpy_activity(copy);
      }
      return;
    }
    case Command::fill: {
      MemsetActivity fill;
      fill_in(fill);
      const CopyFacts* facts = completions.find_copy(process, record.operation);
      if (facts != nullptr) {
        fill.destination = static_cast<MemoryType>(facts->destination_type);
        fill.bytes = facts->bytes;
      }
      sink.handle_memset_activity(fill);
      return;
    }
    default: {
      CommandActivity other;
      fill_in(other);
      sink.handle_command_activity(other);
      return;
    }
  }
}

void Linking::hand_over(std::size_t process, const trace::ApiCallRecord& record, Sink& sink) {
  RuntimeActivity call;
  call.process = &definitions.process(process);
  call.thread = &definitions.thread(process, record.thread);
  call.api = &definitions.name(process, record.api);
  call.correlation = next_correlation_++;
  call.result = record.result;
  call.failed = record.result != 0;
  call.duration_known = set_host_times(call, record.enter_ns, record.exit_ns);
  saw_return(process, record.thread, record.enter_ns);
  hand_over_call(call, sink);
}

void Linking::hand_over(std::size_t process, const trace::SynchronizationRecord& record, Sink& sink) {
  SynchronizationActivity wait;
  wait.process = &definitions.process(process);
  wait.thread = &definitions.thread(process, record.thread);
  wait.api = &definitions.name(process, record.api);
  wait.queue = record.queue == 0 ? nullptr : &definitions.queue(process, record.queue);
  wait.type = static_cast<WaitType>(record.type);
  wait.context = record.context;
  wait.wait_count = record.wait_count;
  wait.result = record.result;
  set_host_times(wait, record.enter_ns, record.exit_ns);
  saw_return(process, record.thread, record.enter_ns);
  sink.handle_synchronization_activity(wait);
}

void Linking::hand_over(std::size_t process, const trace::MemoryRecord& record, Sink& sink) {
  MemoryActivity memory;
  memory.process = &definitions.process(process);
  memory.thread = record.thread == 0 ? nullptr : &definitions.thread(process, record.thread);
  memory.start_ns = static_cast<std::int64_t>(record.time_ns);
  memory.allocates = record.action == static_cast<std::uint8_t>(probe::MemoryAction::allocate);
  memory.type = static_cast<MemoryType>(record.type);
  memory.address = record.address;
  memory.bytes = record.bytes;
  memory.alive_bytes = record.total;
  memory.context = record.context;
  sink.handle_memory_activity(memory);
}

void Linking::hand_over(std::size_t process, const trace::LossRecord& record, Sink& sink) {
  LossActivity loss;
  loss.process = &definitions.process(process);
  loss.start_ns = static_cast<std::int64_t>(record.time_ns);
  loss.queue = record.queue == 0 ? nullptr : &definitions.queue(process, record.queue);
  loss.cause = record.cause;
  loss.count = record.count;
  loss.commands = (record.header.flags & trace::kFlagNotOperation) == 0;
  const auto cause = static_cast<probe::LossCause>(record.cause);
  if (cause == probe::LossCause::no_chunk || cause == probe::LossCause::ring_full) summary.errors.dropped_for_room += record.count;
  sink.handle_loss_activity(loss);
}

void Linking::hand_over(std::size_t process, const trace::OverheadRecord& record, Sink& sink) {
  OverheadActivity overhead;
  overhead.process = &definitions.process(process);
  overhead.thread = &definitions.thread(process, record.thread);
  const bool is_known = record.type <= static_cast<std::uint32_t>(OverheadType::driver);
  overhead.type = is_known ? static_cast<OverheadType>(record.type) : OverheadType::unknown;
  overhead.count = record.count;
  set_host_times(overhead, record.begin_ns, record.end_ns);
  sink.handle_overhead_activity(overhead);
}

void Linking::hand_over(std::size_t process, const trace::CommunicationRecord& record, Sink& sink) {
  CommunicationActivity communication;
  communication.process = &definitions.process(process);
  communication.thread = &definitions.thread(process, record.thread);
  communication.name = &definitions.name(process, record.name);
  communication.communicator = record.communicator;
  communication.send_bytes = record.send_bytes;
  communication.receive_bytes = record.receive_bytes;
  set_host_times(communication, record.begin_ns, record.end_ns);
  sink.handle_communication_activity(communication);
}

void Linking::see_stop(std::size_t process, const trace::SessionRecord& record) {
  if (process >= stops_ns_.size() || record.what != static_cast<std::uint32_t>(trace::SessionEvent::stop)) return;
  stops_ns_[process] = std::max(stops_ns_[process], record.time_ns);
}

/// Only what is surely so counts: within the error of the clock a command may have been in order, and in time.
void Linking::check_times(DeviceActivity& activity, std::size_t process) {
  const auto error_ns = static_cast<std::int64_t>(activity.error_ns);
  // The call that submitted it, never one that another layer made of it.
  if (activity.start_ns + error_ns < activity.call->start_ns) ++summary.errors.before_call;
  if (stops_ns_[process] == 0) return;
  const auto end_ns = activity.start_ns + static_cast<std::int64_t>(activity.duration_ns);
  activity.ends_late = end_ns - error_ns > static_cast<std::int64_t>(stops_ns_[process]);
  if (activity.ends_late) ++summary.errors.out_of_range;
}

void Linking::see_begin(std::size_t process, const trace::CallBeginRecord& record) {
  ThreadState& state = threads_[process][record.thread];
  if (record.enter_ns < state.last_begin_ns) return;
  state.last_begin_ns = record.enter_ns;
  state.last_begin_api = record.api;
}

void Linking::hand_over_hung_calls(Sink& sink) {
  for (std::size_t process = 0; process < threads_.size(); ++process) {
    threads_[process].for_each([&](std::uint64_t writer, const ThreadState& state) {
      if (state.last_begin_ns <= state.last_return_ns) return;
      RuntimeActivity call;
      call.process = &definitions.process(process);
      call.thread = &definitions.thread(process, static_cast<std::uint32_t>(writer));
      call.api = &definitions.name(process, state.last_begin_api);
      call.correlation = next_correlation_++;
      call.duration_known = set_host_times(call, state.last_begin_ns, 0);
      hand_over_call(call, sink);
    });
  }
}

}  // namespace xpu::profiler
