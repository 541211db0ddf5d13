#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "xpu/profiler/sink.hpp"

namespace xpu::bench {

/// What a program does over and over, as activities.
enum class Step : std::uint8_t {
  range,   ///< A range that the program marks: a slice with a name and nothing else.
  launch,  ///< A call and its kernel with everything that a driver tells of one: two slices and an arrow.
  copy,    ///< A call and its copy: the same.
};
inline constexpr std::array kSteps = {Step::range, Step::launch, Step::copy};
const char* to_string(Step step) noexcept;
/// Slices of a step.
constexpr std::uint64_t slices_of(Step step) { return step == Step::range ? 1 : 2; }

/// One process with one thread and one in-order queue that repeats one step, one every 5 us or so, with some jitter. Every run gives the
/// same activities.
class SinkLoad {
 public:
  static constexpr std::uint32_t kKernels = 20;

  SinkLoad();
  SinkLoad(const SinkLoad&) = delete;
  SinkLoad& operator=(const SinkLoad&) = delete;

  /// Hands `count` steps over to the sink, with begin and end.
  void run(Step step, std::uint64_t count, profiler::Sink& sink) const;

  const profiler::Definitions& definitions() const noexcept { return definitions_; }
  std::int64_t origin_ns() const noexcept { return kOriginNs; }

 private:
  static constexpr std::int64_t kOriginNs = 1'000'000'000'000;

  trace::Manifest manifest_;
  profiler::Definitions definitions_;
};

}  // namespace xpu::bench
