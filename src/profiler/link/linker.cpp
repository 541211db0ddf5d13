#include "xpu/profiler/linker.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/probe.hpp"
#include "profiler/link/annotation_pairs.hpp"
#include "profiler/link/completion_index.hpp"
#include "profiler/link/definition_table.hpp"
#include "profiler/link/external_ids.hpp"
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

constexpr std::array kFirstPass = {RecordKind::string,      RecordKind::process,
                                   RecordKind::thread,      RecordKind::device,
                                   RecordKind::fact,        RecordKind::queue,
                                   RecordKind::kernel,      RecordKind::geometry,
                                   RecordKind::annotation,  RecordKind::clock_reading,
                                   RecordKind::loss,        RecordKind::operation_completed,
                                   RecordKind::copy_detail, RecordKind::external_correlation,
                                   RecordKind::session};
constexpr std::array kHintPass = {RecordKind::operation_submitted};
constexpr std::array kSecondPass = {
    RecordKind::operation_submitted, RecordKind::api_call, RecordKind::call_begin, RecordKind::synchronization, RecordKind::memory,
    RecordKind::annotation,          RecordKind::loss,     RecordKind::overhead};

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

Sink::~Sink() = default;
RecordSource::~RecordSource() = default;

struct Linker::Impl {
  explicit Impl(const RecordSource& record_source)
      : source(record_source),
        definitions(record_source),
        completions(record_source.processes().size()),
        external_ids(record_source.processes().size()),
        threads(record_source.processes().size()),
        stops_ns(record_source.processes().size()) {}

  Result<> first_pass();
  Result<> second_pass(Sink& sink);

  void handle(std::size_t process, const trace::OperationSubmittedRecord& record, Sink& sink);
  void handle(std::size_t process, const trace::ApiCallRecord& record, Sink& sink);
  void handle(std::size_t process, const trace::SynchronizationRecord& record, Sink& sink);
  void handle(std::size_t process, const trace::MemoryRecord& record, Sink& sink);
  void handle(std::size_t process, const trace::LossRecord& record, Sink& sink);
  void handle(std::size_t process, const trace::OverheadRecord& record, Sink& sink);
  void handle_begin(std::size_t process, const trace::CallBeginRecord& record);
  void note_stop(std::size_t process, const trace::SessionRecord& record);
  void check_times(DeviceActivity& activity, std::size_t process);
  void keep_annotation(std::size_t process, const trace::AnnotationRecord& record);

  void hand_over_external_ids(const RuntimeActivity& call, Sink& sink);
  void hand_over_call(const RuntimeActivity& call, Sink& sink);
  void complete(DeviceActivity& activity, std::size_t process, const trace::OperationSubmittedRecord& record);
  void hand_over_command(std::size_t process, const trace::OperationSubmittedRecord& record, const RuntimeActivity& call, Sink& sink);
  void hand_over_hung_calls(Sink& sink);

  /// What tells a call that never returned: a thread is in one call at a time.
  struct ThreadState {
    std::uint64_t last_begin_ns = 0, last_return_ns = 0;  // entries of the newest call begun, and of the newest that returned
    std::uint32_t last_begin_api = 0;
  };
  void saw_return(std::size_t process, std::uint32_t writer, std::uint64_t enter_ns) {
    std::uint64_t& last = threads[process][writer].last_return_ns;
    last = std::max(last, enter_ns);
  }

  const RecordSource& source;
  DefinitionTable definitions;
  CompletionIndex completions;
  ExternalIds external_ids;
  std::vector<PagedIndex<ThreadState, 16>> threads;
  std::vector<std::uint64_t> stops_ns;  // of the profile, by process; 0: it has no end that is on record
  AnnotationPairs annotations;
  LinkSummary summary;
  std::uint64_t external_ids_used = 0;
  std::uint32_t next_correlation = 1;
};

Linker::Linker(const RecordSource& source) : impl_(std::make_unique<Impl>(source)) {}
Linker::~Linker() = default;
Linker::Linker(Linker&&) noexcept = default;
Linker& Linker::operator=(Linker&&) noexcept = default;

const Definitions& Linker::definitions() const noexcept { return impl_->definitions.definitions(); }

Result<LinkSummary> Linker::run(Sink& sink) {
  XPU_TRY(impl_->first_pass());
  SessionInfo info;
  info.manifest = &impl_->source.manifest();
  info.definitions = &impl_->definitions.definitions();
  info.commands = impl_->completions.size();
  info.origin_ns = origin_of(*info.manifest, impl_->completions.earliest_ns());
  sink.begin(info);
  XPU_TRY(impl_->second_pass(sink));
  XPU_TRY(sink.end(impl_->summary));
  return impl_->summary;
}

Result<> Linker::Impl::first_pass() {
  XPU_TRY(source.for_each_batch(kFirstPass, [&](std::size_t process, std::span<const std::byte> records) {
    trace::for_each_record(records, [&](const trace::RecordHeader& header) {
      switch (static_cast<RecordKind>(header.kind)) {
        case RecordKind::operation_completed:
          if (const auto* completed = record_cast<trace::OperationCompletedRecord>(header)) completions.add(process, *completed);
          break;
        case RecordKind::copy_detail:
          if (const auto* copy = record_cast<trace::CopyDetailRecord>(header)) completions.add(process, *copy);
          break;
        case RecordKind::external_correlation:
          if (const auto* external = record_cast<trace::ExternalCorrelationRecord>(header)) external_ids.add(process, *external);
          break;
        case RecordKind::loss:
          if (const auto* loss = record_cast<trace::LossRecord>(header)) completions.add(process, *loss);
          break;
        case RecordKind::session:
          if (const auto* session = record_cast<trace::SessionRecord>(header)) note_stop(process, *session);
          break;
        default: definitions.add(process, header);
      }
    });
  }));
  definitions.finish();
  external_ids.sort();
  if (completions.needs_host_hints(definitions)) {
    XPU_TRY(source.for_each_batch(kHintPass, [&](std::size_t process, std::span<const std::byte> records) {
      trace::for_each_record(records, [&](const trace::RecordHeader& header) {
        if (static_cast<RecordKind>(header.kind) != RecordKind::operation_submitted) return;
        const auto* submitted = record_cast<trace::OperationSubmittedRecord>(header);
        if (submitted != nullptr && process < threads.size())
          completions.set_host_hint(process, submitted->operation, submitted->enter_ns, definitions);
      });
    }));
  }
  completions.place(definitions);
  summary.duplicates = completions.duplicates();
  return {};
}

Result<> Linker::Impl::second_pass(Sink& sink) {
  const auto dispatch = [&]<typename Record>(std::size_t process, const trace::RecordHeader& header, const Record*) {
    if (const auto* record = record_cast<Record>(header)) handle(process, *record, sink);
  };
  XPU_TRY(source.for_each_batch(kSecondPass, [&](std::size_t process, std::span<const std::byte> records) {
    if (process >= threads.size()) return;
    trace::for_each_record(records, [&](const trace::RecordHeader& header) {
      switch (static_cast<RecordKind>(header.kind)) {
        case RecordKind::operation_submitted:
          dispatch(process, header, static_cast<const trace::OperationSubmittedRecord*>(nullptr));
          break;
        case RecordKind::api_call: dispatch(process, header, static_cast<const trace::ApiCallRecord*>(nullptr)); break;
        case RecordKind::synchronization: dispatch(process, header, static_cast<const trace::SynchronizationRecord*>(nullptr)); break;
        case RecordKind::memory: dispatch(process, header, static_cast<const trace::MemoryRecord*>(nullptr)); break;
        case RecordKind::loss: dispatch(process, header, static_cast<const trace::LossRecord*>(nullptr)); break;
        case RecordKind::overhead: dispatch(process, header, static_cast<const trace::OverheadRecord*>(nullptr)); break;
        case RecordKind::call_begin:
          if (const auto* begin = record_cast<trace::CallBeginRecord>(header)) handle_begin(process, *begin);
          break;
        case RecordKind::annotation:
          if (const auto* annotation = record_cast<trace::AnnotationRecord>(header)) keep_annotation(process, *annotation);
          break;
        default: break;
      }
    });
  }));
  hand_over_hung_calls(sink);
  annotations.hand_over(sink);
  summary.errors.unused_external_ids = external_ids.size() - external_ids_used;
  summary.orphans = completions.size() - summary.linked;
  for (const trace::ProcessInfo& process : source.processes()) summary.filtered += process.filtered;
  summary.errors.unexpected_records = summary.orphans + summary.duplicates;
  return {};
}

void Linker::Impl::handle(std::size_t process, const trace::OperationSubmittedRecord& record, Sink& sink) {
  const Completion* completion = completions.find(process, record.operation);
  if (completion != nullptr && completion->has(Completion::kLinked)) {
    ++summary.duplicates;
    return;
  }
  RuntimeActivity call;
  call.process = &definitions.process(process);
  call.thread = &definitions.thread(process, record.thread);
  call.api = &definitions.name(process, record.api);
  call.correlation = next_correlation++;
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

void Linker::Impl::hand_over_external_ids(const RuntimeActivity& call, Sink& sink) {
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

void Linker::Impl::hand_over_call(const RuntimeActivity& call, Sink& sink) {
  if (call.api == definitions.unnamed()) [[unlikely]]
    ++summary.errors.unnamed_calls;
  if (!is_of_driver(call.api->text)) return sink.handle_runtime_activity(call);
  sink.handle_driver_activity(DriverActivity{call});
}

/// Fills in what is the same for every kind of command.
void Linker::Impl::complete(DeviceActivity& activity, std::size_t process, const trace::OperationSubmittedRecord& record) {
  activity.queue = &definitions.queue(process, record.queue);
  if (activity.call->failed && record.queue_sequence == 0) {
    ++summary.refused;
    activity.state = CommandState::refused;
    return;
  }
  ++summary.commands;
  Completion* completion = completions.find(process, record.operation);
  if (completion == nullptr) {
    const bool lost = completions.was_lost(process, record.queue, record.operation);
    activity.state = lost ? CommandState::lost : CommandState::pending;
    ++(lost ? summary.lost : summary.pending);
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

void Linker::Impl::hand_over_command(std::size_t process, const trace::OperationSubmittedRecord& record, const RuntimeActivity& call,
                                     Sink& sink) {
  const auto command = static_cast<Command>(record.header.flags >> trace::kCommandShift);
  const auto fill_in = [&](DeviceActivity& activity) {
    activity.process = call.process;
    activity.call = &call;
    activity.correlation = call.correlation;
    activity.external_ids = call.external_ids;
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

void Linker::Impl::handle(std::size_t process, const trace::ApiCallRecord& record, Sink& sink) {
  RuntimeActivity call;
  call.process = &definitions.process(process);
  call.thread = &definitions.thread(process, record.thread);
  call.api = &definitions.name(process, record.api);
  call.correlation = next_correlation++;
  call.result = record.result;
  call.failed = record.result != 0;
  call.duration_known = set_host_times(call, record.enter_ns, record.exit_ns);
  saw_return(process, record.thread, record.enter_ns);
  hand_over_call(call, sink);
}

void Linker::Impl::handle(std::size_t process, const trace::SynchronizationRecord& record, Sink& sink) {
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

void Linker::Impl::handle(std::size_t process, const trace::MemoryRecord& record, Sink& sink) {
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

void Linker::Impl::handle(std::size_t process, const trace::LossRecord& record, Sink& sink) {
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

void Linker::Impl::handle(std::size_t process, const trace::OverheadRecord& record, Sink& sink) {
  OverheadActivity overhead;
  overhead.process = &definitions.process(process);
  overhead.thread = &definitions.thread(process, record.thread);
  overhead.count = record.count;
  set_host_times(overhead, record.begin_ns, record.end_ns);
  sink.handle_overhead_activity(overhead);
}

void Linker::Impl::note_stop(std::size_t process, const trace::SessionRecord& record) {
  if (process >= stops_ns.size() || record.what != static_cast<std::uint32_t>(trace::SessionEvent::stop)) return;
  stops_ns[process] = std::max(stops_ns[process], record.time_ns);
}

/// Only what is surely so counts: within the error of the clock a command may have been in order, and in time.
void Linker::Impl::check_times(DeviceActivity& activity, std::size_t process) {
  const auto error_ns = static_cast<std::int64_t>(activity.error_ns);
  // The call that submitted it, never one that another layer made of it.
  if (activity.start_ns + error_ns < activity.call->start_ns) ++summary.errors.before_call;
  if (stops_ns[process] == 0) return;
  const auto end_ns = activity.start_ns + static_cast<std::int64_t>(activity.duration_ns);
  activity.ends_late = end_ns - error_ns > static_cast<std::int64_t>(stops_ns[process]);
  if (activity.ends_late) ++summary.errors.out_of_range;
}

void Linker::Impl::handle_begin(std::size_t process, const trace::CallBeginRecord& record) {
  ThreadState& state = threads[process][record.thread];
  if (record.enter_ns < state.last_begin_ns) return;
  state.last_begin_ns = record.enter_ns;
  state.last_begin_api = record.api;
}

void Linker::Impl::hand_over_hung_calls(Sink& sink) {
  for (std::size_t process = 0; process < threads.size(); ++process) {
    threads[process].for_each([&](std::uint64_t writer, const ThreadState& state) {
      if (state.last_begin_ns <= state.last_return_ns) return;
      RuntimeActivity call;
      call.process = &definitions.process(process);
      call.thread = &definitions.thread(process, static_cast<std::uint32_t>(writer));
      call.api = &definitions.name(process, state.last_begin_api);
      call.correlation = next_correlation++;
      call.duration_known = set_host_times(call, state.last_begin_ns, 0);
      hand_over_call(call, sink);
    });
  }
}

void Linker::Impl::keep_annotation(std::size_t process, const trace::AnnotationRecord& record) {
  const auto type = static_cast<probe::AnnotationType>(record.header.flags);
  if (type > probe::AnnotationType::counter) return;  // names were read in the first pass
  annotations.add(
      {&definitions.thread(process, record.thread), &definitions.name(process, record.text), record.time_ns, record.value, type});
}

}  // namespace xpu::profiler
