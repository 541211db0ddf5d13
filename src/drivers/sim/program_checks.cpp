#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "drivers/sim/program.hpp"

namespace xpu::drivers::sim {
namespace {

constexpr std::uint32_t kMaxDevices = 64;
constexpr std::uint64_t kMinMemoryBytes = 4096, kMaxMemoryBytes = std::uint64_t{1} << 46;
constexpr std::int64_t kMaxDriftPpb = 100'000'000;
constexpr std::size_t kMaxSteps = 1000, kMaxRules = 10'000, kMaxPatternBytes = 1024;
constexpr Time kMaxBracket = std::chrono::seconds(1);

template <typename... Arguments>
Error not_allowed(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return {ErrorCode::invalid_argument, fmt::format(format, std::forward<Arguments>(arguments)...)};
}

Result<> check_time(std::string_view what, const std::optional<Time>& time) {
  if (time && (*time < Time(0) || *time > kMaxTime))
    return not_allowed("{} is {} ps, it must be in [0, {}] (24 hours)", what, time->count(), kMaxTime.count());
  return {};
}

Result<> check_pattern(const std::string& pattern, bool is_of_kernels) {
  if (!is_of_kernels && pattern != "*")
    return not_allowed("the pattern \"{}\" is of something that has no name, only kernels have", pattern);
  if (pattern.size() > kMaxPatternBytes)
    return not_allowed("a pattern has {} bytes, at most {} are allowed", pattern.size(), kMaxPatternBytes);
  const auto is_control = [](char character) { return static_cast<unsigned char>(character) < 0x20 || character == 0x7f; };
  if (std::any_of(pattern.begin(), pattern.end(), is_control))
    return not_allowed("a pattern has a control character, it must be one line of text");
  return {};
}

}  // namespace

const char* to_string(OperationKind kind) noexcept {
  switch (kind) {
    case OperationKind::kernel: return "kernel";
    case OperationKind::copy: return "copy";
    case OperationKind::fill: return "fill";
    case OperationKind::host_function: return "host_function";
    case OperationKind::event: return "event";
  }
  return "unknown";
}

const char* to_string(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::record_lost: return "record_lost";
    case FaultKind::record_late: return "record_late";
    case FaultKind::record_duplicate: return "record_duplicate";
    case FaultKind::record_negative: return "record_negative";
    case FaultKind::record_untimed: return "record_untimed";
    case FaultKind::operation_fails: return "operation_fails";
    case FaultKind::device_lost: return "device_lost";
    case FaultKind::out_of_memory: return "out_of_memory";
    case FaultKind::queue_refused: return "queue_refused";
  }
  return "unknown";
}

Result<> check_device_count(std::uint64_t count) {
  if (count < 1 || count > kMaxDevices) return not_allowed("{} devices are asked for, the number must be in [1, {}]", count, kMaxDevices);
  return {};
}

Result<> check_memory_bytes(std::uint64_t bytes) {
  if (bytes < kMinMemoryBytes || bytes > kMaxMemoryBytes)
    return not_allowed("the memory is {} bytes, it must be in [{}, {}]", bytes, kMinMemoryBytes, kMaxMemoryBytes);
  return {};
}

Result<> check_clock(const Clock& clock) {
  const std::uint64_t max_numerator = std::uint64_t{clock.tick_denominator} * 1'000'000'000;
  if (clock.tick_numerator == 0 || clock.tick_numerator > max_numerator)
    return not_allowed("the tick is {}/{} ns, it must be above 0 and at most 1 s", clock.tick_numerator, clock.tick_denominator);
  if (clock.valid_bits < 8 || clock.valid_bits > 64) return not_allowed("the clock has {} bits, it must have 8 to 64", clock.valid_bits);
  if (clock.valid_bits < 64 && clock.start_ticks >> clock.valid_bits != 0)
    return not_allowed("the clock starts at {} ticks, which {} bits do not hold", clock.start_ticks, clock.valid_bits);
  if (clock.drift_ppb < -kMaxDriftPpb || clock.drift_ppb > kMaxDriftPpb)
    return not_allowed("the drift is {} ppb, it must be in [-{}, {}] (10 %)", clock.drift_ppb, kMaxDriftPpb, kMaxDriftPpb);
  if (clock.bracket < Time(0) || clock.bracket > kMaxBracket)
    return not_allowed("the bracket is {} ps, it must be in [0, {}] (1 s)", clock.bracket.count(), kMaxBracket.count());
  if (clock.steps.size() > kMaxSteps) return not_allowed("the clock has {} steps, at most {} are allowed", clock.steps.size(), kMaxSteps);
  for (const ClockStep& step : clock.steps) {
    XPU_TRY(check_time("the time of a step", step.at));
    if (step.jump < -kMaxTime || step.jump > kMaxTime)
      return not_allowed("a step is {} ps, it must be in [-{}, {}] (24 hours)", step.jump.count(), kMaxTime.count(), kMaxTime.count());
  }
  return {};
}

Result<> check_timing(const TimingRule& rule) {
  const char* kind = to_string(rule.operation);
  XPU_TRY(check_time("submit", rule.submit));
  XPU_TRY(check_time("launch", rule.launch));
  XPU_TRY(check_time("duration", rule.duration));
  XPU_TRY(check_pattern(rule.kernel_pattern, rule.operation == OperationKind::kernel));
  if (rule.operation == OperationKind::event && (rule.launch || rule.duration))
    return not_allowed("event has a launch or duration, it may have submit only");
  if (rule.bytes_per_second && rule.operation != OperationKind::copy && rule.operation != OperationKind::fill)
    return not_allowed("{} has a rate, only copy and fill may have one", kind);
  if (rule.bytes_per_second > static_cast<std::uint64_t>(kMaxTime.count()))
    return not_allowed("the rate is {} B/s, at most {} are allowed", *rule.bytes_per_second, kMaxTime.count());
  if (!rule.submit && !rule.launch && !rule.duration && !rule.bytes_per_second)
    return not_allowed("{} sets nothing, it must set one of submit, launch, duration, rate", kind);
  return {};
}

Result<> check_fault(const FaultRule& rule) {
  const char* fault = to_string(rule.fault);
  const bool is_of_operations = rule.fault != FaultKind::out_of_memory && rule.fault != FaultKind::queue_refused;
  if (rule.operation && !is_of_operations)
    return not_allowed("{} names the operation {}, it has nothing to do with one", fault, to_string(*rule.operation));
  if (rule.operation == OperationKind::event) return not_allowed("{} is of events, it may be of kernel, copy, fill, host_function", fault);
  XPU_TRY(check_pattern(rule.kernel_pattern, rule.operation == OperationKind::kernel));
  if (rule.nth == 0 && rule.every == 0) return not_allowed("{} has nth and every of 0, one must be at least 1", fault);
  if (rule.nth != 0 && rule.every != 1)
    return not_allowed("{} has nth={} and every={}, only one may be given", fault, rule.nth, rule.every);
  return {};
}

Result<> check_program(const Program& program) {
  XPU_TRY(check_device_count(program.device_count));
  XPU_TRY(check_memory_bytes(program.memory_bytes));
  if (program.origin_ns > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 2)
    return not_allowed("the origin is {} ns, it must be below 2^62", *program.origin_ns);
  if (program.clocks.empty() || program.clocks.size() > kMaxDevices)
    return not_allowed("the program has {} clocks, it must have 1 to {}", program.clocks.size(), kMaxDevices);
  if (program.timings.size() + program.faults.size() > kMaxRules)
    return not_allowed("the program has {} rules, at most {} are allowed", program.timings.size() + program.faults.size(), kMaxRules);
  for (const Clock& clock : program.clocks) XPU_TRY(check_clock(clock));
  for (const TimingRule& rule : program.timings) XPU_TRY(check_timing(rule));
  for (const FaultRule& rule : program.faults) XPU_TRY(check_fault(rule));
  return {};
}

}  // namespace xpu::drivers::sim
