// What one operation costs the program: run under callgrind by launch_cost_test.sh, with two counts whose difference leaves everything out
// that happens once.
//
//   runtime_launch_cost launch|subscribed|event COUNT

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/probe.hpp"
#include "xpu/runtime/runtime.hpp"
#include "xpu/runtime/stream.hpp"

namespace {

void add(const xpu::WorkGroup& group, std::uint64_t* sum, std::uint64_t amount, std::int32_t factor) {
  *sum += amount * static_cast<std::uint64_t>(factor) * group.items(0);
}
XPU_KERNEL(add, "sum", "amount", "factor");

xpu::probe::Subscriber g_subscriber;
std::uint64_t g_begun = 0, g_completed = 0;

/// A subscriber that counts and nothing else: what is measured is what the runtime does for one.
void subscribe() {
  g_subscriber.wanted = xpu::probe::kOperations | xpu::probe::kHostExitTimes | xpu::probe::kAllTicks;
  g_subscriber.begin = [](const xpu::probe::Operation&) -> xpu::probe::OperationId { return ++g_begun; };
  g_subscriber.submitted = [](xpu::probe::OperationId, const xpu::probe::Operation&, const xpu::probe::Submission&) { return true; };
  g_subscriber.complete = [](xpu::probe::OperationId, const xpu::probe::Completion&) { ++g_completed; };
  g_subscriber.lost = [](const xpu::probe::Loss&) {};
  g_subscriber.call_begin = [](xpu::probe::Id, std::uint64_t) {};
  g_subscriber.call = [](const xpu::probe::Call&) {};
  g_subscriber.wait = [](const xpu::probe::Wait&) {};
  g_subscriber.memory = [](const xpu::probe::MemoryEvent&) {};
  g_subscriber.object = [](xpu::probe::ObjectKind, xpu::probe::Id, xpu::probe::ObjectEvent, const void*) {};
  g_subscriber.clock = [](const xpu::probe::ClockReading&) {};
  g_subscriber.annotate = [](const xpu::probe::Annotation&) {};
  g_subscriber.string = [](xpu::probe::Id, std::string_view) {};
  g_subscriber.communicate = [](const xpu::probe::Communication&) {};
  g_subscriber.overhead = [](xpu::probe::OverheadType, std::uint64_t, std::uint64_t, std::uint32_t) {};
  xpu::probe::subscribe(&g_subscriber);
}

bool launch(std::uint64_t count) {
  const xpu::Stream stream = xpu::Stream::current().value();
  const xpu::Kernel kernel = xpu::Kernel::registered("add").value();
  std::uint64_t sum = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    if (!stream.launch(kernel, xpu::items(1), &sum, index, 2)) return false;
  }
  stream.synchronize().value();
  return sum == count * (count - 1);
}

bool record_and_query(std::uint64_t count) {
  const xpu::Stream stream = xpu::Stream::current().value();
  xpu::Event event({.timing = true});
  for (std::uint64_t index = 0; index < count; ++index) {
    if (!event.record(stream)) return false;
    const auto is_complete = event.query();
    if (!is_complete || !*is_complete) return false;
  }
  return true;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  const std::string mode = arguments[1];
  const std::uint64_t count = std::strtoull(arguments[2], nullptr, 10);
  if (mode == "subscribed") subscribe();
  const bool is_right = mode == "event" ? record_and_query(count) : launch(count);
  if (mode == "subscribed" && (g_begun != count || g_completed != count)) {
    std::fprintf(stderr, "%llu launches, %llu begun, %llu completed\n", static_cast<unsigned long long>(count),
                 static_cast<unsigned long long>(g_begun), static_cast<unsigned long long>(g_completed));
    return 1;
  }
  return is_right ? 0 : 1;
}
