#pragma once

#include "programs/support.hpp"

/// Ways in which a process with work in flight ends.
namespace xpu::opencl_programs::exits {

/// A queue with commands that nobody waits for.
class WorkInFlight {
 public:
  /// `who` goes into the printed line: "WHO PID submitted N".
  WorkInFlight(const char* who, std::uint64_t count, cl_int rounds);

  /// Launches once more and asks for the event.
  cl_event launch_with_event();

  /// Launches `count` commands and prints the line.
  void launch_and_print(const char* who, std::uint64_t count);

  const Setup& setup() const noexcept { return setup_; }
  cl_command_queue queue() const noexcept { return queue_; }

 private:
  Setup setup_;
  cl_command_queue queue_;
  cl_kernel kernel_;
};

struct Options {
  std::uint64_t count;
  cl_int rounds;
};

/// `run` ends the process, or returns the exit code of main.
struct Mode {
  const char* name;
  const char* what;
  int (*run)(const Options& options);
};

/// The modes that end this process alone, and those with other processes. Both end with a null name.
extern const Mode kEndModes[];
extern const Mode kProcessModes[];

/// Set by a mode whose work goes on in the destructor of a static object.
void use_opencl_in_static_destructor(WorkInFlight* work);

}  // namespace xpu::opencl_programs::exits
