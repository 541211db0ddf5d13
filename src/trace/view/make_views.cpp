#include "trace/view/make_views.hpp"

#include <cstring>
#include <limits>

namespace xpu::trace::view {
namespace {

// Never null, because code written for PTI compares and copies names without looking.
constexpr const char* kUnknownName = "unknown";

probe::Command command_of(const OpenOperation& operation) {
  return static_cast<probe::Command>(operation.submitted_flags >> kCommandShift);
}

const char* name_or_unknown(const char* name, std::uint32_t& flags) {
  if (name != nullptr) return name;
  flags |= kViewUndescribed;
  return kUnknownName;
}

std::uint32_t thread_number(std::uint32_t writer, ViewDefinitions& definitions, std::uint32_t& flags) {
  const ThreadRecord* thread = definitions.threads.find(writer);
  if (thread == nullptr) flags |= kViewUndescribed;
  return thread == nullptr ? 0 : thread->os_thread;
}

/// The queue of a command and what belongs to it. Null where nothing is known.
struct Place {
  std::uint32_t queue_id = 0;
  const QueueRecord* queue = nullptr;
  ViewDefinitions::Device* device = nullptr;
};
Place place_of(std::uint32_t queue_id, ViewDefinitions& definitions) {
  Place place;
  place.queue_id = queue_id;
  place.queue = definitions.queues.find(queue_id);
  if (place.queue != nullptr) place.device = definitions.device(place.queue->device);
  return place;
}
Place place_of(const OpenOperation& operation, ViewDefinitions& definitions) {
  return place_of(operation.completed_queue != 0 ? operation.completed_queue : operation.queue, definitions);
}

bool has_ticks(const OpenOperation& operation) {
  return operation.has(OpenOperation::kCompleted) && (operation.completed_flags & (kFlagUntimed | kFlagUnfinishedAtExit)) == 0 &&
         (operation.start | operation.end) != 0;
}

std::uint32_t flags_of(const OpenOperation& operation) {
  struct Pair {
    std::uint32_t wire, view;
  };
  static constexpr Pair kPairs[] = {{kFlagFailed, kViewFailed},
                                    {kFlagUntimed, kViewUntimed},
                                    {kFlagClamped, kViewClamped},
                                    {kFlagUnfinishedAtExit, kViewUnfinished},
                                    {kFlagUserEvent, kViewUserEvent},
                                    {kFlagOutOfOrderQueue, kViewOutOfOrder},
                                    {kFlagInsideCommandBuffer, kViewInsideCommandBuffer}};
  const std::uint32_t wire = operation.submitted_flags | operation.completed_flags;
  std::uint32_t flags = 0;
  for (const Pair& pair : kPairs) {
    if ((wire & pair.wire) != 0) flags |= pair.view;
  }
  if (operation.has(OpenOperation::kLost)) flags |= kViewLost;
  if (operation.has(OpenOperation::kLost) || !operation.has(OpenOperation::kCompleted)) flags |= kViewUnlinked;
  return flags;
}

/// Fills in what all device views have in common, under the names that they share.
template <typename View>
void fill_common(View& view, ViewKind kind, const Command& command, const Place& place, ViewDefinitions& definitions) {
  const OpenOperation& operation = command.operation;
  std::uint32_t flags = flags_of(operation);
  view.header.kind = kind;
  view.correlation = operation.correlation;
  view.thread = thread_number(operation.writer, definitions, flags);
  view.queue_id = place.queue_id == 0 ? kUnknownQueueId : place.queue_id;
  if (place.queue == nullptr) {
    flags |= kViewUndescribed;
  } else {
    view.queue_handle = as_handle(place.queue->native);
    const ContextRecord* context = definitions.contexts.find(place.queue->context);
    if (context != nullptr) view.context_handle = as_handle(context->native);
    if (place.device == nullptr || !place.device->is_described) flags |= kViewUndescribed;
  }

  if (has_ticks(operation)) {
    DeviceTimes times;
    if (place.device != nullptr) {
      OperationCompletedRecord completed{};
      completed.queued = operation.queued;
      completed.submit = operation.submit;
      completed.start = operation.start;
      completed.end = operation.end;
      times = place.device->clock.place(completed, operation.enter_ns);
    }
    if (!times.is_placed) flags |= kViewUnplaced;
    view.append_ns = times.append_ns;
    view.submit_ns = times.submit_ns;
    view.start_ns = times.start_ns;
    view.end_ns = times.end_ns;
    view.details.clock_error_ns = times.error_ns;
  } else if (operation.has(OpenOperation::kCompleted) && !operation.has(OpenOperation::kLost)) {
    flags |= kViewUntimed;
  }

  view.details.operation = operation.operation;
  view.details.call_enter_ns = operation.enter_ns;
  view.details.native_status = operation.status;
  view.details.flags = flags;
  if (command.external_ids != nullptr) {
    std::memcpy(view.details.external_ids, command.external_ids->ids, sizeof view.details.external_ids);
    view.details.external_mask = command.external_ids->mask;
  }
}

void write_device(const ViewDefinitions::Device* device, char (&pci_address)[16], std::uint8_t (&uuid)[16], void*& handle) {
  if (device == nullptr) return;
  std::memcpy(pci_address, device->pci_address, sizeof pci_address);
  std::memcpy(uuid, device->record.uuid, sizeof uuid);
  handle = as_handle(device->record.native);
}

/// `assumed` where the publisher did not know.
ViewMemoryType memory_type_of(probe::MemoryType type, ViewMemoryType assumed, std::uint32_t& flags) {
  switch (type) {
    case probe::MemoryType::host: return ViewMemoryType::user;
    case probe::MemoryType::pinned: return ViewMemoryType::host;
    case probe::MemoryType::device:
    case probe::MemoryType::image: return ViewMemoryType::device;
    case probe::MemoryType::shared: return ViewMemoryType::shared;
    case probe::MemoryType::unknown: break;
  }
  flags |= kViewTypeUnknown;
  return assumed;
}

struct Route {
  ViewMemoryType source = ViewMemoryType::user, destination = ViewMemoryType::user;
};
Route route_of(const Command& command, std::uint32_t& flags) {
  // A command that reads or writes says by itself which side is the device; of the others only what is on record is known.
  const probe::Command what = command_of(command.operation);
  const Route assumed{what == probe::Command::read ? ViewMemoryType::device : ViewMemoryType::user,
                      what == probe::Command::write ? ViewMemoryType::device : ViewMemoryType::user};
  if (command.copy == nullptr) {
    flags |= kViewTypeUnknown;
    return assumed;
  }
  return {memory_type_of(static_cast<probe::MemoryType>(command.copy->source_type), assumed.source, flags),
          memory_type_of(static_cast<probe::MemoryType>(command.copy->destination_type), assumed.destination, flags)};
}

template <typename View>
void fill_copy(View& view, ViewKind kind, const Command& command, const Place& place, ViewDefinitions& definitions) {
  fill_common(view, kind, command, place, definitions);
  const Route route = route_of(command, view.details.flags);
  view.source_type = route.source;
  view.destination_type = route.destination;
  view.copy_type = copy_type(route.source, route.destination);
  view.name = name_or_unknown(definitions.text(command.operation.api), view.details.flags);
  view.memory_operation_id = command.operation.operation;
  if (command.copy == nullptr) {
    view.details.flags |= kViewUndescribed;
    return;
  }
  view.bytes = command.copy->bytes;
  view.source = command.copy->source;
  view.destination = command.copy->destination;
}

/// What a wait's handle is: an event, or the queue that was waited for or that a blocking call submitted to.
bool is_event(probe::WaitType type) { return type == probe::WaitType::events || type == probe::WaitType::stream_on_event; }
bool is_queue(probe::WaitType type) { return type == probe::WaitType::queue || type == probe::WaitType::blocking_call; }

}  // namespace

SynchronizationType synchronization_type_of(probe::WaitType type) noexcept {
  switch (type) {
    case probe::WaitType::queue: return SynchronizationType::host_command_queue;
    case probe::WaitType::events:
    case probe::WaitType::blocking_call: return SynchronizationType::host_event;  // it waits for one command, its own
    case probe::WaitType::device: return SynchronizationType::host_device;
    case probe::WaitType::stream_on_event: return SynchronizationType::barrier_execution;
  }
  return SynchronizationType::unknown;
}

ViewKind device_kind_of(const Command& command) noexcept {
  if (!command.operation.has(OpenOperation::kSubmitted) || command.operation.has(OpenOperation::kRefused)) return ViewKind::invalid;
  switch (command_of(command.operation)) {
    case probe::Command::ndrange_kernel:
    case probe::Command::task_kernel:
    case probe::Command::native_kernel: return ViewKind::kernel;
    case probe::Command::read:
    case probe::Command::write:
    case probe::Command::copy:
    case probe::Command::map:
    case probe::Command::unmap:
    case probe::Command::migrate:
      return command.copy != nullptr && static_cast<probe::CopyDirection>(command.copy->direction) == probe::CopyDirection::peer
                 ? ViewKind::peer_copy
                 : ViewKind::memory_copy;
    case probe::Command::fill: return ViewKind::memory_fill;
    default: return ViewKind::invalid;
  }
}

bool is_described(const Command& command, ViewKind kind, ViewDefinitions& definitions) {
  const OpenOperation& operation = command.operation;
  const Place place = place_of(operation, definitions);
  if (place.device == nullptr || !place.device->is_described) return false;
  if (has_ticks(operation) && !place.device->clock.has_readings()) return false;
  if (place.queue->context != 0 && definitions.contexts.find(place.queue->context) == nullptr) return false;
  if (definitions.threads.find(operation.writer) == nullptr) return false;
  if (kind == ViewKind::kernel) {
    const KernelRecord* kernel = definitions.kernels.find(operation.what);
    if (kernel == nullptr || definitions.text(kernel->name) == nullptr) return false;
    return operation.geometry == 0 || definitions.geometries.find(operation.geometry) != nullptr;
  }
  if (command.copy == nullptr || definitions.text(operation.api) == nullptr) return false;
  if (kind == ViewKind::peer_copy && command.copy->peer_device != 0) {
    const ViewDefinitions::Device* peer = definitions.device(command.copy->peer_device);
    if (peer == nullptr || !peer->is_described) return false;
  }
  const bool is_long_pattern = command.copy->pattern_bytes > sizeof command.copy->pattern;
  return !is_long_pattern || definitions.text(static_cast<std::uint32_t>(command.copy->pattern)) != nullptr;
}

bool is_described(const PendingCall& call, ViewDefinitions& definitions) {
  if (definitions.threads.find(call.writer) == nullptr) return false;
  if (call.type == PendingCall::Type::overhead) return true;
  if (call.type == PendingCall::Type::communication && call.api == 0) return true;
  if (definitions.text(call.api) == nullptr) return false;
  if (call.queue != 0 && definitions.queues.find(call.queue) == nullptr) return false;
  return call.context == 0 || definitions.contexts.find(call.context) != nullptr;
}

KernelView make_kernel_view(const Command& command, ViewDefinitions& definitions) {
  const OpenOperation& operation = command.operation;
  KernelView view{};
  const Place place = place_of(operation, definitions);
  fill_common(view, ViewKind::kernel, command, place, definitions);
  write_device(place.device, view.pci_address, view.device_uuid, view.device_handle);
  const KernelRecord* kernel = definitions.kernels.find(operation.what);
  view.name = name_or_unknown(kernel == nullptr ? nullptr : definitions.text(kernel->name), view.details.flags);
  view.source_file = "";
  view.kernel_id = operation.operation;
  if (command.graph_node != nullptr) {
    view.graph_id = command.graph_node->graph;
    view.node_id = command.graph_node->node;
  }
  if (operation.geometry == 0) return view;
  const GeometryRecord* geometry = definitions.geometries.find(operation.geometry);
  if (geometry == nullptr) {
    view.details.flags |= kViewUndescribed;
    return view;
  }
  view.dimensions = geometry->dimensions;
  std::memcpy(view.offset, geometry->offset, sizeof view.offset);
  std::memcpy(view.global_size, geometry->global, sizeof view.global_size);
  std::memcpy(view.local_size, geometry->local, sizeof view.local_size);
  return view;
}

CopyView make_copy_view(const Command& command, ViewDefinitions& definitions) {
  CopyView view{};
  const Place place = place_of(command.operation, definitions);
  fill_copy(view, ViewKind::memory_copy, command, place, definitions);
  write_device(place.device, view.pci_address, view.device_uuid, view.device_handle);
  return view;
}

PeerCopyView make_peer_copy_view(const Command& command, ViewDefinitions& definitions) {
  PeerCopyView view{};
  const Place place = place_of(command.operation, definitions);
  fill_copy(view, ViewKind::peer_copy, command, place, definitions);
  // The wire record names the other device, but not which side it is.
  view.details.flags |= kViewSidesAssumed;
  const ViewDefinitions::Device* peer = definitions.device(command.copy->peer_device);
  if (peer == nullptr || !peer->is_described) view.details.flags |= kViewUndescribed;
  write_device(place.device, view.source_pci_address, view.source_uuid, view.source_device_handle);
  write_device(peer, view.destination_pci_address, view.destination_uuid, view.destination_device_handle);
  return view;
}

FillView make_fill_view(const Command& command, ViewDefinitions& definitions) {
  FillView view{};
  const Place place = place_of(command.operation, definitions);
  fill_common(view, ViewKind::memory_fill, command, place, definitions);
  write_device(place.device, view.pci_address, view.device_uuid, view.device_handle);
  view.name = name_or_unknown(definitions.text(command.operation.api), view.details.flags);
  view.memory_operation_id = command.operation.operation;
  if (command.copy == nullptr) {
    view.details.flags |= kViewUndescribed | kViewTypeUnknown;
    return view;
  }
  const CopyDetailRecord& copy = *command.copy;
  view.memory_type = memory_type_of(static_cast<probe::MemoryType>(copy.destination_type), ViewMemoryType::user, view.details.flags);
  view.bytes = copy.bytes;
  view.destination = copy.destination;
  view.pattern_bytes = copy.pattern_bytes;
  view.value = copy.pattern;
  if (copy.pattern_bytes > sizeof copy.pattern) {
    view.details.flags |= kViewCut;
    view.value = 0;
    const std::string_view pattern = definitions.text_bytes(static_cast<std::uint32_t>(copy.pattern));
    if (pattern.size() < sizeof view.value) {
      view.details.flags |= kViewUndescribed;
    } else {
      view.pattern = pattern.data();
      std::memcpy(&view.value, pattern.data(), sizeof view.value);
    }
  }
  return view;
}

ApiView make_api_view(const PendingCall& call, std::uint32_t correlation, ViewDefinitions& definitions) {
  ApiView view{};
  const ApiIdentity api = definitions.api(call.api);
  view.flags = call.flags;
  view.header.kind = api.kind;
  view.start_ns = call.enter_ns;
  view.end_ns = call.exit_ns;
  view.group = api.group;
  view.api_id = api.id;
  view.process = definitions.process;
  view.thread = thread_number(call.writer, definitions, view.flags);
  view.correlation = correlation;
  view.return_code = static_cast<std::uint32_t>(call.result);
  view.operation = call.operation;
  view.name = name_or_unknown(definitions.text(call.api), view.flags);
  return view;
}

SynchronizationView make_synchronization_view(const PendingCall& call, std::uint32_t correlation, ViewDefinitions& definitions) {
  SynchronizationView view{};
  const auto wait = static_cast<probe::WaitType>(call.type_number);
  const ApiIdentity api = definitions.api(call.api);
  view.flags = call.flags;
  view.header.kind = ViewKind::synchronization;
  view.type = synchronization_type_of(wait);
  if (const ContextRecord* context = definitions.contexts.find(call.context)) view.context_handle = as_handle(context->native);
  if (const QueueRecord* queue = definitions.queues.find(call.queue)) view.queue_handle = as_handle(queue->native);
  if (is_queue(wait) && view.queue_handle == nullptr) view.queue_handle = as_handle(call.handle);
  if (is_event(wait)) view.event_handle = as_handle(call.handle);
  if (wait == probe::WaitType::stream_on_event) view.flags |= kViewHostTimes;
  view.start_ns = call.enter_ns;
  view.end_ns = call.exit_ns;
  view.thread = thread_number(call.writer, definitions, view.flags);
  view.correlation = correlation;
  view.wait_events = static_cast<std::uint32_t>(call.count);
  view.return_code = static_cast<std::uint32_t>(call.result);
  view.api_id = api.id;
  view.group = api.group;
  view.queue_id = call.queue == 0 ? kUnknownQueueId : call.queue;
  view.name = name_or_unknown(definitions.text(call.api), view.flags);
  view.wait_type = call.type_number;
  return view;
}

CommunicationView make_communication_view(const PendingCall& communication, ViewDefinitions& definitions) {
  CommunicationView view{};
  std::uint32_t flags = 0;  // for which there is no room
  view.header.kind = ViewKind::communication;
  view.start_ns = communication.enter_ns;
  view.end_ns = communication.exit_ns;
  view.process = definitions.process;
  view.thread = thread_number(communication.writer, definitions, flags);
  view.send_bytes = communication.send_bytes;
  view.receive_bytes = communication.receive_bytes;
  view.communicator = communication.handle;
  view.name = name_or_unknown(definitions.text(communication.api), flags);
  return view;
}

OverheadView make_overhead_view(const PendingCall& overhead, ViewDefinitions& definitions) {
  OverheadView view{};
  view.header.kind = ViewKind::overhead;
  view.start_ns = overhead.enter_ns;
  view.end_ns = overhead.exit_ns;
  view.thread = thread_number(overhead.writer, definitions, view.flags);
  view.api_id = kUnknownApiId;
  view.count = overhead.count;
  const std::uint64_t measured_ns = overhead.exit_ns > overhead.enter_ns ? overhead.exit_ns - overhead.enter_ns : 0;
  view.duration_ns = measured_ns;
  // What is measured on one call of many stands for all of them.
  const auto kind = static_cast<OverheadKind>(overhead.type_number);
  view.overhead_kind = overhead.type_number == 0 ? OverheadKind::time : kind <= OverheadKind::time ? kind : OverheadKind::unknown;
  if (overhead.count > 1) {
    view.flags |= kViewSampled;
    const bool fits = measured_ns <= std::numeric_limits<std::uint64_t>::max() / overhead.count;
    view.duration_ns = fits ? measured_ns * overhead.count : std::numeric_limits<std::uint64_t>::max();
  }
  return view;
}

}  // namespace xpu::trace::view
