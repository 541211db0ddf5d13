#pragma once

namespace xpu::interceptors::opencl {

/// True when the program has no thread any more: its main thread ended with pthread_exit, and so did all others but those of libxpu
/// (their names begin with "xpu-"). Without us the process would have ended with the last of them. Reads /proc; false when that is not
/// possible.
bool program_has_no_threads() noexcept;

}  // namespace xpu::interceptors::opencl
