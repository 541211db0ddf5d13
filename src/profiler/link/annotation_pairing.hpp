#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/probe.hpp"
#include "profiler/link/definition_table.hpp"
#include "xpu/profiler/sink.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// Makes ranges of beginnings and ends, which nest per thread. Memory: what was added since the last `hand_over`, and ranges that are open.
/// One owner at a time.
class AnnotationPairing {
 public:
  void add(DefinitionTable& definitions, std::size_t process, const trace::AnnotationRecord& record);
  /// What was added, by thread and time; ranges when they end. What is added later must not be before it on its thread.
  void hand_over(Sink& sink);
  /// The same, and nothing comes any more: ranges that are open are handed over without an end.
  void hand_over_all(Sink& sink);
  /// Ranges that are open.
  std::size_t open() const noexcept;

 private:
  struct Annotation {
    const ThreadDefinition* thread;
    const NameDefinition* text;
    std::uint64_t time_ns;
    double value;
    probe::AnnotationType type;
  };
  void hand_over(bool is_last, Sink& sink);
  static void hand_over(const Annotation& from, AnnotationActivity::Type type, std::optional<std::uint64_t> end_ns, Sink& sink);

  std::vector<Annotation> added_;
  std::vector<std::vector<Annotation>> open_;  // by thread
};

}  // namespace xpu::profiler
