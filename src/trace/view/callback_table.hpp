#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "trace/view/operation_notes.hpp"
#include "xpu/trace/view/callback_subscriber.hpp"

namespace xpu::trace::view {

/// The domains that are told of, in a row from 0.
inline constexpr std::size_t kCallbackDomains = 10;
std::optional<std::size_t> index_of(CallbackDomain domain) noexcept;

/// One function that is called, for as long as somebody may be calling it.
struct CallbackEntry {
  enum Phase : std::uint8_t { kAtEnter = 1, kAtExit = 2 };
  CallbackSubscriber::Callback callback;
  std::shared_ptr<OperationNotes> notes;
  std::array<std::atomic<std::uint8_t>, kCallbackDomains> phases = {};
  std::atomic<bool> is_over = false;
  std::atomic<std::uint32_t> running = 0;
  std::mutex instances_mutex;
  std::map<std::pair<const void*, std::size_t>, void*> instances;  ///< By thread and domain: what an enter left for its exit.
};

/// From now on, until `stop_calling`.
void start_calling(std::shared_ptr<CallbackEntry> entry);
/// When it returns nobody is in the callback but, perhaps, this thread itself. Nothing to do for one that is not called.
void stop_calling(const std::shared_ptr<CallbackEntry>& entry) noexcept;

}  // namespace xpu::trace::view
