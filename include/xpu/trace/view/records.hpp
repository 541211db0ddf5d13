#pragma once

#include <cstddef>
#include <cstdint>

#include "xpu/trace/view/enums.hpp"

/// View records: what a subscriber gets, as PTI 1.0 lays it out, so that code written for PTI may cast to its own structures.
///
/// Where PTI has a second version of a structure, ours begins with that one (and so with the first), and a tail of ours follows. Walk a
/// buffer with `next_record`, which knows how long each record is. Times are nanoseconds of the clock of the trace's host times; 0 is
/// "unknown". Strings are NUL-terminated, unique (equal texts have equal pointers) and never freed while their `ViewBuilder` lives, or ever
/// where they are the process's own. A pointer to a text is never null unless its field says so; handles are null when unknown.
namespace xpu::trace::view {

/// What is known of a record beyond PTI's fields.
enum ViewFlag : std::uint32_t {
  kViewFailed = 1u << 0,      ///< The call or the command ended with an error.
  kViewUntimed = 1u << 1,     ///< The driver gave no times.
  kViewUnplaced = 1u << 2,    ///< It gave ticks, but nothing says what host time they are.
  kViewClamped = 1u << 3,     ///< The driver's times were impossible and were corrected.
  kViewUnfinished = 1u << 4,  ///< Still running when the process ended.
  kViewUnlinked = 1u << 5,    ///< Written without its completion, which has not come: the times are unknown.
  kViewLost = 1u << 6,        ///< Its completion was dropped, and counted by whoever dropped it.
  kViewOutOfOrder = 1u << 7,  ///< Of a queue that may run commands in any order.
  kViewUserEvent = 1u << 8,   ///< The program asked for an event of its own.
  kViewInsideCommandBuffer = 1u << 9,
  kViewUndescribed = 1u << 10,   ///< A name, queue, device, thread or geometry is missing.
  kViewTypeUnknown = 1u << 11,   ///< A memory type is not known; `user` stands in its place.
  kViewSampled = 1u << 12,       ///< Overhead: one of `count` calls was measured.
  kViewExitUnknown = 1u << 13,   ///< A call whose return nobody timed: its end is 0.
  kViewCut = 1u << 14,           ///< `value` is the beginning of a longer pattern.
  kViewSidesAssumed = 1u << 15,  ///< Peer copy: the two devices are right, but the queue's is called the source without being known to be.
  kViewHostTimes = 1u << 16,  ///< A wait of the device: the times are those of the call that asked for it, because the device tells none.
  kViewUserClock = 1u << 17,  ///< Its times are those of the subscriber's own clock.
};

inline constexpr std::uint64_t kUnknownQueueId = UINT64_MAX - 1;
inline constexpr std::uint32_t kUnknownApiId = UINT32_MAX;  ///< A call whose name has no published id: its name is in the tail.

/// What every record begins with.
struct ViewHeader {
  ViewKind kind;
};

/// Common tail of device records.
struct DeviceDetails {
  std::uint64_t operation;                     ///< Of the wire records; 0 = unknown.
  std::uint64_t call_enter_ns;                 ///< When the submitting call began.
  std::uint64_t clock_error_ns;                ///< The times are right to this much, all in the same direction.
  std::uint64_t external_ids[kExternalKinds];  ///< Index: ExternalKind - 1.
  std::uint32_t external_mask;                 ///< Bit n: `external_ids[n]` holds.
  std::uint32_t flags;                         ///< ViewFlag.
  std::int32_t native_status;                  ///< Of a failed command.
  std::uint32_t reserved;
};

struct KernelView {
  ViewHeader header;
  std::uint32_t padding_4;
  void* queue_handle;
  void* context_handle;
  const char* name;
  const char* source_file;  ///< Empty: unknown.
  std::uint64_t source_line;
  std::uint64_t kernel_id;  ///< Of this execution, no other has it.
  std::uint32_t correlation;
  std::uint32_t thread;
  char pci_address[16];  ///< "domain:bus:device.function" in hexadecimal; empty: unknown.
  std::uint8_t device_uuid[16];
  std::uint64_t append_ns, start_ns, end_ns, submit_ns;
  std::uint64_t task_begin_ns, enqueue_begin_ns;  ///< Of SYCL: 0.
  std::uint64_t node_id;                          ///< In its graph, `graph_id`; 0: of none.
  std::uint64_t queue_id;                         ///< Or kUnknownQueueId.
  std::uint32_t invocation_id;
  std::uint32_t padding_164;
  void* device_handle;
  std::uint32_t engine_ordinal, engine_index;
  DeviceDetails details;
  std::uint32_t dimensions;  ///< 0 = the geometry is unknown.
  std::uint32_t reserved;
  std::uint64_t offset[3], global_size[3], local_size[3];  ///< `local_size` all 0: the driver's choice.
  std::uint64_t graph_id;                                  ///< 0: of none.
};

struct CopyView {
  ViewHeader header;
  CopyType copy_type;
  ViewMemoryType source_type, destination_type;
  void* queue_handle;
  void* context_handle;
  const char* name;  ///< Of the API's function.
  char pci_address[16];
  std::uint8_t device_uuid[16];
  std::uint64_t memory_operation_id;
  std::uint32_t correlation;
  std::uint32_t thread;
  std::uint64_t append_ns, start_ns, end_ns, submit_ns;
  std::uint64_t bytes;
  std::uint64_t queue_id;
  void* device_handle;
  std::uint32_t engine_ordinal, engine_index;
  DeviceDetails details;
  std::uint64_t source, destination;  ///< Addresses or handles as the publisher gave them; 0 = none.
};

struct PeerCopyView {
  ViewHeader header;
  CopyType copy_type;
  ViewMemoryType source_type, destination_type;
  void* queue_handle;
  void* context_handle;
  const char* name;
  char source_pci_address[16], destination_pci_address[16];
  std::uint8_t source_uuid[16], destination_uuid[16];
  std::uint64_t memory_operation_id;
  std::uint32_t correlation;
  std::uint32_t thread;
  std::uint64_t append_ns, start_ns, end_ns, submit_ns;
  std::uint64_t bytes;
  std::uint64_t queue_id;
  void* source_device_handle;
  void* destination_device_handle;
  std::uint32_t engine_ordinal, engine_index;
  DeviceDetails details;
  std::uint64_t source, destination;
};

struct FillView {
  ViewHeader header;
  ViewMemoryType memory_type;
  void* queue_handle;
  void* context_handle;
  const char* name;
  char pci_address[16];
  std::uint8_t device_uuid[16];
  std::uint64_t memory_operation_id;
  std::uint32_t correlation;
  std::uint32_t thread;
  std::uint64_t append_ns, start_ns, end_ns, submit_ns;
  std::uint64_t bytes;
  std::uint64_t value;  ///< The pattern's first 8 bytes, little end first.
  std::uint64_t queue_id;
  void* device_handle;
  std::uint32_t engine_ordinal, engine_index;
  DeviceDetails details;
  std::uint64_t destination;
  const char* pattern;  ///< All of one that is longer than 8 bytes; else null.
  std::uint32_t pattern_bytes;
  std::uint32_t reserved;
};

struct ExternalCorrelationView {
  ViewHeader header;
  std::uint32_t correlation;
  std::uint64_t external_id;
  ExternalKind external_kind;
  std::uint32_t padding_20;
  std::uint64_t operation;
};

struct OverheadView {
  ViewHeader header;
  std::uint32_t padding_4;
  std::uint64_t start_ns, end_ns;  ///< In which it was measured.
  std::uint32_t thread;
  std::uint32_t api_id;
  std::uint64_t count;
  std::uint64_t duration_ns;  ///< Of all `count` together; with kViewSampled the measured one times their number.
  OverheadKind overhead_kind;
  std::uint32_t padding_52;
  std::uint32_t flags;
  std::uint32_t reserved;
};

/// Of kind driver_api or runtime_api.
struct ApiView {
  ViewHeader header;
  std::uint32_t padding_4;
  std::uint64_t start_ns, end_ns;
  ApiGroup group;
  std::uint32_t api_id;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint32_t correlation;
  std::uint32_t return_code;
  std::uint64_t operation;  ///< That the call submitted or belongs to; 0 = none.
  const char* name;
  std::uint32_t flags;
  std::uint32_t reserved;
};

struct SynchronizationView {
  ViewHeader header;
  SynchronizationType type;
  void* context_handle;
  void* queue_handle;
  void* event_handle;
  std::uint64_t start_ns, end_ns;
  std::uint32_t thread;
  std::uint32_t correlation;
  std::uint32_t wait_events;
  std::uint32_t return_code;
  std::uint32_t api_id;
  ApiGroup group;
  std::uint64_t queue_id;
  const char* name;
  std::uint32_t wait_type;  ///< Of the wire record: finer than PTI's type.
  std::uint32_t flags;
};

/// A collective or a message, as the library that communicated told it (`xpu_annotate_begin_communication`).
struct CommunicationView {
  ViewHeader header;
  std::uint32_t padding_4;
  std::uint64_t start_ns, end_ns;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint64_t send_bytes, receive_bytes;
  std::uint64_t communicator;
  const char* name;
};

inline constexpr std::size_t kLargestViewBytes = sizeof(KernelView);

#define XPU_VIEW_AT(record, field, place) static_assert(offsetof(record, field) == place)
// PTI's first version, then where its second begins, then where it ends, which is where our tail is.
static_assert(sizeof(void*) == 8, "PTI's layouts are those of 64-bit programs");
static_assert(sizeof(ViewHeader) == 4 && sizeof(DeviceDetails) == 80);

XPU_VIEW_AT(KernelView, queue_handle, 8);
XPU_VIEW_AT(KernelView, context_handle, 16);
XPU_VIEW_AT(KernelView, name, 24);
XPU_VIEW_AT(KernelView, source_file, 32);
XPU_VIEW_AT(KernelView, source_line, 40);
XPU_VIEW_AT(KernelView, kernel_id, 48);
XPU_VIEW_AT(KernelView, correlation, 56);
XPU_VIEW_AT(KernelView, thread, 60);
XPU_VIEW_AT(KernelView, pci_address, 64);
XPU_VIEW_AT(KernelView, device_uuid, 80);
XPU_VIEW_AT(KernelView, append_ns, 96);
XPU_VIEW_AT(KernelView, start_ns, 104);
XPU_VIEW_AT(KernelView, end_ns, 112);
XPU_VIEW_AT(KernelView, submit_ns, 120);
XPU_VIEW_AT(KernelView, task_begin_ns, 128);
XPU_VIEW_AT(KernelView, enqueue_begin_ns, 136);
XPU_VIEW_AT(KernelView, node_id, 144);
XPU_VIEW_AT(KernelView, queue_id, 152);
XPU_VIEW_AT(KernelView, invocation_id, 160);
XPU_VIEW_AT(KernelView, device_handle, 168);
XPU_VIEW_AT(KernelView, engine_ordinal, 176);
XPU_VIEW_AT(KernelView, engine_index, 180);
XPU_VIEW_AT(KernelView, details, 184);
XPU_VIEW_AT(KernelView, dimensions, 264);
static_assert(sizeof(KernelView) == 352);

XPU_VIEW_AT(CopyView, copy_type, 4);
XPU_VIEW_AT(CopyView, source_type, 8);
XPU_VIEW_AT(CopyView, destination_type, 12);
XPU_VIEW_AT(CopyView, queue_handle, 16);
XPU_VIEW_AT(CopyView, context_handle, 24);
XPU_VIEW_AT(CopyView, name, 32);
XPU_VIEW_AT(CopyView, pci_address, 40);
XPU_VIEW_AT(CopyView, device_uuid, 56);
XPU_VIEW_AT(CopyView, memory_operation_id, 72);
XPU_VIEW_AT(CopyView, correlation, 80);
XPU_VIEW_AT(CopyView, thread, 84);
XPU_VIEW_AT(CopyView, append_ns, 88);
XPU_VIEW_AT(CopyView, start_ns, 96);
XPU_VIEW_AT(CopyView, end_ns, 104);
XPU_VIEW_AT(CopyView, submit_ns, 112);
XPU_VIEW_AT(CopyView, bytes, 120);
XPU_VIEW_AT(CopyView, queue_id, 128);
XPU_VIEW_AT(CopyView, device_handle, 136);
XPU_VIEW_AT(CopyView, engine_ordinal, 144);
XPU_VIEW_AT(CopyView, engine_index, 148);
XPU_VIEW_AT(CopyView, details, 152);
static_assert(sizeof(CopyView) == 248);

XPU_VIEW_AT(PeerCopyView, copy_type, 4);
XPU_VIEW_AT(PeerCopyView, source_type, 8);
XPU_VIEW_AT(PeerCopyView, destination_type, 12);
XPU_VIEW_AT(PeerCopyView, queue_handle, 16);
XPU_VIEW_AT(PeerCopyView, context_handle, 24);
XPU_VIEW_AT(PeerCopyView, name, 32);
XPU_VIEW_AT(PeerCopyView, source_pci_address, 40);
XPU_VIEW_AT(PeerCopyView, destination_pci_address, 56);
XPU_VIEW_AT(PeerCopyView, source_uuid, 72);
XPU_VIEW_AT(PeerCopyView, destination_uuid, 88);
XPU_VIEW_AT(PeerCopyView, memory_operation_id, 104);
XPU_VIEW_AT(PeerCopyView, correlation, 112);
XPU_VIEW_AT(PeerCopyView, thread, 116);
XPU_VIEW_AT(PeerCopyView, append_ns, 120);
XPU_VIEW_AT(PeerCopyView, start_ns, 128);
XPU_VIEW_AT(PeerCopyView, end_ns, 136);
XPU_VIEW_AT(PeerCopyView, submit_ns, 144);
XPU_VIEW_AT(PeerCopyView, bytes, 152);
XPU_VIEW_AT(PeerCopyView, queue_id, 160);
XPU_VIEW_AT(PeerCopyView, source_device_handle, 168);
XPU_VIEW_AT(PeerCopyView, destination_device_handle, 176);
XPU_VIEW_AT(PeerCopyView, engine_ordinal, 184);
XPU_VIEW_AT(PeerCopyView, engine_index, 188);
XPU_VIEW_AT(PeerCopyView, details, 192);
static_assert(sizeof(PeerCopyView) == 288);

XPU_VIEW_AT(FillView, memory_type, 4);
XPU_VIEW_AT(FillView, queue_handle, 8);
XPU_VIEW_AT(FillView, context_handle, 16);
XPU_VIEW_AT(FillView, name, 24);
XPU_VIEW_AT(FillView, pci_address, 32);
XPU_VIEW_AT(FillView, device_uuid, 48);
XPU_VIEW_AT(FillView, memory_operation_id, 64);
XPU_VIEW_AT(FillView, correlation, 72);
XPU_VIEW_AT(FillView, thread, 76);
XPU_VIEW_AT(FillView, append_ns, 80);
XPU_VIEW_AT(FillView, start_ns, 88);
XPU_VIEW_AT(FillView, end_ns, 96);
XPU_VIEW_AT(FillView, submit_ns, 104);
XPU_VIEW_AT(FillView, bytes, 112);
XPU_VIEW_AT(FillView, value, 120);
XPU_VIEW_AT(FillView, queue_id, 128);
XPU_VIEW_AT(FillView, device_handle, 136);
XPU_VIEW_AT(FillView, engine_ordinal, 144);
XPU_VIEW_AT(FillView, engine_index, 148);
XPU_VIEW_AT(FillView, details, 152);
static_assert(sizeof(FillView) == 256);

XPU_VIEW_AT(ExternalCorrelationView, correlation, 4);
XPU_VIEW_AT(ExternalCorrelationView, external_id, 8);
XPU_VIEW_AT(ExternalCorrelationView, external_kind, 16);
XPU_VIEW_AT(ExternalCorrelationView, operation, 24);
static_assert(sizeof(ExternalCorrelationView) == 32);

XPU_VIEW_AT(OverheadView, start_ns, 8);
XPU_VIEW_AT(OverheadView, end_ns, 16);
XPU_VIEW_AT(OverheadView, thread, 24);
XPU_VIEW_AT(OverheadView, api_id, 28);
XPU_VIEW_AT(OverheadView, count, 32);
XPU_VIEW_AT(OverheadView, duration_ns, 40);
XPU_VIEW_AT(OverheadView, overhead_kind, 48);
XPU_VIEW_AT(OverheadView, flags, 56);
static_assert(sizeof(OverheadView) == 64);

XPU_VIEW_AT(ApiView, start_ns, 8);
XPU_VIEW_AT(ApiView, end_ns, 16);
XPU_VIEW_AT(ApiView, group, 24);
XPU_VIEW_AT(ApiView, api_id, 28);
XPU_VIEW_AT(ApiView, process, 32);
XPU_VIEW_AT(ApiView, thread, 36);
XPU_VIEW_AT(ApiView, correlation, 40);
XPU_VIEW_AT(ApiView, return_code, 44);
XPU_VIEW_AT(ApiView, operation, 48);
static_assert(sizeof(ApiView) == 72);

XPU_VIEW_AT(SynchronizationView, type, 4);
XPU_VIEW_AT(SynchronizationView, context_handle, 8);
XPU_VIEW_AT(SynchronizationView, queue_handle, 16);
XPU_VIEW_AT(SynchronizationView, event_handle, 24);
XPU_VIEW_AT(SynchronizationView, start_ns, 32);
XPU_VIEW_AT(SynchronizationView, end_ns, 40);
XPU_VIEW_AT(SynchronizationView, thread, 48);
XPU_VIEW_AT(SynchronizationView, correlation, 52);
XPU_VIEW_AT(SynchronizationView, wait_events, 56);
XPU_VIEW_AT(SynchronizationView, return_code, 60);
XPU_VIEW_AT(SynchronizationView, api_id, 64);
XPU_VIEW_AT(SynchronizationView, group, 68);
XPU_VIEW_AT(SynchronizationView, queue_id, 72);
static_assert(sizeof(SynchronizationView) == 96);

XPU_VIEW_AT(CommunicationView, start_ns, 8);
XPU_VIEW_AT(CommunicationView, end_ns, 16);
XPU_VIEW_AT(CommunicationView, process, 24);
XPU_VIEW_AT(CommunicationView, thread, 28);
XPU_VIEW_AT(CommunicationView, send_bytes, 32);
XPU_VIEW_AT(CommunicationView, receive_bytes, 40);
XPU_VIEW_AT(CommunicationView, communicator, 48);
XPU_VIEW_AT(CommunicationView, name, 56);
static_assert(sizeof(CommunicationView) == 64);
#undef XPU_VIEW_AT

}  // namespace xpu::trace::view
