#include <cstddef>
#include <cstdint>

#include "base/probe.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"

namespace xpu {
namespace {

// The numbers that xpu/annotate.h sends.
constexpr std::uint32_t kCommunicationBegins = 6, kCommunicationEnds = 7;

/// What a thread has begun; of those that lie deeper only how many there are is known.
struct OpenCommunications {
  static constexpr std::uint32_t kMost = 3;  // thread-local memory is scarce in a library that is loaded late
  struct Communication {
    std::uint64_t begin_ns = 0, send_bytes = 0, communicator = 0;  // begin_ns 0: nobody wanted to know
    probe::Id name = 0;
  };
  Communication open[kMost];
  std::uint32_t depth = 0;
};
constinit thread_local OpenCommunications t_communications;

bool is_wanted(const probe::Subscriber* listener) {
  return listener != nullptr && (listener->wanted.load(std::memory_order_relaxed) & probe::kAnnotations) != 0;
}

void begin_communication(std::uint64_t communicator, const char* name, double send_bytes) {
  OpenCommunications& all = t_communications;
  if (all.depth++ >= OpenCommunications::kMost) return;
  OpenCommunications::Communication& begun = all.open[all.depth - 1];
  begun = {};
  if (!is_wanted(probe::subscriber())) return;
  begun.send_bytes = static_cast<std::uint64_t>(send_bytes);
  begun.communicator = communicator;
  begun.name = name == nullptr || *name == 0 ? 0 : probe::intern(name);
  begun.begin_ns = now_ns(probe::clock_domain());
}

void end_communication(std::uint64_t receive_bytes) {
  OpenCommunications& all = t_communications;
  if (all.depth == 0 || --all.depth >= OpenCommunications::kMost) return;
  const OpenCommunications::Communication& begun = all.open[all.depth];
  const probe::Subscriber* listener = probe::subscriber();
  if (begun.begin_ns == 0 || !is_wanted(listener)) return;
  probe::Communication communication;
  communication.begin_ns = begun.begin_ns;
  communication.end_ns = now_ns(probe::clock_domain());
  communication.send_bytes = begun.send_bytes;
  communication.receive_bytes = receive_bytes;
  communication.communicator = begun.communicator;
  communication.name = begun.name == 0 ? std::string_view() : probe::text_of(begun.name);
  listener->communicate(communication);
}

}  // namespace
}  // namespace xpu

// Declared here and not taken from xpu/annotate.h, where it is weak: a definition of ours must not be.
extern "C" XPU_EXPORT void xpu_annotate_publish(std::uint32_t type, std::uint64_t handle, const char* text, double value) {
  using namespace xpu;
  // Also while nobody listens: who listens later must not take an end for another's.
  if (type == kCommunicationBegins) return begin_communication(handle, text, value);
  if (type == kCommunicationEnds) return end_communication(handle);
  const probe::Subscriber* listener = probe::subscriber();
  if (!is_wanted(listener)) return;
  if (type > static_cast<std::uint32_t>(probe::AnnotationType::name_thread)) return;
  probe::Annotation annotation;
  annotation.time_ns = now_ns(probe::clock_domain());
  annotation.range = handle;
  annotation.type = static_cast<probe::AnnotationType>(type);
  if (text != nullptr) annotation.text = text;
  annotation.value = value;
  listener->annotate(annotation);
}
