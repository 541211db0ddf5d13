#pragma once

#include <cstdint>

#include "base/probe.hpp"
#include "trace/view/operation_table.hpp"
#include "trace/view/view_definitions.hpp"
#include "xpu/trace/records.hpp"
#include "xpu/trace/view/records.hpp"

/// Views filled in from what is known: no state and no joining here.
namespace xpu::trace::view {

struct ExternalIds {
  std::uint64_t ids[kExternalKinds] = {};
  std::uint32_t mask = 0;
};

/// A call, wait, overhead or communication that waits to be handed over.
struct PendingCall {
  enum class Type : std::uint8_t { call, wait, overhead, communication };
  Type type = Type::call;
  std::uint32_t writer = 0, api = 0, flags = 0;  ///< ViewFlag.
  std::uint64_t enter_ns = 0, exit_ns = 0;
  std::uint64_t operation = 0;
  std::int32_t result = 0;
  // Of waits; of overhead `type_number` and `count`.
  std::uint32_t type_number = 0, context = 0, queue = 0;
  std::uint64_t handle = 0, count = 0;
  // Of a communication, whose name is `api` and whose communicator is `handle`.
  std::uint64_t send_bytes = 0, receive_bytes = 0;
};

/// What a device view is made from.
struct Command {
  const OpenOperation& operation;
  const CopyDetailRecord* copy;       ///< Or null.
  const ExternalIds* external_ids;    ///< Or null.
  const GraphNodeRecord* graph_node;  ///< Or null.
};

inline void* as_handle(std::uint64_t native) noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(native)); }
SynchronizationType synchronization_type_of(probe::WaitType type) noexcept;

/// The kind of view that an operation gets when it is over; `invalid` for commands that have none (markers, barriers, …).
ViewKind device_kind_of(const Command& command) noexcept;

/// Whether everything is known that the view of this kind names, the clock included.
bool is_described(const Command& command, ViewKind kind, ViewDefinitions& definitions);
bool is_described(const PendingCall& call, ViewDefinitions& definitions);

KernelView make_kernel_view(const Command& command, ViewDefinitions& definitions);
CopyView make_copy_view(const Command& command, ViewDefinitions& definitions);
PeerCopyView make_peer_copy_view(const Command& command, ViewDefinitions& definitions);
FillView make_fill_view(const Command& command, ViewDefinitions& definitions);
ApiView make_api_view(const PendingCall& call, std::uint32_t correlation, ViewDefinitions& definitions);
SynchronizationView make_synchronization_view(const PendingCall& call, std::uint32_t correlation, ViewDefinitions& definitions);
CommunicationView make_communication_view(const PendingCall& communication, ViewDefinitions& definitions);
OverheadView make_overhead_view(const PendingCall& overhead, ViewDefinitions& definitions);

}  // namespace xpu::trace::view
