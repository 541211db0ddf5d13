// xpu_test_profile_opencl early|late|views COUNT
// A program that uses OpenCL and profiles itself: a session that begins before the first call of OpenCL, or only behind it. It never waits
// for the device. "views": not a session but a subscriber to views and callbacks, and each figure is printed in a line of its own. Prints
// "kernels K of N, unexplained U, pending P" and why OpenCL cannot be seen, if it cannot.

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "programs/support.hpp"
#include "xpu/profiler/capabilities.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/trace/view/callback_subscriber.hpp"
#include "xpu/trace/view/next_record.hpp"

namespace {

using namespace xpu::opencl_programs;
namespace view = xpu::trace::view;

/// Prints how many views and callbacks of each kind came, and how many kernels have no call, no times or an earlier end than start.
int subscribe_to_views(std::uint64_t count) {
  static std::uint64_t views[view::kViewKinds] = {}, bad_kernels = 0, memory[1 << 13];
  static std::atomic<std::uint64_t> appended = 0, completed = 0, created = 0;
  std::map<std::uint32_t, int> calls;
  std::vector<view::KernelView> kernels;
  view::ViewSubscriber subscriber;
  subscriber.set_callbacks(
      [](std::byte** buffer, std::size_t* bytes) {
        *buffer = reinterpret_cast<std::byte*>(memory);
        *bytes = sizeof memory;
      },
      [&](std::byte* buffer, std::size_t, std::size_t used) {
        const view::ViewHeader* record = nullptr;
        while (view::next_record(buffer, used, &record) == view::ResultCode::success) {
          ++views[static_cast<std::uint32_t>(record->kind)];
          if (record->kind == view::ViewKind::kernel) kernels.push_back(*reinterpret_cast<const view::KernelView*>(record));
          if (record->kind == view::ViewKind::driver_api) ++calls[reinterpret_cast<const view::ApiView*>(record)->correlation];
        }
      });
  for (const view::ViewKind kind : {view::ViewKind::kernel, view::ViewKind::driver_api}) {
    if (subscriber.enable(kind) != view::ResultCode::success) throw std::runtime_error(subscriber.problem());
  }
  view::CallbackSubscriber callbacks(subscriber, [](const view::CallbackEvent& event) {
    if (event.domain == view::CallbackDomain::operation_appended) ++appended;
    if (event.domain == view::CallbackDomain::operation_completed) ++completed;
    if (event.domain == view::CallbackDomain::kernel_created) ++created;
  });
  for (const view::CallbackDomain domain :
       {view::CallbackDomain::operation_appended, view::CallbackDomain::operation_completed, view::CallbackDomain::kernel_created}) {
    callbacks.enable(domain, true, true);
  }
  const Setup setup;
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  for (std::uint64_t index = 0; index < count; ++index) launch(queue, kernel);
  XPU_CL(clFlush(queue));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    subscriber.flush();
  } while (kernels.size() < count && std::chrono::steady_clock::now() < limit);
  for (const view::KernelView& each : kernels) {
    if (calls[each.correlation] != 1 || each.start_ns == 0 || each.start_ns > each.end_ns || std::string_view(each.name) != "tiny")
      ++bad_kernels;
  }
  std::printf("kernels %zu\n", kernels.size());
  std::printf("bad %" PRIu64 "\n", bad_kernels);
  std::printf("appended %" PRIu64 "\n", appended.load());
  std::printf("completed %" PRIu64 "\n", completed.load());
  std::printf("created %" PRIu64 "\n", created.load());
  std::printf("calls %s\n", views[static_cast<std::uint32_t>(view::ViewKind::driver_api)] > count ? "more" : "too few");
  XPU_CL(clFinish(queue));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "views") return subscribe_to_views(number_argument(argc, argv, 2, 100));
  const bool is_late = argc > 1 && std::string_view(argv[1]) == "late";
  const std::uint64_t count = number_argument(argc, argv, 2, 100);
  xpu::profiler::Session session(xpu::profiler::Config{});
  if (!is_late) session.prepare().value();
  const Setup setup;
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  launch(queue, kernel);  // the warm-up
  session.start().value();
  for (std::uint64_t index = 0; index < count; ++index) launch(queue, kernel);
  XPU_CL(clFlush(queue));
  session.stop().value();
  session.collect(std::chrono::seconds(20)).value();

  const xpu::profiler::Report report = xpu::profiler::make_report(session, {}).value();
  std::uint64_t kernels = 0;
  for (const auto& each : report.kernels) kernels += each.calls;
  std::printf("kernels %" PRIu64 " of %" PRIu64 ", unexplained %" PRId64 ", pending %" PRIu64 "\n", kernels, count,
              report.conservation.unexplained, report.conservation.pending);
  for (const xpu::profiler::Capability& capability : xpu::profiler::capabilities()) {
    if (capability.what == "OpenCL used by others" && !capability.is_available) std::printf("%s\n", capability.reason.c_str());
  }
  XPU_CL(clFinish(queue));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
