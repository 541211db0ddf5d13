#include "profiler/link/annotation_pairs.hpp"

#include <algorithm>
#include <optional>

namespace xpu::profiler {

void AnnotationPairs::hand_over(Sink& sink) {
  std::stable_sort(said_.begin(), said_.end(), [](const Said& a, const Said& b) {
    return a.thread != b.thread ? a.thread->index < b.thread->index : a.time_ns < b.time_ns;
  });
  std::vector<const Said*> open;
  const auto tell = [&](const Said& from, AnnotationActivity::Type type, std::optional<std::uint64_t> end_ns) {
    AnnotationActivity activity;
    activity.process = from.thread->process;
    activity.thread = from.thread;
    activity.text = from.text;
    activity.type = type;
    activity.value = from.value;
    activity.start_ns = static_cast<std::int64_t>(from.time_ns);
    activity.duration_ns = end_ns.value_or(from.time_ns) - from.time_ns;
    activity.duration_known = type != AnnotationActivity::Type::range || end_ns.has_value();
    sink.handle_annotation_activity(activity);
  };
  const auto close_all = [&] {
    for (const Said* begin : open) tell(*begin, AnnotationActivity::Type::range, std::nullopt);
    open.clear();
  };
  for (const Said& said : said_) {
    if (!open.empty() && open.back()->thread != said.thread) close_all();
    switch (said.type) {
      case probe::AnnotationType::begin: open.push_back(&said); break;
      case probe::AnnotationType::end:
        if (open.empty()) {
          tell(said, AnnotationActivity::Type::range, std::nullopt);
        } else {
          tell(*open.back(), AnnotationActivity::Type::range, said.time_ns);
          open.pop_back();
        }
        break;
      case probe::AnnotationType::counter: tell(said, AnnotationActivity::Type::counter, std::nullopt); break;
      default: tell(said, AnnotationActivity::Type::mark, std::nullopt);
    }
  }
  close_all();
}

}  // namespace xpu::profiler
