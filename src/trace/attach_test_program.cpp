// A recorded program for attach_test.cpp: contains the whole trace, static initialiser included, and ends in the way that its argument
// names. Its "layer" drains at exit, as an interceptor does.

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/probe.hpp"
#include "xpu/base/export.hpp"

using namespace xpu;

#ifdef __SANITIZE_ADDRESS__
// A leak checker traces its own process, which the kernel refuses when privileges are raised; nor does it then read its options.
extern "C" XPU_EXPORT int __lsan_is_turned_off() { return static_cast<int>(getauxval(AT_SECURE)); }  // NOLINT(bugprone-reserved-identifier)
#endif

namespace {

probe::OperationId g_pending = 0;

probe::OperationId launch(std::uint32_t sequence) {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr) return 0;
  probe::Operation operation;
  operation.enter_ns = now_ns();
  operation.queue = 1;
  operation.kernel = 1;
  operation.command = probe::Command::ndrange_kernel;
  const probe::OperationId id = listener->begin(operation);
  if (id == 0 || !listener->submitted(id, operation, {now_ns(), 0, sequence})) return 0;
  return id;
}

void complete(probe::OperationId id) {
  const probe::Subscriber* listener = probe::subscriber();
  if (id != 0 && listener != nullptr) listener->complete(id, {1, probe::CompletionStatus::ok, false, 0, {1, 2, 3, 4}});
}

void drain_like_a_layer() { complete(g_pending); }

struct LaunchesWhenDestroyed {
  ~LaunchesWhenDestroyed() {
    if (wanted) complete(launch(4));
  }
  bool wanted = false;
};

/// Initialised before the trace attaches, so destroyed after the segment was closed.
LaunchesWhenDestroyed g_late;

}  // namespace

int main(int argument_count, char** arguments) {
  const std::string ending = argument_count > 1 ? arguments[1] : "return";
  if (ending == "is-recorded") return probe::subscriber() != nullptr ? 1 : 0;
  g_late.wanted = true;
  std::atexit(drain_like_a_layer);
  if (const probe::Subscriber* listener = probe::subscriber()) {
    const probe::QueueDescription queue;
    listener->object(probe::ObjectKind::queue, 1, probe::ObjectEvent::created, &queue);
  }
  complete(launch(1));
  complete(launch(2));
  g_pending = launch(3);
  if (ending == "_exit") _exit(3);
  if (ending == "abort") std::abort();
  if (ending == "quick_exit") std::quick_exit(4);
  if (ending == "exec") execl("/proc/self/exe", arguments[0], "return", nullptr);
  return 5;
}
