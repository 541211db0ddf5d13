#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <semaphore>
#include <thread>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// The processes of exit_test.cpp: each holds things of the runtime and ends in its own way, with this exit code.

namespace xpu::acceptance {
namespace {

constexpr int kExitCode = 7;

/// A queue that somebody else made; it stays for as long as any stream could be around it.
hal::Queue& new_external_queue() {
  static std::mutex mutex;
  static auto& all = *new std::vector<std::unique_ptr<hal::Queue>>;
  const std::lock_guard lock(mutex);
  return *all.emplace_back(Device::get(0).value().native().value()->create_queue({}).value());
}

/// One of everything, with work in flight on it.
struct Everything {
  Stream stream = Stream::from_pool().value();
  Stream other_stream = Stream::from_pool(1, 1).value();
  Event event{EventOptions{.timing = true}}, other_event;
  Buffer buffer = zeros(64), other_buffer = zeros(64, 1), external_buffer = zeros(64);
  Module module = Module::registered().value();
  Kernel kernel = module.kernel("acceptance_add").value(), other_kernel = add_kernel(1);
  ExternalStream external = ExternalStream::wrap(new_external_queue().native_handle(), 0).value();

  void submit_work() {
    for (int round = 0; round < 20; ++round) {
      stream.launch(kernel, items(64), values_of(buffer), 1).value();
      other_stream.launch(other_kernel, items(64), values_of(other_buffer), 1).value();
      external.stream().fill(values_of(external_buffer), 1, 64).value();
      stream.run({}, [] {}).value();
    }
    event.record(stream).value();
    other_event.record(other_stream).value();
    stream.wait(other_event).value();
  }
};

// Constructed before the runtime is initialised, so destroyed after its end.
std::optional<Everything> g_everything;
std::optional<Buffer> g_flag;
std::optional<Kernel> g_waiting_kernel;

/// Launches a kernel that waits for a flag that nobody sets, and returns its stream when it runs, or could.
Stream launch_endless_kernel(const Buffer& flag) {
  static std::binary_semaphore is_before_it{0};
  g_waiting_kernel.emplace(wait_kernel());
  const Stream stream = Stream::from_pool().value();
  if (runs_by_itself()) {
    stream.run({}, [] { is_before_it.release(); }).value();
    stream.launch(*g_waiting_kernel, items(1), values_of(flag)).value();
    is_before_it.acquire();
  } else {
    stream.launch(*g_waiting_kernel, items(1), values_of(flag)).value();
  }
  return stream;
}

XPU_CHILD_MODE(exit_after_initialising) {
  initialize().value();
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_statics_of_before) {
  g_everything.emplace();
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_statics_of_before_and_work_in_flight) {
  g_everything.emplace().submit_work();
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_statics_of_after) {
  static const Everything everything;
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_statics_of_after_and_work_in_flight) {
  static Everything everything;
  everything.submit_work();
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_thread_locals_and_work_in_flight) {
  static thread_local Everything of_main;
  of_main.submit_work();
  std::thread([] {
    static thread_local Everything of_thread;
    of_thread.submit_work();
  }).join();
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_a_kernel_that_never_ends) {
  g_flag.emplace(zeros(1));
  launch_endless_kernel(*g_flag);
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_buffers_of_after_and_a_kernel_that_never_ends) {
  initialize().value();
  static const Buffer flag = zeros(1), other = zeros(1);  // they end before the runtime does
  launch_endless_kernel(flag);
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_a_function_that_never_ends) {
  static std::binary_semaphore is_running{0};
  const bool has_threads = runs_by_itself();
  Stream::from_pool()
      .value()
      .run({},
           [] {
             is_running.release();
             std::this_thread::sleep_for(std::chrono::hours(1));
           })
      .value();
  if (has_threads) is_running.acquire();
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_a_kernel_that_never_ends_and_much_behind_it) {
  g_everything.emplace();
  g_flag.emplace(zeros(1));
  const Stream endless = launch_endless_kernel(*g_flag);
  endless.record(g_everything->other_event).value();
  g_everything->stream.wait(g_everything->other_event).value();
  for (int round = 0; round < 1'000; ++round) {
    g_everything->stream.run({}, [] { std::cerr << "this function must not run\n"; }).value();
  }
  return kExitCode;
}

Module compile_endless_kernel() {
  return Module::from_source(
             "void forever(const xpu::WorkGroup&, int* flag) { while (*static_cast<volatile int*>(flag) == 0) {} }\n"
             "XPU_KERNEL(forever);\n")
      .value();
}

// The compiler's time is none of the exit's: what it made is found again by the next mode.
XPU_CHILD_MODE(compile_a_kernel_that_never_ends) {
  compile_endless_kernel();
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_a_compiled_kernel_that_never_ends) {
  static std::optional<Module> module;
  module.emplace(compile_endless_kernel());
  g_waiting_kernel.emplace(module->kernel("forever").value());
  g_flag.emplace(zeros(1));
  Stream::from_pool().value().launch(*g_waiting_kernel, items(1), values_of(*g_flag)).value();
  return kExitCode;
}

XPU_CHILD_MODE(quick_exit_with_work_in_flight) {
  g_everything.emplace().submit_work();
  std::quick_exit(kExitCode);
}

XPU_CHILD_MODE(quick_exit_with_a_kernel_that_never_ends) {
  g_flag.emplace(zeros(1));
  launch_endless_kernel(*g_flag);
  std::quick_exit(kExitCode);
}

XPU_CHILD_MODE(immediate_exit_with_work_in_flight) {
  g_everything.emplace().submit_work();
  _exit(kExitCode);
}

XPU_CHILD_MODE(exit_in_a_function) {
  g_everything.emplace().submit_work();
  const Stream stream = g_everything->stream;  // the object itself is destroyed by the thread that exits
  stream.run({}, [] { std::exit(kExitCode); }).value();
  static_cast<void>(stream.synchronize());
  // The thread that called exit ends the process.
  std::this_thread::sleep_for(std::chrono::hours(1));
  return 1;
}

XPU_CHILD_MODE(exit_in_a_short_function) {
  const Stream stream = g_everything.emplace().stream;
  stream.run({.short_and_independent = true}, [] { std::exit(kExitCode); }).value();
  static_cast<void>(stream.synchronize());
  std::this_thread::sleep_for(std::chrono::hours(1));
  return 1;
}

XPU_CHILD_MODE(exit_while_threads_submit) {
  // Theirs for ever: they may be in the middle of anything when static objects are destroyed.
  static const auto& kernel = *new Kernel(add_kernel());
  static auto& buffers = *new std::vector<Buffer>;
  static const Stream shared = Stream::from_pool().value();
  static std::atomic<int> submissions{0};
  for (int thread = 0; thread < 3; ++thread) buffers.push_back(zeros(64));
  for (const Buffer& buffer : buffers) {
    std::thread([&buffer] {
      const Result<Stream> stream = Stream::from_pool();
      while (stream && stream->launch(kernel, items(64), values_of(buffer), 1) && shared.run({}, [] {})) ++submissions;
      // No more is accepted: the process ends.
      std::this_thread::sleep_for(std::chrono::hours(1));
    }).detach();
  }
  while (submissions < 300) std::this_thread::yield();
  return kExitCode;
}

XPU_CHILD_MODE(exit_while_a_thread_waits) {
  g_flag.emplace(zeros(1));
  const Stream endless = launch_endless_kernel(*g_flag);
  static std::atomic<int> waiting{0};
  const auto wait = [](auto call) {
    std::thread([call] {
      ++waiting;
      call();
      std::this_thread::sleep_for(std::chrono::hours(1));
    }).detach();
  };
  wait([] { static_cast<void>(synchronize(0)); });
  wait([endless] { static_cast<void>(endless.synchronize()); });
  while (waiting < 2) std::this_thread::yield();
  return kExitCode;
}

/// Uses the runtime when it is destroyed, after the runtime's end.
struct UsesTheRuntimeAtItsEnd {
  std::optional<Stream> stream;
  ~UsesTheRuntimeAtItsEnd() {
    if (!stream) return;
    Event event;
    for (const auto& result : {stream->synchronize(), stream->run({}, [] {}).has_value() ? Result<>() : stream->run({}, [] {}).error(),
                               event.record(*stream), synchronize(0)}) {
      if (!result && result.error().code == ErrorCode::unavailable) continue;
      std::cerr << (result ? std::string("succeeds") : to_string(result.error())) << " after the end\n";
    }
  }
} g_user;

XPU_CHILD_MODE(use_the_runtime_after_its_end) {
  g_user.stream = Stream::from_pool().value();
  return kExitCode;
}

XPU_CHILD_MODE(exit_with_callbacks) {
  g_everything.emplace().submit_work();
  static std::array<int, 10> reached{};
  for (int point = 0; point < 10; ++point) {
    gpu_trace::add_callback(static_cast<gpu_trace::Point>(point),
                            [point](std::uintptr_t, std::uintptr_t) { ++reached.at(static_cast<std::size_t>(point)); });
  }
  static Everything everything;
  everything.submit_work();
  return kExitCode;
}

}  // namespace
}  // namespace xpu::acceptance
