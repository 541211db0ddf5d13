#include "sink_load.hpp"

namespace xpu::bench {
namespace {

using namespace profiler;

/// Where in its step something begins, and how long it takes: below 1,024, and never twice the same in a row.
std::uint64_t jitter_of(std::uint64_t step) { return step * 0x9E37'79B9'7F4A'7C15u >> 54; }

}  // namespace

const char* to_string(Step step) noexcept {
  switch (step) {
    case Step::range: return "range";
    case Step::launch: return "launch";
    case Step::copy: return "copy";
  }
  return "?";
}

SinkLoad::SinkLoad() {
  manifest_.program = "synthetic";
  manifest_.argv = {"synthetic"};
  manifest_.start_monotonic_ns = kOriginNs;
  manifest_.start_realtime_ns = 1'700'000'000'000'000'000;
  ProcessDefinition& process = definitions_.processes.emplace_back();
  process.pid = 4'242;
  process.name = "synthetic";
  ThreadDefinition& thread = definitions_.threads.emplace_back();
  thread.process = &process;
  thread.os_thread = 4'243;
  DeviceDefinition& device = definitions_.devices.emplace_back();
  device.name = "synthetic device";
  ClockDefinition& clock = definitions_.clocks.emplace_back();
  clock.process = &process;
  clock.device = &device;
  QueueDefinition& queue = definitions_.queues.emplace_back();
  queue.id = queue.context = 1;
  queue.process = &process;
  queue.device = &device;
  queue.clock = &clock;
  for (std::uint32_t i = 0; i < kKernels; ++i) {
    KernelDefinition& kernel = definitions_.kernels.emplace_back();
    kernel.index = i;
    kernel.process = &process;
    kernel.name = kernel.raw_name = "kernel_number_" + std::to_string(i);
    GeometryDefinition& geometry = definitions_.geometries.emplace_back();
    geometry.index = i;
    geometry.dimensions = 1;
    geometry.global[0] = 1'024 * (i + 1);
    geometry.local[0] = 64;
    geometry.local[1] = geometry.local[2] = 1;
  }
  for (const char* name : {"forward_pass", "clEnqueueNDRangeKernel", "clEnqueueReadBuffer"}) {
    NameDefinition& made = definitions_.names.emplace_back();
    made.index = static_cast<std::uint32_t>(definitions_.names.size() - 1);
    made.text = name;
  }
}

void SinkLoad::run(Step step, std::uint64_t count, Sink& sink) const {
  SessionInfo info;
  info.manifest = &manifest_;
  info.definitions = &definitions_;
  info.commands = step == Step::range ? 0 : count;
  info.origin_ns = kOriginNs;
  sink.begin(info);

  const ProcessDefinition* const process = &definitions_.processes[0];
  AnnotationActivity range;
  range.process = process;
  range.type = AnnotationActivity::Type::range;
  range.thread = &definitions_.threads[0];
  range.text = &definitions_.names[0];
  RuntimeActivity call;
  call.process = process;
  call.thread = &definitions_.threads[0];
  call.api = &definitions_.names[step == Step::copy ? 2 : 1];
  call.submits = true;
  const auto describe = [&](DeviceActivity& activity) {
    activity.process = process;
    activity.queue = &definitions_.queues[0];
    activity.call = &call;
    activity.timed = activity.placed = true;
    activity.error_ns = 100;
  };
  KernelActivity kernel;
  describe(kernel);
  kernel.command = Command::ndrange_kernel;
  MemcpyActivity copy;
  describe(copy);
  copy.command = Command::read;
  copy.direction = CopyDirection::device_to_host;

  const auto set_call = [&](std::uint64_t i, std::uint64_t jitter) {
    call.start_ns = kOriginNs + static_cast<std::int64_t>(1'000'000'000 + i * 5'000 + jitter);
    call.duration_ns = 700 + jitter / 4;
    call.correlation = static_cast<std::uint32_t>(i + 1);
  };
  const auto set_command = [&](DeviceActivity& activity, std::uint64_t jitter) {
    activity.start_ns = call.start_ns + 1'500;
    activity.duration_ns = 2'000 + jitter;
    activity.correlation = call.correlation;
    activity.queued_ns = call.start_ns + 200;
    activity.submitted_ns = call.start_ns + 500 + static_cast<std::int64_t>(jitter / 8);
  };
  switch (step) {
    case Step::range:
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t jitter = jitter_of(i);
        range.start_ns = kOriginNs + static_cast<std::int64_t>(1'000'000'000 + i * 5'000 + jitter);
        range.duration_ns = 700 + jitter / 4;
        sink.handle_annotation_activity(range);
      }
      break;
    case Step::launch:
      for (std::uint64_t i = 0, which = 0; i < count; ++i, which = which + 1 == kKernels ? 0 : which + 1) {
        const std::uint64_t jitter = jitter_of(i);
        set_call(i, jitter);
        set_command(kernel, jitter);
        kernel.kernel = &definitions_.kernels[which];
        kernel.geometry = &definitions_.geometries[which];
        sink.handle_runtime_activity(call);
        sink.handle_kernel_activity(kernel);
      }
      break;
    case Step::copy:
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t jitter = jitter_of(i);
        set_call(i, jitter);
        set_command(copy, jitter);
        copy.bytes = 4'096 * (1 + (jitter & 15));
        sink.handle_runtime_activity(call);
        sink.handle_memcpy_activity(copy);
      }
      break;
  }
  (void)sink.end({});
}

}  // namespace xpu::bench
