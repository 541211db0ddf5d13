#include "profiler/check/findings.hpp"

#include <algorithm>

namespace xpu::profiler {
namespace {

bool is_earlier(const TracePlace& left, const TracePlace& right) { return left.event < right.event; }

}  // namespace

Findings::Findings(std::size_t most_places) : most_places_(most_places) {
  for (const TraceRule& rule : trace_rules()) findings_.push_back({&rule, 0, {}});
}

bool Findings::wants(const TraceFinding& finding, std::uint64_t event) const {
  if (finding.places.size() < most_places_) return true;
  return !finding.places.empty() && event < finding.places.back().event;
}

void Findings::keep(TraceFinding& finding, TracePlace place) {
  const auto behind = std::upper_bound(finding.places.begin(), finding.places.end(), place, is_earlier);
  finding.places.insert(behind, std::move(place));
  if (finding.places.size() > most_places_) finding.places.pop_back();
}

void Findings::add(Rule rule, std::string detail, std::uint64_t count) {
  TraceFinding& finding = findings_[static_cast<std::size_t>(rule)];
  finding.count += count;
  if (finding.places.size() >= most_places_) return;
  TracePlace place;
  place.detail = std::move(detail);
  keep(finding, std::move(place));
}

std::vector<TraceFinding> Findings::take() {
  std::erase_if(findings_, [](const TraceFinding& finding) { return finding.count == 0; });
  return std::move(findings_);
}

}  // namespace xpu::profiler
