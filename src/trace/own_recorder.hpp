#pragma once

#include "trace/attachment.hpp"
#include "xpu/base/result.hpp"

namespace xpu::trace {

/// The recorder's part, done by the recorded process itself in one thread `xpu-recorder` of low priority with every signal blocked (SIGXFSZ
/// among them: a file-size limit must not end the program). For programs that were started with XPU_RECORD set by hand.

/// Makes the recording and the thread; the live folder exists when this returns. Once per process.
Result<> start_own_recorder(const Attachment& attachment);

/// Writes the finished file and ends the thread. Nothing to do when it was never started, or in a forked child.
void finish_own_recorder(int exit_code) noexcept;

}  // namespace xpu::trace
