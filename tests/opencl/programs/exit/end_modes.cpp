#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "programs/exit/exit.hpp"

namespace xpu::opencl_programs::exits {
namespace {

/// Leaked: what happens to the handles at the end of the process is up to the driver.
WorkInFlight& start(const Options& options) { return *new WorkInFlight("process", options.count, options.rounds); }

int end_by_return(const Options& options) {
  start(options);
  return 0;
}

int end_by_exit(const Options& options) {
  start(options);
  std::exit(7);
}

int end_by_immediate_exit(const Options& options) {
  start(options);
  _exit(7);
}

int end_by_quick_exit(const Options& options) {
  std::at_quick_exit([] {
    std::printf("at_quick_exit ran\n");
    std::fflush(stdout);
  });
  start(options);
  std::quick_exit(7);
}

int end_by_abort(const Options& options) {
  start(options);
  std::abort();
}

int end_by_terminate(const Options& options) {
  start(options);
  std::terminate();
}

int end_by_segmentation_fault(const Options& options) {
  start(options);
  // By way of the kernel, so that no compiler and no sanitizer sees the bad access coming.
  raise(SIGSEGV);
  return 1;
}

int end_by_kill(const Options& options) {
  start(options);
  kill(getpid(), SIGKILL);
  return 1;
}

int end_by_termination_signal(const Options& options) {
  start(options);
  raise(SIGTERM);
  return 1;
}

int end_from_second_thread(const Options& options) {
  WorkInFlight& work = start(options);
  std::thread second([&] {
    work.launch_and_print("second_thread", options.count);
    std::exit(7);
  });
  second.join();  // never: the process ends first
  return 1;
}

int end_by_thread_exit_of_main(const Options& options) {
  WorkInFlight& work = start(options);
  std::thread([&work, options] { work.launch_and_print("second_thread", options.count); }).detach();
  // The process lives on until its last thread ends, and ends then as after exit(0).
  pthread_exit(nullptr);
}

int end_thread_with_work(const Options& options) {
  std::thread([&] { start(options); }).join();
  return 0;
}

void CL_CALLBACK exit_in_callback(cl_event, cl_int, void*) { std::exit(7); }

int end_in_callback(const Options& options) {
  WorkInFlight& work = start(options);
  cl_event event = work.launch_with_event();
  std::printf("callback %d submitted 1\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  XPU_CL(clSetEventCallback(event, CL_COMPLETE, exit_in_callback, nullptr));
  for (;;) pause();  // the callback ends the process, from whichever thread
}

int end_in_static_destructor(const Options& options) {
  use_opencl_in_static_destructor(&start(options));
  return 0;
}

/// Its destructor runs after main, when a tracer may have thought that everything was over.
struct LateUser {
  WorkInFlight* work = nullptr;
  ~LateUser() {
    if (work == nullptr) return;
    work->launch_and_print("static_destructor", 5);
    XPU_CL(clFinish(work->queue()));
  }
};
LateUser late_user;

/// A handler registered before the first OpenCL call runs after all that the loader, its layers and drivers registered.
int end_in_exit_handler(const Options& options) {
  static WorkInFlight* work = nullptr;
  std::atexit([] {
    work->launch_and_print("exit_handler", 5);
    XPU_CL(clFinish(work->queue()));
  });
  work = &start(options);
  return 0;
}

/// Releases everything that can be released while the commands are in flight.
int end_after_releasing(const Options& options) {
  WorkInFlight& work = start(options);
  XPU_CL(clReleaseCommandQueue(work.queue()));
  XPU_CL(clReleaseProgram(work.setup().program));
  XPU_CL(clReleaseContext(work.setup().context));
  return 0;
}

}  // namespace

void use_opencl_in_static_destructor(WorkInFlight* work) { late_user.work = work; }

const Mode kEndModes[] = {
    {"return", "main returns 0", end_by_return},
    {"exit", "exit(7)", end_by_exit},
    {"_exit", "_exit(7): no handler runs", end_by_immediate_exit},
    {"quick_exit", "quick_exit(7): only its own handlers run", end_by_quick_exit},
    {"abort", "abort()", end_by_abort},
    {"terminate", "std::terminate()", end_by_terminate},
    {"segv", "SIGSEGV (PoCL has a handler that ignores it: exit code 1)", end_by_segmentation_fault},
    {"sigkill", "SIGKILL to itself", end_by_kill},
    {"sigterm", "SIGTERM to itself", end_by_termination_signal},
    {"exit_from_thread", "exit(7) from a second thread while main waits for it (PoCL may abort by itself)", end_from_second_thread},
    {"pthread_exit_main", "main leaves by pthread_exit while a second thread works (drivers without threads only)",
     end_by_thread_exit_of_main},
    {"thread_ends", "the only thread that used OpenCL ends, then main returns 0", end_thread_with_work},
    {"exit_in_callback", "exit(7) inside an event callback", end_in_callback},
    {"static_destructor", "a static object's destructor launches, waits, and releases nothing", end_in_static_destructor},
    {"exit_handler", "an exit handler that runs very late launches and waits", end_in_exit_handler},
    {"release_all", "everything is released while commands run, then main returns 0", end_after_releasing},
    {nullptr, nullptr, nullptr},
};

}  // namespace xpu::opencl_programs::exits
