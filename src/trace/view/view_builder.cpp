#include "xpu/trace/view/view_builder.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/probe.hpp"
#include "trace/recording/record_validator.hpp"
#include "trace/view/make_views.hpp"
#include "trace/view/operation_table.hpp"
#include "trace/view/selection_history.hpp"
#include "trace/view/view_definitions.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace::view {

struct ViewBuilder::Impl {
  Impl(ViewBuilderOptions given, Sink given_sink)
      : options(std::move(given)),
        sink(std::move(given_sink)),
        selections(options.selection),
        definitions(options.texts, options.host_clock) {
    options.max_open_operations = std::max<std::size_t>(options.max_open_operations, 1);
    next_correlation = std::max<std::uint32_t>(options.first_correlation, 1);
  }

  // Taking records in.
  void add(const RecordHeader& header);
  void handle(const OperationSubmittedRecord& record);
  void handle(const OperationCompletedRecord& record);
  void handle(const CopyDetailRecord& record);
  void handle(const ExternalCorrelationRecord& record);
  void handle(const GraphNodeRecord& record);
  void handle(const ApiCallRecord& record);
  void handle(const SynchronizationRecord& record);
  void handle(const OverheadRecord& record);
  void handle(const CommunicationRecord& record);
  void handle(const LossRecord& record);
  /// The open operation with this id, made if need be; null when it is over or has no id.
  OpenOperation* open(std::uint64_t operation);
  /// The same for a half of it: null, and counted, when that half has been.
  OpenOperation* open_for(OpenOperation::State half, std::uint64_t operation);
  void keep_call(const PendingCall& call);
  void ended(OpenOperation& operation);
  void now_complete(OpenOperation& operation);

  // Handing views over.
  void deliver(Completeness completeness);
  bool deliver_call(const PendingCall& call, Completeness completeness);
  bool deliver_operation(OpenOperation& operation, Completeness completeness);
  void write_device_view(OpenOperation& operation, const Command& command, ViewKind kind);
  void write_external_ids(OpenOperation& operation);
  void write_unlinked(OpenOperation& operation);
  void make_room();
  void close(const OpenOperation& operation, bool is_linked);
  Command command_of(const OpenOperation& operation) const;
  std::uint32_t new_correlation(std::uint64_t operation);
  std::uint32_t correlation_of(OpenOperation& operation);
  template <typename View>
  void write(std::uint32_t writer, const View& view) {
    ++statistics.views[static_cast<std::uint32_t>(view.header.kind)];
    sink(writer, std::as_bytes(std::span(&view, 1)));
  }

  ViewBuilderOptions options;
  Sink sink;
  SelectionHistory selections;
  ViewDefinitions definitions;
  OperationTable operations;
  FinishedOperations finished;
  std::unordered_map<std::uint64_t, CopyDetailRecord> copies;  // of open operations, as the next
  std::unordered_map<std::uint64_t, ExternalIds> external_ids;
  std::unordered_map<std::uint64_t, GraphNodeRecord> graph_nodes;
  std::unordered_map<std::uint32_t, RecentCalls> recent_calls;  // by thread
  std::vector<PendingCall> calls;
  std::vector<OpenOperation*> ready;
  std::size_t unfinished = 0;
  std::uint32_t next_correlation = 1;
  ViewStatistics statistics;
};

ViewBuilder::ViewBuilder(ViewBuilderOptions options, Sink sink) : impl_(std::make_unique<Impl>(std::move(options), std::move(sink))) {}
ViewBuilder::~ViewBuilder() = default;
ViewBuilder::ViewBuilder(ViewBuilder&&) noexcept = default;
ViewBuilder& ViewBuilder::operator=(ViewBuilder&&) noexcept = default;

const ViewStatistics& ViewBuilder::statistics() const noexcept { return impl_->statistics; }
std::size_t ViewBuilder::open_operations() const noexcept { return impl_->operations.size(); }
std::size_t ViewBuilder::unfinished_operations() const noexcept { return impl_->unfinished; }
void ViewBuilder::select(const Selection& selection, std::uint64_t from_ns) { impl_->selections.change(selection, from_ns); }
void ViewBuilder::deliver(Completeness completeness) { impl_->deliver(completeness); }

void ViewBuilder::add(std::span<const std::byte> records) {
  const ValidPrefix valid = valid_prefix(records);
  impl_->statistics.damaged_bytes += records.size() - valid.bytes;
  for_each_record(records.first(valid.bytes), [&](const RecordHeader& header) { impl_->add(header); });
}

void ViewBuilder::finish() {
  impl_->deliver(Completeness::as_known);
  while (impl_->operations.size() != 0) impl_->write_unlinked(impl_->operations.oldest());
}

// ---- taking records in

void ViewBuilder::Impl::add(const RecordHeader& header) {
  const auto dispatch = [&]<typename Record>(const Record*) {
    if (const auto* record = view_record_cast<Record>(header)) handle(*record);
  };
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::operation_submitted: return dispatch(static_cast<const OperationSubmittedRecord*>(nullptr));
    case RecordKind::operation_completed: return dispatch(static_cast<const OperationCompletedRecord*>(nullptr));
    case RecordKind::copy_detail: return dispatch(static_cast<const CopyDetailRecord*>(nullptr));
    case RecordKind::graph_node: return dispatch(static_cast<const GraphNodeRecord*>(nullptr));
    case RecordKind::external_correlation: return dispatch(static_cast<const ExternalCorrelationRecord*>(nullptr));
    case RecordKind::api_call: return dispatch(static_cast<const ApiCallRecord*>(nullptr));
    case RecordKind::synchronization: return dispatch(static_cast<const SynchronizationRecord*>(nullptr));
    case RecordKind::overhead: return dispatch(static_cast<const OverheadRecord*>(nullptr));
    case RecordKind::communication: return dispatch(static_cast<const CommunicationRecord*>(nullptr));
    case RecordKind::loss: return dispatch(static_cast<const LossRecord*>(nullptr));
    default: definitions.add(header);
  }
}

OpenOperation* ViewBuilder::Impl::open(std::uint64_t operation) {
  if (operation == 0 || finished.find(operation) != nullptr) return nullptr;
  if (OpenOperation* known = operations.find(operation)) return known;
  if (operations.size() >= options.max_open_operations) make_room();
  return &operations.create(operation);
}

OpenOperation* ViewBuilder::Impl::open_for(OpenOperation::State half, std::uint64_t operation) {
  const FinishedOperations::Fate* fate = finished.find(operation);
  if (fate != nullptr) {
    ++(fate->is_linked ? statistics.duplicates : statistics.late);
    return nullptr;
  }
  OpenOperation* entry = open(operation);
  if (entry == nullptr || !entry->has(half)) return entry;
  ++statistics.duplicates;
  return nullptr;
}

void ViewBuilder::Impl::handle(const OperationSubmittedRecord& record) {
  OpenOperation* entry = open_for(OpenOperation::kSubmitted, record.operation);
  if (entry == nullptr) return;
  entry->set(OpenOperation::kSubmitted);
  entry->enter_ns = record.enter_ns;
  entry->queue = record.queue;
  entry->what = record.what;
  entry->geometry = record.geometry;
  entry->writer = record.thread;
  entry->api = record.api;
  entry->submitted_flags = record.header.flags;
  const bool is_refused = (record.header.flags & kFlagFailed) != 0 && record.queue_sequence == 0;
  if (is_refused) entry->set(OpenOperation::kRefused);
  if (selections.at(record.enter_ns).is_enabled(ViewKind::synchronization))
    recent_calls[record.thread].add({record.enter_ns, record.operation, record.api});
  if (is_refused || entry->has(OpenOperation::kCompleted)) {
    now_complete(*entry);
  } else {
    ++unfinished;
  }

  const bool exit_is_known = (record.header.flags & kFlagExitUnknown) == 0 && record.exit_ns >= record.enter_ns;
  PendingCall call;
  call.writer = record.thread;
  call.api = record.api;
  call.flags = ((record.header.flags & kFlagFailed) != 0 ? kViewFailed : 0u) | (exit_is_known ? 0u : kViewExitUnknown);
  call.enter_ns = record.enter_ns;
  call.exit_ns = exit_is_known ? record.exit_ns : 0;
  call.operation = record.operation;
  call.result = record.result;
  keep_call(call);
}

void ViewBuilder::Impl::handle(const OperationCompletedRecord& record) {
  OpenOperation* entry = open_for(OpenOperation::kCompleted, record.operation);
  if (entry == nullptr) return;
  entry->queued = record.queued;
  entry->submit = record.submit;
  entry->start = record.start;
  entry->end = record.end;
  entry->completed_queue = record.queue;
  entry->completed_flags = record.header.flags;
  entry->status = record.status;
  ended(*entry);
}

void ViewBuilder::Impl::handle(const CopyDetailRecord& record) {
  OpenOperation* entry = open_for(OpenOperation::kHasCopy, record.operation);
  if (entry == nullptr) return;
  entry->set(OpenOperation::kHasCopy);
  copies[record.operation] = record;
}

void ViewBuilder::Impl::handle(const ExternalCorrelationRecord& record) {
  OpenOperation* entry = open(record.operation);
  if (entry == nullptr) {
    ++statistics.unattached_external_ids;
    return;
  }
  entry->set(OpenOperation::kHasExternalIds);
  const bool is_known_family = record.family >= 1 && record.family <= kExternalKinds;
  const std::uint32_t index = is_known_family ? record.family - 1 : static_cast<std::uint32_t>(ExternalKind::unknown) - 1;
  ExternalIds& ids = external_ids[record.operation];
  ids.ids[index] = record.external_id;
  ids.mask |= 1u << index;
}

void ViewBuilder::Impl::handle(const GraphNodeRecord& record) {
  OpenOperation* entry = open(record.operation);
  if (entry == nullptr) return;  // it is over
  entry->set(OpenOperation::kHasGraphNode);
  graph_nodes[record.operation] = record;
}

void ViewBuilder::Impl::handle(const ApiCallRecord& record) {
  PendingCall call;
  call.writer = record.thread;
  call.api = record.api;
  call.flags = (record.header.flags & kFlagFailed) != 0 ? kViewFailed : 0u;
  call.enter_ns = record.enter_ns;
  call.exit_ns = record.exit_ns;
  call.operation = record.operation;
  call.result = record.result;
  if (selections.at(record.enter_ns).wants_any_api()) open(record.operation);  // so that the two share a correlation
  keep_call(call);
}

void ViewBuilder::Impl::handle(const SynchronizationRecord& record) {
  PendingCall wait;
  wait.type = PendingCall::Type::wait;
  wait.writer = record.thread;
  wait.api = record.api;
  wait.flags = (record.header.flags & kFlagFailed) != 0 ? kViewFailed : 0u;
  wait.enter_ns = record.enter_ns;
  wait.exit_ns = record.exit_ns;
  wait.result = record.result;
  wait.type_number = record.type;
  wait.context = record.context;
  wait.queue = record.queue;
  wait.handle = record.handle;
  wait.count = record.wait_count;
  if (static_cast<probe::WaitType>(record.type) == probe::WaitType::blocking_call) {
    // A submission of its thread, by the same function and while the wait lasted, is the same call.
    wait.operation = recent_calls[record.thread].find(record.api, record.enter_ns, record.exit_ns);
  }
  keep_call(wait);
}

void ViewBuilder::Impl::handle(const OverheadRecord& record) {
  PendingCall overhead;
  overhead.type = PendingCall::Type::overhead;
  overhead.writer = record.thread;
  overhead.enter_ns = record.begin_ns;
  overhead.exit_ns = record.end_ns;
  overhead.type_number = record.type;
  overhead.count = record.count;
  keep_call(overhead);
}

void ViewBuilder::Impl::handle(const CommunicationRecord& record) {
  PendingCall communication;
  communication.type = PendingCall::Type::communication;
  communication.writer = record.thread;
  communication.api = record.name;
  communication.enter_ns = record.begin_ns;
  communication.exit_ns = record.end_ns;
  communication.handle = record.communicator;
  communication.send_bytes = record.send_bytes;
  communication.receive_bytes = record.receive_bytes;
  keep_call(communication);
}

void ViewBuilder::Impl::handle(const LossRecord& record) {
  if ((record.header.flags & kFlagNotOperation) != 0) return;
  statistics.lost += record.count;
  // Of a range nobody knows which operations are meant: other queues' lie between. They stay open.
  const bool is_one = record.count == 1 && record.first_operation != 0 && record.first_operation == record.last_operation;
  if ((record.header.flags & kFlagCompletionLost) == 0 || !is_one) return;
  OpenOperation* entry = open(record.first_operation);
  if (entry == nullptr || entry->has(OpenOperation::kCompleted)) return;
  entry->set(OpenOperation::kLost);
  ended(*entry);
}

void ViewBuilder::Impl::keep_call(const PendingCall& call) {
  const Selection& selection = selections.at(call.enter_ns);
  const auto is_wanted = [&] {
    switch (call.type) {
      case PendingCall::Type::overhead: return selection.is_enabled(ViewKind::overhead);
      case PendingCall::Type::communication: return selection.is_enabled(ViewKind::communication);
      case PendingCall::Type::wait: return selection.is_enabled(ViewKind::synchronization) || selection.wants_any_api();
      case PendingCall::Type::call: break;
    }
    return selection.wants_any_api();
  };
  if (!is_wanted()) return;
  if (OpenOperation* entry = operations.find(call.operation)) ++entry->pending_calls;
  calls.push_back(call);
  if (calls.size() >= options.max_open_operations) deliver(Completeness::as_known);
}

void ViewBuilder::Impl::ended(OpenOperation& operation) {
  operation.set(OpenOperation::kCompleted);
  if (!operation.has(OpenOperation::kSubmitted)) return;
  if (!operation.has(OpenOperation::kRefused)) --unfinished;
  now_complete(operation);
}

void ViewBuilder::Impl::now_complete(OpenOperation& operation) {
  if (operation.has(OpenOperation::kReady)) return;
  operation.set(OpenOperation::kReady);
  ready.push_back(&operation);
}

// ---- handing views over

void ViewBuilder::Impl::deliver(Completeness completeness) {
  std::erase_if(calls, [&](const PendingCall& call) { return deliver_call(call, completeness); });
  std::erase_if(ready, [&](OpenOperation* operation) { return deliver_operation(*operation, completeness); });
}

bool ViewBuilder::Impl::deliver_call(const PendingCall& call, Completeness completeness) {
  if (completeness == Completeness::described && !is_described(call, definitions)) return false;
  const Selection& selection = selections.at(call.enter_ns);
  if (call.type == PendingCall::Type::overhead) {
    write(call.writer, make_overhead_view(call, definitions));
    return true;
  }
  if (call.type == PendingCall::Type::communication) {
    write(call.writer, make_communication_view(call, definitions));
    return true;
  }
  OpenOperation* entry = operations.find(call.operation);
  if (entry != nullptr && entry->pending_calls != 0) --entry->pending_calls;
  const bool is_wait = call.type == PendingCall::Type::wait;
  // A blocking call has its API view from its submission.
  const bool is_told = is_wait && static_cast<probe::WaitType>(call.type_number) == probe::WaitType::blocking_call;
  const bool wants_api = !is_told && selection.wants(definitions.api(call.api));
  const bool wants_wait = is_wait && selection.is_enabled(ViewKind::synchronization);
  if (!wants_api && !wants_wait) return true;

  std::uint32_t correlation = 0;
  if (entry != nullptr) {
    correlation = correlation_of(*entry);
  } else if (const FinishedOperations::Fate* fate = finished.find(call.operation)) {
    correlation = fate->correlation;
  }
  if (correlation == 0) correlation = new_correlation(call.operation);
  if (wants_api) {
    if (entry != nullptr) write_external_ids(*entry);
    write(call.writer, make_api_view(call, correlation, definitions));
  }
  if (wants_wait) write(call.writer, make_synchronization_view(call, correlation, definitions));
  return true;
}

bool ViewBuilder::Impl::deliver_operation(OpenOperation& operation, Completeness completeness) {
  const Command command = command_of(operation);
  const ViewKind kind = device_kind_of(command);
  const bool is_wanted = kind != ViewKind::invalid && selections.at(operation.enter_ns).is_enabled(kind);
  if (completeness == Completeness::described) {
    if (operation.pending_calls != 0) return false;
    if (is_wanted && !is_described(command, kind, definitions)) return false;
  }
  if (is_wanted) write_device_view(operation, command, kind);
  const bool is_unlinked = operation.has(OpenOperation::kLost);
  if (is_unlinked && is_wanted) ++statistics.unlinked;
  if (!is_unlinked && !operation.has(OpenOperation::kRefused)) ++statistics.linked;
  close(operation, !is_unlinked);
  return true;
}

void ViewBuilder::Impl::write_device_view(OpenOperation& operation, const Command& command, ViewKind kind) {
  correlation_of(operation);
  write_external_ids(operation);
  const auto count_and_write = [&](const auto& view) {
    const std::uint32_t flags = view.details.flags;
    statistics.undescribed += (flags & kViewUndescribed) != 0;
    statistics.untimed += (flags & kViewUntimed) != 0;
    statistics.unplaced += (flags & kViewUnplaced) != 0;
    write(operation.writer, view);
  };
  switch (kind) {
    case ViewKind::kernel: return count_and_write(make_kernel_view(command, definitions));
    case ViewKind::memory_copy: return count_and_write(make_copy_view(command, definitions));
    case ViewKind::peer_copy: return count_and_write(make_peer_copy_view(command, definitions));
    case ViewKind::memory_fill: return count_and_write(make_fill_view(command, definitions));
    default: break;
  }
}

void ViewBuilder::Impl::write_external_ids(OpenOperation& operation) {
  if (!operation.has(OpenOperation::kHasExternalIds) || operation.has(OpenOperation::kExternalIdsWritten)) return;
  if (!selections.at(operation.enter_ns).is_enabled(ViewKind::external_correlation)) return;
  operation.set(OpenOperation::kExternalIdsWritten);
  const ExternalIds& ids = external_ids[operation.operation];
  for (std::uint32_t index = 0; index < kExternalKinds; ++index) {
    if ((ids.mask >> index & 1) == 0) continue;
    ExternalCorrelationView view{};
    view.header.kind = ViewKind::external_correlation;
    view.correlation = correlation_of(operation);
    view.external_id = ids.ids[index];
    view.external_kind = static_cast<ExternalKind>(index + 1);
    view.operation = operation.operation;
    write(operation.writer, view);
  }
}

void ViewBuilder::Impl::write_unlinked(OpenOperation& operation) {
  const Command command = command_of(operation);
  const ViewKind kind = device_kind_of(command);
  if (kind != ViewKind::invalid && selections.at(operation.enter_ns).is_enabled(kind)) {
    ++statistics.unlinked;
    write_device_view(operation, command, kind);
  } else if (operation.has(OpenOperation::kCompleted) && !operation.has(OpenOperation::kSubmitted)) {
    ++statistics.orphans;
  }
  const bool is_nothing_but_ids = !operation.has(OpenOperation::kSubmitted) && command.external_ids != nullptr;
  if (is_nothing_but_ids) statistics.unattached_external_ids += static_cast<std::uint64_t>(std::popcount(command.external_ids->mask));
  close(operation, false);
}

void ViewBuilder::Impl::make_room() {
  deliver(Completeness::as_known);
  while (operations.size() >= options.max_open_operations) {
    ++statistics.evicted;
    write_unlinked(operations.oldest());
  }
}

void ViewBuilder::Impl::close(const OpenOperation& operation, bool is_linked) {
  const bool is_unfinished = operation.has(OpenOperation::kSubmitted) && !operation.has(OpenOperation::kCompleted);
  if (is_unfinished && !operation.has(OpenOperation::kRefused)) --unfinished;
  if (operation.has(OpenOperation::kHasCopy)) copies.erase(operation.operation);
  if (operation.has(OpenOperation::kHasExternalIds)) external_ids.erase(operation.operation);
  if (operation.has(OpenOperation::kHasGraphNode)) graph_nodes.erase(operation.operation);
  finished.add(operation.operation, {operation.correlation, is_linked});
  operations.erase(operation);
}

Command ViewBuilder::Impl::command_of(const OpenOperation& operation) const {
  const auto copy = operation.has(OpenOperation::kHasCopy) ? copies.find(operation.operation) : copies.end();
  const auto ids = operation.has(OpenOperation::kHasExternalIds) ? external_ids.find(operation.operation) : external_ids.end();
  const auto node = operation.has(OpenOperation::kHasGraphNode) ? graph_nodes.find(operation.operation) : graph_nodes.end();
  return {operation, copy == copies.end() ? nullptr : &copy->second, ids == external_ids.end() ? nullptr : &ids->second,
          node == graph_nodes.end() ? nullptr : &node->second};
}

std::uint32_t ViewBuilder::Impl::new_correlation(std::uint64_t operation) {
  if (options.correlation_for) return options.correlation_for(operation);
  const std::uint32_t correlation = next_correlation++;
  if (next_correlation == 0) {
    next_correlation = 1;
    ++statistics.correlation_wraps;
  }
  return correlation;
}

std::uint32_t ViewBuilder::Impl::correlation_of(OpenOperation& operation) {
  if (operation.correlation == 0) operation.correlation = new_correlation(operation.operation);
  return operation.correlation;
}

}  // namespace xpu::trace::view
