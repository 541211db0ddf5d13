#include <fmt/format.h>

#include <iterator>
#include <string>

#include "drivers/sim/program.hpp"

namespace xpu::drivers::sim {
namespace {

/// In the largest unit of which it is a whole number.
std::string time_text(Time time) {
  std::size_t unit = kTimeUnits.size() - 1;
  while (time.count() % static_cast<std::int64_t>(kTimeUnits[unit].factor) != 0) --unit;
  return fmt::format("{}{}", time.count() / static_cast<std::int64_t>(kTimeUnits[unit].factor), kTimeUnits[unit].name);
}

std::string quoted(std::string_view pattern) {
  std::string text = "\"";
  for (const char character : pattern) {
    if (character == '"' || character == '\\') text.push_back('\\');
    text.push_back(character);
  }
  return text + '"';
}

void write_clock(std::string& out, const Clock& clock) {
  fmt::format_to(std::back_inserter(out), "clock tick={}/{}ns bits={} start={} drift={}ppb bracket={}", clock.tick_numerator,
                 clock.tick_denominator, clock.valid_bits, clock.start_ticks, clock.drift_ppb, time_text(clock.bracket));
  for (const ClockStep& step : clock.steps) out += fmt::format(" step={}@{}", time_text(step.jump), time_text(step.at));
  out += '\n';
}

void write_timing(std::string& out, const TimingRule& rule) {
  out += to_string(rule.operation);
  if (rule.operation == OperationKind::kernel) out += ' ' + quoted(rule.kernel_pattern);
  if (rule.submit) out += " submit=" + time_text(*rule.submit);
  if (rule.launch) out += " launch=" + time_text(*rule.launch);
  if (rule.duration) out += " duration=" + time_text(*rule.duration);
  if (rule.bytes_per_second) out += *rule.bytes_per_second == 0 ? " rate=unlimited" : fmt::format(" rate={}B/s", *rule.bytes_per_second);
  out += '\n';
}

void write_fault(std::string& out, const FaultRule& rule) {
  out += fmt::format("fault {}", to_string(rule.fault));
  if (rule.operation) out += fmt::format(" {}", to_string(*rule.operation));
  if (rule.operation == OperationKind::kernel) out += ' ' + quoted(rule.kernel_pattern);
  out += rule.nth != 0 ? fmt::format(" nth={}\n", rule.nth) : fmt::format(" every={}\n", rule.every);
}

}  // namespace

std::string to_text(const Program& program) {
  std::string out = fmt::format("devices {}\nmemory {}B\n", program.device_count, program.memory_bytes);
  if (program.origin_ns) out += fmt::format("origin {}ns\n", *program.origin_ns);
  for (const Clock& clock : program.clocks) write_clock(out, clock);
  for (const TimingRule& rule : program.timings) write_timing(out, rule);
  for (const FaultRule& rule : program.faults) write_fault(out, rule);
  return out;
}

}  // namespace xpu::drivers::sim
