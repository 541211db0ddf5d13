#include "drivers/sim/rules.hpp"

#include <algorithm>
#include <cstddef>

#include "drivers/sim/device_clock.hpp"

namespace xpu::drivers::sim {
namespace {

using namespace std::chrono_literals;

__extension__ using WideTime = unsigned __int128;

struct Timing {
  Time submit{0}, launch{0}, duration{0};
  std::uint64_t bytes_per_second = 0;
};

constexpr Timing default_timing(OperationKind operation) {
  switch (operation) {
    case OperationKind::kernel: return {2us, 3us, 10us, 0};
    case OperationKind::copy:
    case OperationKind::fill: return {2us, 3us, 1us, 10'000'000'000};
    case OperationKind::host_function: return {1us, 1us, 1us, 0};
    case OperationKind::event: return {500ns, 0us, 0us, 0};
  }
  return {};
}

Timing timing_of(const std::vector<TimingRule>& rules, OperationKind operation, std::string_view name) {
  Timing timing = default_timing(operation);
  for (const TimingRule& rule : rules) {
    if (rule.operation != operation) continue;
    if (operation == OperationKind::kernel && !matches_pattern(rule.kernel_pattern, name)) continue;
    timing.submit = rule.submit.value_or(timing.submit);
    timing.launch = rule.launch.value_or(timing.launch);
    timing.duration = rule.duration.value_or(timing.duration);
    timing.bytes_per_second = rule.bytes_per_second.value_or(timing.bytes_per_second);
  }
  return timing;
}

/// Rounded up to a picosecond.
Time transfer_time(std::uint64_t bytes, std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return Time(0);
  const WideTime picoseconds = (WideTime{bytes} * std::pico::den + bytes_per_second - 1) / bytes_per_second;
  return Time(static_cast<std::int64_t>(std::min<WideTime>(picoseconds, static_cast<WideTime>(kEndOfTime.count()))));
}

constexpr bool is_of_operations(FaultKind fault) { return fault != FaultKind::out_of_memory && fault != FaultKind::queue_refused; }

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) noexcept {
  // One '*' at a time takes as little as it can; only the last one ever has to take more.
  std::size_t in_pattern = 0, in_text = 0, star = std::string_view::npos, taken_by_star = 0;
  while (in_text < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      taken_by_star = in_text;
    } else if (in_pattern < pattern.size() && (pattern[in_pattern] == '?' || pattern[in_pattern] == text[in_text])) {
      ++in_pattern;
      ++in_text;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      in_text = ++taken_by_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

bool Rules::CountedFault::strikes() noexcept {
  ++count;
  return rule.nth != 0 ? count == rule.nth : count % rule.every == 0;
}

Rules::Rules(const Program& program) : timings_(program.timings), event_time_(timing_of(program.timings, OperationKind::event, "").submit) {
  for (const FaultRule& rule : program.faults) faults_.push_back({rule});
}

Plan Rules::plan(OperationKind operation, std::string_view name, std::uint64_t bytes) {
  const Timing timing = timing_of(timings_, operation, name);
  Plan plan{timing.submit, timing.launch, later(timing.duration, transfer_time(bytes, timing.bytes_per_second))};

  const base::MutexLock lock(mutex_);
  for (CountedFault& fault : faults_) {
    const FaultRule& rule = fault.rule;
    if (!is_of_operations(rule.fault) || (rule.operation && *rule.operation != operation)) continue;
    if (rule.operation == OperationKind::kernel && !matches_pattern(rule.kernel_pattern, name)) continue;
    if (fault.strikes()) plan.faults |= 1u << static_cast<unsigned>(rule.fault);
  }
  return plan;
}

bool Rules::strikes(FaultKind fault) {
  const base::MutexLock lock(mutex_);
  bool any = false;
  for (CountedFault& counted : faults_) {
    if (counted.rule.fault == fault) any = counted.strikes() || any;
  }
  return any;
}

}  // namespace xpu::drivers::sim
