#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "profiler/check/rules.hpp"

namespace xpu::profiler {

/// Counts what is wrong and keeps the first few places of each rule, whichever order they are found in.
class Findings {
 public:
  explicit Findings(std::size_t most_places);

  /// `make_place` returns the TracePlace and is called only when it is kept: a trace may be wrong a million times.
  template <typename MakePlace>
  void add(Rule rule, std::uint64_t event, MakePlace&& make_place) {
    TraceFinding& finding = findings_[static_cast<std::size_t>(rule)];
    ++finding.count;
    if (!wants(finding, event)) return;
    TracePlace place = std::forward<MakePlace>(make_place)();
    place.event = event;
    keep(finding, std::move(place));
  }

  /// About the file as a whole.
  void add(Rule rule, std::string detail, std::uint64_t count = 1);

  /// Those that were found, in the order of the rules.
  std::vector<TraceFinding> take();

 private:
  bool wants(const TraceFinding& finding, std::uint64_t event) const;
  void keep(TraceFinding& finding, TracePlace place);

  std::size_t most_places_;
  std::vector<TraceFinding> findings_;
};

}  // namespace xpu::profiler
