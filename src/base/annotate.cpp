#include <cstdint>

#include "base/probe.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"

// Declared here and not taken from xpu/annotate.h, where it is weak: a definition of ours must not be.
extern "C" XPU_EXPORT void xpu_annotate_publish(std::uint32_t type, std::uint64_t handle, const char* text, double value) {
  using namespace xpu;
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr || (listener->wanted.load(std::memory_order_relaxed) & probe::kAnnotations) == 0) return;
  if (type > static_cast<std::uint32_t>(probe::AnnotationType::name_thread)) return;
  probe::Annotation annotation;
  annotation.time_ns = now_ns(probe::clock_domain());
  annotation.range = handle;
  annotation.type = static_cast<probe::AnnotationType>(type);
  if (text != nullptr) annotation.text = text;
  annotation.value = value;
  listener->annotate(annotation);
}
