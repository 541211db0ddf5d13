#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/sim/program.hpp"
#include "xpu/base/text.hpp"

namespace xpu::drivers::sim {
namespace {

__extension__ using WideAmount = __int128;

constexpr std::array<Unit, 7> kByteUnits = {
    {{"B", 1}, {"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30}}};
constexpr std::array<Unit, 8> kRateUnits = {{{"B/s", 1},
                                             {"KB/s", 1'000},
                                             {"MB/s", 1'000'000},
                                             {"GB/s", 1'000'000'000},
                                             {"TB/s", 1'000'000'000'000},
                                             {"KiB/s", 1u << 10},
                                             {"MiB/s", 1u << 20},
                                             {"GiB/s", 1u << 30}}};
constexpr std::array<Unit, 4> kHostTimeUnits = {{{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
constexpr std::array<Unit, 2> kDriftUnits = {{{"ppb", 1}, {"ppm", 1'000}}};

constexpr std::size_t kMaxDigits = 19;

template <typename... Arguments>
Error misread(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return {ErrorCode::invalid_argument, fmt::format(format, std::forward<Arguments>(arguments)...)};
}

bool is_digit(char character) { return character >= '0' && character <= '9'; }

Error no_amount(std::string_view text, std::string_view what, std::span<const Unit> units) {
  std::vector<std::string_view> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  return misread("'{}' is no {}, it must be a number of at most {} digits and one of {}", printable(text), what, kMaxDigits,
                 fmt::join(names, ", "));
}

/// A decimal number with one of the units, as a whole number of the unit with the factor 1.
Result<std::int64_t> read_amount(std::string_view text, std::string_view what, std::span<const Unit> units) {
  const bool is_negative = text.starts_with('-');
  std::size_t at = is_negative ? 1 : 0, digits = 0;
  WideAmount amount = 0, divisor = 1;
  bool is_fraction = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !is_fraction)); ++at) {
    if (text[at] == '.') {
      is_fraction = true;
      continue;
    }
    if (++digits > kMaxDigits) return no_amount(text, what, units);
    amount = amount * 10 + (text[at] - '0');
    if (is_fraction) divisor *= 10;
  }
  const std::string_view name = text.substr(at);
  for (const Unit& unit : units) {
    if (unit.name != name || digits == 0) continue;
    amount *= unit.factor;
    if (amount % divisor != 0) return misread("the {} {} is no whole number of {}", what, text, units.front().name);
    amount /= divisor;
    if (amount > std::numeric_limits<std::int64_t>::max() / 2) return misread("the {} {} is too large", what, text);
    return static_cast<std::int64_t>(is_negative ? -amount : amount);
  }
  return no_amount(text, what, units);
}

Result<Time> read_time(std::string_view text) {
  XPU_TRY_ASSIGN(const std::int64_t picoseconds, read_amount(text, "time", kTimeUnits));
  return Time(picoseconds);
}

template <typename Number>
Result<Number> read_number(std::string_view text, std::string_view what) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || rest != end)
    return misread("'{}' is no {}, it must be a whole number of at most {}", printable(text), what, std::numeric_limits<Number>::max());
  return number;
}

/// "52.083ns" or, for ticks that are no whole picoseconds, "625/12ns".
Result<> read_tick(std::string_view text, Clock& clock) {
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos && text.ends_with("ns")) {
    XPU_TRY_ASSIGN(clock.tick_numerator, read_number<std::uint32_t>(text.substr(0, slash), "numerator of a tick"));
    text.remove_suffix(2);
    XPU_TRY_ASSIGN(clock.tick_denominator, read_number<std::uint32_t>(text.substr(slash + 1), "denominator of a tick"));
    return {};
  }
  XPU_TRY_ASSIGN(const std::int64_t picoseconds, read_amount(text, "tick", kTimeUnits));
  const std::int64_t divisor = std::gcd(picoseconds, std::int64_t{1000});
  const std::int64_t numerator = picoseconds / divisor;
  if (numerator < 0 || numerator > std::numeric_limits<std::uint32_t>::max()) return misread("the tick {} is not in (0, 1s]", text);
  clock.tick_numerator = static_cast<std::uint32_t>(numerator);
  clock.tick_denominator = static_cast<std::uint32_t>(1000 / divisor);
  return {};
}

/// "JUMP@TIME".
Result<> read_step(std::string_view text, Clock& clock) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos)
    return misread("the step '{}' has no '@', it must be like 5ms@2s (jump by 5 ms at 2 s)", printable(text));
  ClockStep step;
  XPU_TRY_ASSIGN(step.jump, read_time(text.substr(0, at)));
  XPU_TRY_ASSIGN(step.at, read_time(text.substr(at + 1)));
  clock.steps.push_back(step);
  return {};
}

struct Word {
  std::string text;
  bool is_quoted = false;
};

/// The words of a line: apart by white space, "in quotes" as they are (with \" and \\), up to a '#'.
Result<std::vector<Word>> split_line(std::string_view line) {
  std::vector<Word> words;
  std::size_t at = 0;
  while (true) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == std::string_view::npos || line[at] == '#') return words;
    Word word;
    if (line[at] == '"') {
      word.is_quoted = true;
      for (++at; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && ++at == line.size()) break;
        word.text.push_back(line[at]);
      }
      if (at >= line.size()) return misread("a quoted text has no end, it must end with '\"' on the same line");
      ++at;
    } else {
      const std::size_t end = std::min(line.find_first_of(" \t\r#\"", at), line.size());
      word.text = line.substr(at, end - at);
      at = end;
    }
    words.push_back(std::move(word));
  }
}

/// What stands behind the directive of a line, taken from the front.
class Words {
 public:
  explicit Words(std::span<const Word> words) : words_(words) {}

  bool empty() const noexcept { return words_.empty(); }
  /// A word that is neither quoted nor key=value.
  std::optional<std::string_view> take_name() {
    if (words_.empty() || words_.front().is_quoted || words_.front().text.find('=') != std::string::npos) return std::nullopt;
    return take().text;
  }
  std::optional<std::string_view> take_quoted() {
    if (words_.empty() || !words_.front().is_quoted) return std::nullopt;
    return take().text;
  }
  /// Hands each rest to `read(key, value)`, which returns nothing when the key is none.
  template <typename Read>
  Result<> for_each_setting(std::string_view directive, std::string_view allowed, Read read) {
    while (!words_.empty()) {
      const Word& word = take();
      const std::size_t equals = word.is_quoted ? std::string::npos : word.text.find('=');
      if (equals == std::string::npos)
        return misread("'{}' is not understood here, '{}' takes {}", printable(word.text), directive, allowed);
      const std::string_view key = std::string_view(word.text).substr(0, equals), value = std::string_view(word.text).substr(equals + 1);
      const std::optional<Result<>> result = read(key, value);
      if (!result) return misread("'{}' has no '{}', it takes {}", directive, printable(key), allowed);
      XPU_TRY(*result);
    }
    return {};
  }

 private:
  const Word& take() {
    const Word& word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }
  std::span<const Word> words_;
};

template <typename Kinds>
auto find_kind(const Kinds& kinds, std::string_view name) -> std::optional<typename Kinds::value_type> {
  for (const auto kind : kinds) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

template <typename Kinds>
std::string names_of(const Kinds& kinds) {
  std::string names;
  for (const auto kind : kinds) names += (names.empty() ? "" : ", ") + std::string(to_string(kind));
  return names;
}

template <typename Target, typename Value>
Result<> assign(Target& target, Result<Value> value) {
  XPU_TRY_ASSIGN(target, std::move(value));
  return {};
}

Result<> read_clock_line(Words words, std::vector<Clock>& clocks) {
  Clock clock;
  XPU_TRY(words.for_each_setting("clock", "tick, bits, start, drift, bracket, step",
                                 [&](std::string_view key, std::string_view value) -> std::optional<Result<>> {
                                   if (key == "tick") return read_tick(value, clock);
                                   if (key == "bits") return assign(clock.valid_bits, read_number<std::uint32_t>(value, "number of bits"));
                                   if (key == "start")
                                     return assign(clock.start_ticks, read_number<std::uint64_t>(value, "number of ticks"));
                                   if (key == "drift") return assign(clock.drift_ppb, read_amount(value, "drift", kDriftUnits));
                                   if (key == "bracket") return assign(clock.bracket, read_time(value));
                                   if (key == "step") return read_step(value, clock);
                                   return std::nullopt;
                                 }));
  XPU_TRY(check_clock(clock));
  clocks.push_back(std::move(clock));
  return {};
}

Result<std::uint64_t> read_rate(std::string_view text) {
  if (text == "unlimited") return std::uint64_t{0};
  XPU_TRY_ASSIGN(const std::int64_t rate, read_amount(text, "rate", kRateUnits));
  if (rate <= 0) return misread("the rate {} is not above 0, it must be so or 'unlimited'", text);
  return static_cast<std::uint64_t>(rate);
}

Result<> read_timing_line(OperationKind operation, Words words, std::vector<TimingRule>& timings) {
  TimingRule rule;
  rule.operation = operation;
  if (const auto pattern = words.take_quoted()) rule.kernel_pattern = *pattern;
  XPU_TRY(words.for_each_setting(to_string(operation), "submit, launch, duration, rate",
                                 [&](std::string_view key, std::string_view value) -> std::optional<Result<>> {
                                   if (key == "submit") return assign(rule.submit, read_time(value));
                                   if (key == "launch") return assign(rule.launch, read_time(value));
                                   if (key == "duration") return assign(rule.duration, read_time(value));
                                   if (key == "rate") return assign(rule.bytes_per_second, read_rate(value));
                                   return std::nullopt;
                                 }));
  XPU_TRY(check_timing(rule));
  timings.push_back(std::move(rule));
  return {};
}

Result<> read_fault_line(Words words, std::vector<FaultRule>& faults) {
  FaultRule rule;
  const std::string_view name = words.take_name().value_or("");
  const auto fault = find_kind(kFaultKinds, name);
  if (!fault) return misread("'{}' is no fault, it must be one of {}", printable(name), names_of(kFaultKinds));
  rule.fault = *fault;
  if (const auto operation = words.take_name()) {
    rule.operation = find_kind(kOperationKinds, *operation);
    if (!rule.operation)
      return misread("'{}' is no kind of operation, it must be one of {}", printable(*operation), names_of(kOperationKinds));
  }
  if (const auto pattern = words.take_quoted()) rule.kernel_pattern = *pattern;
  XPU_TRY(words.for_each_setting("fault", "nth, every", [&](std::string_view key, std::string_view value) -> std::optional<Result<>> {
    if (key == "nth") return assign(rule.nth, read_number<std::uint64_t>(value, "number"));
    if (key == "every") return assign(rule.every, read_number<std::uint64_t>(value, "number"));
    return std::nullopt;
  }));
  XPU_TRY(check_fault(rule));
  faults.push_back(std::move(rule));
  return {};
}

/// The one value of a line that has no more.
Result<std::string_view> read_only_value(std::string_view directive, Words words, std::string_view example) {
  const auto value = words.take_name();
  if (!value || !words.empty()) return misread("'{}' takes one value, such as '{} {}'", directive, directive, example);
  return *value;
}

Result<> read_line(std::string_view directive, Words words, Program& program) {
  if (directive == "devices") {
    XPU_TRY_ASSIGN(const std::string_view value, read_only_value(directive, words, "2"));
    XPU_TRY(assign(program.device_count, read_number<std::uint32_t>(value, "number of devices")));
    return check_device_count(program.device_count);
  }
  if (directive == "memory") {
    XPU_TRY_ASSIGN(const std::string_view value, read_only_value(directive, words, "1GiB"));
    XPU_TRY_ASSIGN(const std::int64_t bytes, read_amount(value, "size", kByteUnits));
    program.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
    return check_memory_bytes(program.memory_bytes);
  }
  if (directive == "origin") {
    XPU_TRY_ASSIGN(const std::string_view value, read_only_value(directive, words, "1000s"));
    XPU_TRY_ASSIGN(const std::int64_t origin_ns, read_amount(value, "host time", kHostTimeUnits));
    if (origin_ns < 0) return misread("the origin {} is below 0", value);
    program.origin_ns = static_cast<std::uint64_t>(origin_ns);
    return {};
  }
  if (directive == "clock") return read_clock_line(words, program.clocks);
  if (directive == "fault") return read_fault_line(words, program.faults);
  if (const auto operation = find_kind(kOperationKinds, directive)) return read_timing_line(*operation, words, program.timings);
  return misread("'{}' is no directive, it must be one of devices, memory, origin, clock, fault, {}", printable(directive),
                 names_of(kOperationKinds));
}

Result<> read_text_line(std::string_view line, Program& program) {
  XPU_TRY_ASSIGN(const std::vector<Word> words, split_line(line));
  if (words.empty()) return {};
  if (words.front().is_quoted) return misread("the line begins with a quoted text, it must begin with a directive");
  return read_line(words.front().text, Words(std::span(words).subspan(1)), program);
}

}  // namespace

Result<Program> parse_program(std::string_view text, std::string_view file) {
  Program program;
  program.clocks.clear();
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const Result<> result = read_text_line(text.substr(0, end), program); !result)
      return Error{result.error().code, fmt::format("{}:{}: {}", file, number, result.error().message)};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (program.clocks.empty()) program.clocks.emplace_back();
  if (const Result<> result = check_program(program); !result)
    return Error{result.error().code, fmt::format("{}: {}", file, result.error().message)};
  return program;
}

}  // namespace xpu::drivers::sim
