#include "trace/view/callback_table.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/probe.hpp"
#include "trace/definitions.hpp"
#include "trace/entry.hpp"
#include "trace/view/make_views.hpp"
#include "xpu/trace/records.hpp"
#include "xpu/trace/view/api_ids.hpp"

// The second table of the trace: it records as the first one does and tells callbacks. It is installed only while there are some, so that
// nobody pays for what nobody asked for.

namespace xpu::trace::view {
namespace {

using base::Mutex;
using base::MutexLock;
using Entries = std::vector<std::shared_ptr<CallbackEntry>>;

constexpr CallbackDomain kDomains[kCallbackDomains] = {CallbackDomain::operation_appended,  CallbackDomain::operation_dispatched,
                                                       CallbackDomain::operation_completed, CallbackDomain::host_synchronization,
                                                       CallbackDomain::driver_api,          CallbackDomain::kernel_created,
                                                       CallbackDomain::kernel_destroyed,    CallbackDomain::context_created,
                                                       CallbackDomain::module_loaded,       CallbackDomain::module_unloaded};

constinit Mutex g_entries_mutex;
/// Replaced as a whole, so that whoever calls needs no lock. Never destroyed.
constinit std::shared_ptr<const Entries>* g_entries XPU_GUARDED_BY(g_entries_mutex) = nullptr;
constinit std::atomic<bool> g_is_in_use{false};

std::shared_ptr<const Entries> entries() {
  const MutexLock lock(g_entries_mutex);
  return g_entries == nullptr ? nullptr : *g_entries;
}

/// The callbacks that this thread is in. Nothing larger may be per thread: there is little room for a library that is loaded late.
struct CallbackFrame {
  const CallbackEntry* entry;
  const CallbackFrame* outer;
};
constinit thread_local const CallbackFrame* t_frame = nullptr;

/// What a callback put aside at the enter of this thread and domain; taken away at the exit.
class InstancePlace {
 public:
  InstancePlace(CallbackEntry& entry, std::size_t domain, bool is_enter) : entry_(entry), key_{&t_frame, domain}, is_enter_(is_enter) {
    if (is_enter_) return;
    const std::lock_guard lock(entry_.instances_mutex);
    const auto found = entry_.instances.find(key_);
    if (found == entry_.instances.end()) return;
    data_ = found->second;
    entry_.instances.erase(found);
  }
  ~InstancePlace() {
    if (!is_enter_ || data_ == nullptr) return;
    const std::lock_guard lock(entry_.instances_mutex);
    entry_.instances[key_] = data_;
  }
  InstancePlace(const InstancePlace&) = delete;
  InstancePlace& operator=(const InstancePlace&) = delete;
  void** place() noexcept { return &data_; }

 private:
  CallbackEntry& entry_;
  const std::pair<const void*, std::size_t> key_;
  const bool is_enter_;
  void* data_ = nullptr;
};

void call(CallbackEntry& entry, std::size_t domain, CallbackEvent& event) noexcept {
  entry.running.fetch_add(1);
  if (!entry.is_over) {
    InstancePlace instance(entry, domain, event.phase == CallbackPhase::api_enter);
    event.instance_data = instance.place();
    const CallbackFrame frame{&entry, t_frame};
    t_frame = &frame;
    entry.callback(event);
    t_frame = frame.outer;
  }
  entry.running.fetch_sub(1);
}

/// Calls everybody who asked for it; `fill(entry, event)` says what happened, and is called only for them.
template <typename Fill>
void tell(CallbackDomain domain, CallbackPhase phase, Fill&& fill) noexcept {
  const std::size_t index = *index_of(domain);
  const std::uint8_t bit = phase == CallbackPhase::api_enter ? CallbackEntry::kAtEnter : CallbackEntry::kAtExit;
  const bool has_two_phases = domain == CallbackDomain::operation_appended || domain == CallbackDomain::host_synchronization ||
                              domain == CallbackDomain::driver_api;
  const std::shared_ptr<const Entries> all = entries();
  if (all == nullptr) return;
  for (const std::shared_ptr<CallbackEntry>& entry : *all) {
    const std::uint8_t phases = entry->phases[index];
    if (has_two_phases ? (phases & bit) == 0 : phases == 0) continue;
    CallbackEvent event;
    event.domain = domain;
    event.phase = phase;
    fill(*entry, event);
  }
}

// ---- what things are called

/// The defining record of an object that lives; all 0 when nobody knows it.
template <typename Record>
Record definition_of(probe::ObjectKind kind, probe::Id id) {
  Record record{};
  const std::vector<std::byte> bytes = definitions().find(kind, id);
  if (bytes.size() >= sizeof record) std::memcpy(&record, bytes.data(), sizeof record);
  return record;
}
void* native_context(probe::Id id) { return as_handle(definition_of<ContextRecord>(probe::ObjectKind::context, id).native); }
void* native_device(probe::Id id) { return as_handle(definition_of<DeviceRecord>(probe::ObjectKind::device, id).native); }

const char* text_or_unknown(probe::Id id) {
  const char* text = probe::text_of(id).data();
  return text == nullptr ? "unknown" : text;
}

void name_api(probe::Id api, CallbackEvent& event) {
  if (api == 0) return;
  const ApiIdentity identity = identify_api(probe::text_of(api));
  event.api_group = identity.group;
  event.api_id = identity.id;
  event.api_name = text_or_unknown(api);
}

bool waits(probe::Id api) { return identify_api(probe::text_of(api)).api_class == ApiClass::host_operation_synchronization; }

constexpr bool is_kernel(probe::Command command) {
  return command == probe::Command::ndrange_kernel || command == probe::Command::task_kernel || command == probe::Command::native_kernel;
}
constexpr bool is_memory(probe::Command command) { return command >= probe::Command::read && command <= probe::Command::migrate; }

void tell_operation(CallbackEntry& entry, CallbackEvent& event, probe::OperationId id, const OperationNotes::Note& note, probe::Id queue_id,
                    std::int32_t result) {
  constexpr std::uint32_t kImmediateList = 2;
  const auto queue = definition_of<QueueRecord>(probe::ObjectKind::queue, queue_id);
  OperationDetails details{};
  details.operation_kind = is_kernel(note.command) ? 1u : is_memory(note.command) ? 2u : 3u;
  details.operation_id = id;
  details.name = text_or_unknown(note.api);
  if (note.kernel != 0) {
    const auto kernel = definition_of<KernelRecord>(probe::ObjectKind::kernel, note.kernel);
    details.kernel_handle = kernel.native;
    details.name = text_or_unknown(kernel.name);
  }
  OperationCallbackData data{};
  data.domain = event.domain;
  data.list_properties = kImmediateList;
  data.queue_handle = as_handle(queue.native);
  data.device_handle = native_device(queue.device);
  data.phase = event.phase;
  data.return_code = static_cast<std::uint32_t>(result);
  data.correlation = note.correlation;
  data.operation_count = 1;
  data.operation_details = &details;
  name_api(note.api, event);
  event.context_handle = native_context(queue.context);
  event.queue_handle = data.queue_handle;
  event.return_code = result;
  event.operation = &data;
  call(entry, *index_of(event.domain), event);
}

// ---- the table's functions

probe::OperationId begin(const probe::Operation& operation) noexcept {
  const probe::OperationId id = internal::subscriber_table().begin(operation);
  if (id == 0) return 0;
  // Whoever wants only to hear of the end needs to know what it was.
  if (const std::shared_ptr<const Entries> all = entries()) {
    for (const std::shared_ptr<CallbackEntry>& entry : *all) entry->notes->take_down(id, operation);
  }
  tell(CallbackDomain::operation_appended, CallbackPhase::api_enter, [&](CallbackEntry& entry, CallbackEvent& event) {
    tell_operation(entry, event, id, entry.notes->take_down(id, operation), operation.queue, 0);
  });
  return id;
}

bool submitted(probe::OperationId id, const probe::Operation& operation, const probe::Submission& submission) noexcept {
  const bool is_recorded = internal::subscriber_table().submitted(id, operation, submission);
  const auto fill = [&](CallbackEntry& entry, CallbackEvent& event) {
    tell_operation(entry, event, id, entry.notes->take_down(id, operation), operation.queue, submission.result);
  };
  tell(CallbackDomain::operation_appended, CallbackPhase::api_exit, fill);
  if (submission.result == 0) tell(CallbackDomain::operation_dispatched, CallbackPhase::api_exit, fill);
  // Only who was told of the enter.
  if ((internal::wanted_now() & probe::kCalls) != 0) {
    tell(CallbackDomain::driver_api, CallbackPhase::api_exit, [&](CallbackEntry& entry, CallbackEvent& event) {
      name_api(operation.api, event);
      event.return_code = submission.result;
      call(entry, *index_of(CallbackDomain::driver_api), event);
    });
  }
  return is_recorded;
}

void complete(probe::OperationId id, const probe::Completion& completion) noexcept {
  internal::subscriber_table().complete(id, completion);
  tell(CallbackDomain::operation_completed, CallbackPhase::api_exit, [&](CallbackEntry& entry, CallbackEvent& event) {
    tell_operation(entry, event, id, entry.notes->find(id), completion.queue, completion.native_status);
  });
}

void call_begin(probe::Id api, std::uint64_t enter_ns) noexcept {
  internal::subscriber_table().call_begin(api, enter_ns);
  for (const CallbackDomain domain : {CallbackDomain::driver_api, CallbackDomain::host_synchronization}) {
    if (domain == CallbackDomain::host_synchronization && !waits(api)) continue;
    tell(domain, CallbackPhase::api_enter, [&](CallbackEntry& entry, CallbackEvent& event) {
      name_api(api, event);
      call(entry, *index_of(domain), event);
    });
  }
}

void api_call(const probe::Call& returned) noexcept {
  internal::subscriber_table().call(returned);
  for (const CallbackDomain domain : {CallbackDomain::host_synchronization, CallbackDomain::driver_api}) {
    if (domain == CallbackDomain::host_synchronization && !waits(returned.api)) continue;
    tell(domain, CallbackPhase::api_exit, [&](CallbackEntry& entry, CallbackEvent& event) {
      name_api(returned.api, event);
      event.return_code = returned.result;
      call(entry, *index_of(domain), event);
    });
  }
}

void wait(const probe::Wait& waited) noexcept {
  internal::subscriber_table().wait(waited);
  for (const CallbackDomain domain : {CallbackDomain::host_synchronization, CallbackDomain::driver_api}) {
    // A blocking call was told of as a submission.
    if (waited.type == probe::WaitType::blocking_call && domain == CallbackDomain::driver_api) continue;
    tell(domain, CallbackPhase::api_exit, [&](CallbackEntry& entry, CallbackEvent& event) {
      name_api(waited.api, event);
      event.return_code = waited.result;
      event.context_handle = native_context(waited.context);
      event.queue_handle = as_handle(definition_of<QueueRecord>(probe::ObjectKind::queue, waited.queue).native);
      event.synchronization = synchronization_type_of(waited.type);
      call(entry, *index_of(domain), event);
    });
  }
}

std::optional<CallbackDomain> domain_of(probe::ObjectKind kind, probe::ObjectEvent what) {
  const bool is_new = what == probe::ObjectEvent::created;
  switch (kind) {
    case probe::ObjectKind::context: return is_new ? std::optional(CallbackDomain::context_created) : std::nullopt;
    case probe::ObjectKind::module: return is_new ? CallbackDomain::module_loaded : CallbackDomain::module_unloaded;
    case probe::ObjectKind::kernel: return is_new ? CallbackDomain::kernel_created : CallbackDomain::kernel_destroyed;
    default: return std::nullopt;
  }
}

void tell_object(probe::ObjectKind kind, probe::Id id, CallbackDomain domain, std::span<const std::byte> record) {
  const auto definition = [&]<typename Record>(Record filled) {
    if (record.size() >= sizeof filled) std::memcpy(&filled, record.data(), sizeof filled);
    return filled;
  };
  const auto domain_index = *index_of(domain);
  tell(domain, CallbackPhase::api_exit, [&](CallbackEntry& entry, CallbackEvent& event) {
    KernelCallbackData data{};
    if (kind == probe::ObjectKind::context) {
      event.context_handle = as_handle(definition(ContextRecord{}).native);
    } else if (kind == probe::ObjectKind::module) {
      // Publishers tell no native handle of modules: the id of the records stands for it.
      event.module_handle = as_handle(id);
      event.context_handle = native_context(definition(ModuleRecord{}).context);
    } else {
      const auto kernel = definition(KernelRecord{});
      data.domain = domain;
      data.phase = event.phase;
      data.kernel_handle = kernel.native;
      data.device_handle = native_device(kernel.device);
      data.module_handle = as_handle(kernel.module);
      data.name = text_or_unknown(kernel.name);
      event.kernel = &data;
      event.module_handle = data.module_handle;
    }
    call(entry, domain_index, event);
  });
}

void object(probe::ObjectKind kind, probe::Id id, probe::ObjectEvent what, const void* description) noexcept {
  const std::optional<CallbackDomain> domain = domain_of(kind, what);
  // What is published again to somebody who begins to listen is nothing that happens.
  const bool is_again = internal::t_state.depth != 0;
  const std::vector<std::byte> before = domain && !is_again ? definitions().find(kind, id) : std::vector<std::byte>();
  internal::subscriber_table().object(kind, id, what, description);
  if (!domain || is_again) return;
  const bool is_new = what == probe::ObjectEvent::created;
  if (is_new != before.empty()) return;  // newer facts about what is known, or the end of something that nobody knew
  tell_object(kind, id, *domain, is_new ? definitions().find(kind, id) : before);
}

constinit probe::Subscriber g_table = {
    .abi = probe::kAbi,
    .wanted = {0},
    .begin = begin,
    .submitted = submitted,
    .complete = complete,
    .lost = [](const probe::Loss& loss) { internal::subscriber_table().lost(loss); },
    .call_begin = call_begin,
    .call = api_call,
    .wait = wait,
    .memory = [](const probe::MemoryEvent& event) { internal::subscriber_table().memory(event); },
    .object = object,
    .clock = [](const probe::ClockReading& reading) { internal::subscriber_table().clock(reading); },
    .annotate = [](const probe::Annotation& annotation) { internal::subscriber_table().annotate(annotation); },
    .communicate = [](const probe::Communication& communication) { internal::subscriber_table().communicate(communication); },
    .string = [](probe::Id id, std::string_view text) { internal::subscriber_table().string(id, text); },
    .overhead = [](probe::OverheadType type, std::uint64_t begin_ns, std::uint64_t end_ns,
                   std::uint32_t count) { internal::subscriber_table().overhead(type, begin_ns, end_ns, count); },
};

/// Installs the table that is needed, if one of ours is installed.
void change_table(bool with_callbacks) XPU_REQUIRES(g_entries_mutex) {
  g_is_in_use.store(with_callbacks);
  const probe::Subscriber* plain = &internal::subscriber_table();
  probe::replace_table(with_callbacks ? plain : &g_table, with_callbacks ? &g_table : plain);
}

}  // namespace

std::optional<std::size_t> index_of(CallbackDomain domain) noexcept {
  const auto found = std::find(std::begin(kDomains), std::end(kDomains), domain);
  if (found == std::end(kDomains)) return std::nullopt;
  return static_cast<std::size_t>(found - std::begin(kDomains));
}

void start_calling(std::shared_ptr<CallbackEntry> entry) {
  const MutexLock lock(g_entries_mutex);
  Entries more = g_entries == nullptr || *g_entries == nullptr ? Entries() : **g_entries;
  more.push_back(std::move(entry));
  if (g_entries == nullptr) g_entries = new std::shared_ptr<const Entries>;
  *g_entries = std::make_shared<const Entries>(std::move(more));
  change_table(true);
}

void stop_calling(const std::shared_ptr<CallbackEntry>& entry) noexcept {
  {
    const MutexLock lock(g_entries_mutex);
    if (entry->is_over.exchange(true) || g_entries == nullptr || *g_entries == nullptr) return;
    Entries fewer = **g_entries;
    std::erase(fewer, entry);
    const bool is_last = fewer.empty();
    *g_entries = is_last ? nullptr : std::make_shared<const Entries>(std::move(fewer));
    if (is_last) change_table(false);
  }
  std::uint32_t own = 0;
  for (const CallbackFrame* frame = t_frame; frame != nullptr; frame = frame->outer) own += frame->entry == entry.get();
  while (entry->running.load() > own) std::this_thread::yield();
}

}  // namespace xpu::trace::view

namespace xpu::trace::internal {

const probe::Subscriber& callback_table() noexcept { return view::g_table; }
const probe::Subscriber& table_in_use() noexcept { return view::g_is_in_use.load() ? view::g_table : subscriber_table(); }
void set_wanted_of_callback_table(std::uint32_t wanted) noexcept { view::g_table.wanted.store(wanted, std::memory_order_relaxed); }

void lock_callbacks_for_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { view::g_entries_mutex.lock(); }
void unlock_callbacks_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { view::g_entries_mutex.unlock(); }
void forget_callbacks_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS {
  if (view::g_entries != nullptr) view::g_entries->reset();  // they are the parent's
  view::change_table(false);
}

}  // namespace xpu::trace::internal
