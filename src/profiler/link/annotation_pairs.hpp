#pragma once

#include <cstdint>
#include <vector>

#include "base/probe.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// What the program said about itself, until all of it is known: beginnings and ends of ranges, which nest per thread, become ranges. One
/// owner at a time.
class AnnotationPairs {
 public:
  struct Said {
    const ThreadDefinition* thread;
    const NameDefinition* text;
    std::uint64_t time_ns;
    double value;
    probe::AnnotationType type;  ///< begin, end, mark or counter.
  };
  void add(const Said& said) { said_.push_back(said); }
  /// Once, after everything was added.
  void hand_over(Sink& sink);

 private:
  std::vector<Said> said_;
};

}  // namespace xpu::profiler
