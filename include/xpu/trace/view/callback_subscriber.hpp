#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "xpu/base/export.hpp"
#include "xpu/trace/view/callback_data.hpp"
#include "xpu/trace/view/view_subscriber.hpp"

namespace xpu::trace::view {

/// What a callback is told. Valid during the call, as everything that it points to; names stay.
struct CallbackEvent {
  CallbackDomain domain = CallbackDomain::invalid;
  CallbackPhase phase = CallbackPhase::invalid;
  ApiGroup api_group = ApiGroup::reserved;  ///< Of the call in which it happens, as the next two; else 0, 0 and null.
  std::uint32_t api_id = 0;                 ///< kUnknownApiId for a function without a published id.
  const char* api_name = nullptr;
  std::int32_t return_code = 0;                                        ///< At exits: the driver's. 0 = success.
  void* context_handle = nullptr;                                      ///< Handles: null when unknown.
  void* queue_handle = nullptr;                                        ///< What was waited for, where it is one queue.
  void* module_handle = nullptr;                                       ///< Of module domains.
  SynchronizationType synchronization = SynchronizationType::unknown;  ///< At the exit of host_synchronization.
  const OperationCallbackData* operation = nullptr;                    ///< Of the three operation domains; `operation_count` is 1.
  const KernelCallbackData* kernel = nullptr;                          ///< Of the two kernel domains.
  /// One place for each subscriber, thread and domain: what is put there at an enter is there at its exit. Null at a start of an enter.
  void** instance_data = nullptr;
};

/// Calls a function while things happen, on the thread that does them. It belongs to a subscriber to views, which must outlive it: both
/// name an operation by the same correlation id.
///
/// Domains: `operation_appended` (enter and exit of a submitting call), `operation_dispatched` (the driver took it), `operation_completed`
/// (its end became known, on whichever thread finds it), `kernel_created`, `kernel_destroyed`, `context_created`, `module_loaded`,
/// `module_unloaded` (objects that exist already are not told of), `host_synchronization` and `driver_api` (enter and exit). Those that
/// are no calls have one phase, which counts as an exit and comes whichever of the two was asked for.
///
/// A callback may push and pop external ids, change any subscription, also end its own; it must not submit, wait, or destroy things of the
/// device, because whoever calls it may hold locks. An exception that leaves it ends the process.
///
/// There may be several. Every function is for any thread.
class XPU_EXPORT CallbackSubscriber {
 public:
  using Callback = std::function<void(const CallbackEvent&)>;

  CallbackSubscriber(ViewSubscriber& views, Callback callback);
  /// As `unsubscribe`.
  ~CallbackSubscriber();
  CallbackSubscriber(const CallbackSubscriber&) = delete;
  CallbackSubscriber& operator=(const CallbackSubscriber&) = delete;

  /// no_gpu_views_enabled: the subscriber to views has no kind of device work enabled. bad_argument: no such domain, or neither phase.
  /// not_implemented: internal_threads and internal_event. tracing_not_initialized: after `unsubscribe`, or in a forked child.
  ResultCode enable(CallbackDomain domain, bool at_enter, bool at_exit);
  /// Success also when it was not enabled.
  ResultCode disable(CallbackDomain domain);
  void disable_all() noexcept;
  /// Nothing is called any more once it returned; from within the callback, nothing after this call of it.
  void unsubscribe() noexcept;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace xpu::trace::view
