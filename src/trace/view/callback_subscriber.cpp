#include "xpu/trace/view/callback_subscriber.hpp"

#include <mutex>
#include <utility>

#include "trace/view/callback_table.hpp"
#include "trace/view/view_subscriber_impl.hpp"

namespace xpu::trace::view {

struct CallbackSubscriber::Impl {
  Impl(ViewSubscriber::Impl& subscriber, Callback callback) : views(subscriber), entry(std::make_shared<CallbackEntry>()) {
    entry->callback = std::move(callback);
    entry->notes = subscriber.notes;
  }

  ViewSubscriber::Impl& views;
  const std::shared_ptr<CallbackEntry> entry;
  std::mutex mutex;
  bool is_called = false, is_over = false;
  bool needs_calls = false;
};

CallbackSubscriber::CallbackSubscriber(ViewSubscriber& views, Callback callback)
    : impl_(std::make_shared<Impl>(*views.impl_, std::move(callback))) {}

CallbackSubscriber::~CallbackSubscriber() { unsubscribe(); }

ResultCode CallbackSubscriber::enable(CallbackDomain domain, bool at_enter, bool at_exit) {
  if (impl_->views.is_elsewhere()) return ResultCode::tracing_not_initialized;
  if (domain == CallbackDomain::internal_threads || domain == CallbackDomain::internal_event) return ResultCode::not_implemented;
  const std::optional<std::size_t> index = index_of(domain);
  if (!index || (!at_enter && !at_exit) || !impl_->entry->callback) return ResultCode::bad_argument;
  if (!impl_->views.is_device_work_enabled()) return ResultCode::no_gpu_views_enabled;

  const std::lock_guard lock(impl_->mutex);
  if (impl_->is_over) return ResultCode::tracing_not_initialized;
  const bool is_wait = domain == CallbackDomain::host_synchronization;
  // Only with calls are publishers asked to say that one begins.
  if ((is_wait || domain == CallbackDomain::driver_api) && !std::exchange(impl_->needs_calls, true)) impl_->views.need_calls(+1);
  impl_->entry->phases[*index] =
      static_cast<std::uint8_t>((at_enter ? CallbackEntry::kAtEnter : 0) | (at_exit ? CallbackEntry::kAtExit : 0));
  if (!std::exchange(impl_->is_called, true)) start_calling(impl_->entry);
  return ResultCode::success;
}

ResultCode CallbackSubscriber::disable(CallbackDomain domain) {
  const std::optional<std::size_t> index = index_of(domain);
  if (!index) return ResultCode::bad_argument;
  impl_->entry->phases[*index] = 0;
  return ResultCode::success;
}

void CallbackSubscriber::disable_all() noexcept {
  for (std::atomic<std::uint8_t>& phases : impl_->entry->phases) phases = 0;
}

void CallbackSubscriber::unsubscribe() noexcept {
  disable_all();
  if (impl_->views.is_elsewhere()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    if (std::exchange(impl_->is_over, true)) return;
    if (std::exchange(impl_->needs_calls, false)) impl_->views.need_calls(-1);
    if (!impl_->is_called) return;
  }
  stop_calling(impl_->entry);
}

}  // namespace xpu::trace::view
