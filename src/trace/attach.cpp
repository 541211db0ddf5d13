#include <sys/stat.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "trace/attachment.hpp"
#include "trace/live_options.hpp"
#include "trace/own_recorder.hpp"

// libxpu's only static initialiser: without XPU_RECORD it does nothing at all.

namespace xpu::trace {
namespace {

void close_at_exit(int exit_code, void*) {
  close_segment();
  finish_own_recorder(exit_code);
}
void close_at_quick_exit() { close_segment(); }

void switch_off_after_failed_check(const char* message) {
  switch_off(OffReason::internal_error);
  XPU_LOG_ERROR("trace", "{}; this process is not recorded any more", message);
}

Result<> attach_to(const char* live_path) {
  Attachment attachment;
  attachment.live_path = live_path;
  if (!attachment.live_path.starts_with('/')) {
    return Error{ErrorCode::invalid_argument, "XPU_RECORD=" + attachment.live_path + " is not an absolute path"};
  }
  XPU_TRY_ASSIGN(const std::optional<OptionsBlock> options, read_live_options(attachment.live_path));
  if (options) {
    if (options->mode <= static_cast<std::uint32_t>(RecordMode::api)) attachment.mode = static_cast<RecordMode>(options->mode);
    attachment.kernels = options->kernels;
    attachment.max_live_bytes = options->max_live_bytes;
    // Its folder cannot be taken over; what memory it left is filled and stays readable.
    if (!is_recorder_alive(*options))
      XPU_LOG_WARN("trace", "the recorder of {} is gone; recording ends when its memory is full", live_path);
  } else {
    attachment.start_recorder = start_own_recorder;
  }
  XPU_TRY(attach(attachment));
  base::set_check_handler(switch_off_after_failed_check);
  base::watch_process_exit();
  // First of all that will be registered, so it runs last: publishers drain before the segment is closed.
  on_exit(close_at_exit, nullptr);
  std::at_quick_exit(close_at_quick_exit);
  return {};
}

[[gnu::constructor]] void attach_from_environment() {
  const char* live_path = secure_getenv("XPU_RECORD");
  if (live_path == nullptr || *live_path == '\0' || base::has_raised_privileges()) return;
  try {
    if (const Result<> attached = attach_to(live_path); !attached) {
      XPU_LOG_WARN("trace", "this process is not recorded: {}", attached.error().message);
    }
  } catch (...) {
    // No memory before main(): the program will say so itself.
  }
}

/// Should the handlers of exit() not have come here (they are dropped when a program unloads us by force), this does.
[[gnu::destructor]] void close_when_unloaded() { close_segment(); }

}  // namespace
}  // namespace xpu::trace
