#pragma once

#include "interceptors/opencl/opencl_headers.hpp"

/// What the layer does beside the calls of the program: start, harvest, fork, end.
namespace xpu::interceptors::opencl {

/// Registers the handlers of fork and exit. Once.
void start_lifecycle() noexcept;

/// Starts the one thread of ours if it does not run: it reads the rings of programs that have gone quiet and the clocks of devices in use.
/// Cheap when it runs.
void start_harvester() noexcept;

/// Publishes what has ended by now and was not read yet, and reads the clocks of devices in use; waits for nothing.
void harvest_now() noexcept;

/// A queue exists, so the driver has initialised its devices: the handler that exit() runs before those that drivers registered until now.
void queue_exists() noexcept;

/// The loader goes, or the process ends: publishes what has ended, leaves alone what runs, and lets every later call pass straight through.
void shut_down() noexcept;

}  // namespace xpu::interceptors::opencl
