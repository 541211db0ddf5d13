#include "profiler/check/event_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace xpu::profiler {
namespace {

using Type = TraceValue::Type;

/// Types that readers take for a key.
enum class Allowed : std::uint8_t { text, number, text_or_number, object };

struct Key {
  std::string_view name;
  TraceValue TraceEvent::* value;
  Allowed allowed;
};

constexpr std::array kKeys{
    Key{"name", &TraceEvent::name, Allowed::text},         Key{"cat", &TraceEvent::category, Allowed::text},
    Key{"pid", &TraceEvent::pid, Allowed::text_or_number}, Key{"tid", &TraceEvent::tid, Allowed::text_or_number},
    Key{"ts", &TraceEvent::time, Allowed::number},         Key{"dur", &TraceEvent::duration, Allowed::number},
    Key{"id", &TraceEvent::id, Allowed::text_or_number},   Key{"args", &TraceEvent::args, Allowed::object},
};

/// Keys that an event of a phase cannot do without, in the order of `kKeys`; nothing where the phase is one that no rule looks at.
std::string_view needed_by(char phase) {
  switch (phase) {
    case 'X': return "name pid tid ts dur";
    case 'B': return "name pid tid ts";
    case 'E': return "pid tid ts";
    case 'i':
    case 'I': return "name ts";
    case 'C': return "name pid ts args";
    case 'M': return "name pid args";
    case 's':
    case 't':
    case 'f': return "name cat pid tid ts id";
    case 'b':
    case 'n':
    case 'e': return "cat ts id";
    default: return "";
  }
}

// Those of the format that no rule looks at: samples, objects, memory dumps, marks, clock syncs, contexts, the old kind of async events.
constexpr std::string_view kOtherPhases = "PpSTFNODvVRc(),";

bool needs(std::string_view keys, std::string_view key) {
  for (std::size_t at = keys.find(key); at != std::string_view::npos; at = keys.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if ((at == 0 || keys[at - 1] == ' ') && (end == keys.size() || keys[end] == ' ')) return true;
  }
  return false;
}

bool is_allowed(const TraceValue& value, Allowed allowed) {
  switch (allowed) {
    case Allowed::text: return value.is(Type::text);
    case Allowed::number: return value.is(Type::number);
    case Allowed::text_or_number: return value.is(Type::text) || value.is(Type::number);
    case Allowed::object: return value.is(Type::object);
  }
  return false;
}

std::string_view name_of(Allowed allowed) {
  switch (allowed) {
    case Allowed::text: return "a string";
    case Allowed::number: return "a number";
    case Allowed::text_or_number: return "a number or a string";
    case Allowed::object: return "an object";
  }
  return "";
}

std::string_view name_of(Type type) {
  switch (type) {
    case Type::missing: return "missing";
    case Type::null: return "null";
    case Type::boolean: return "a boolean";
    case Type::number: return "a number";
    case Type::text: return "a string";
    case Type::array: return "a list";
    case Type::object: return "an object";
  }
  return "";
}

bool is_unknown(std::string_view name) {
  constexpr std::string_view kUnknown = "unknown";
  return std::equal(name.begin(), name.end(), kUnknown.begin(), kUnknown.end(),
                    [](char left, char right) { return (left >= 'A' && left <= 'Z' ? left - 'A' + 'a' : left) == right; });
}

void check_names(const TraceEvent& event, Findings& findings) {
  if (event.letter() == 'E' || event.letter() == 'M' || !event.name.is(Type::text)) return;
  if (event.name.text.empty()) findings.add(Rule::empty_name, event.index, [&] { return place_of(event, event.category.text); });
  if (is_unknown(event.name.text)) findings.add(Rule::unknown_name, event.index, [&] { return place_of(event, event.category.text); });
}

/// Both are reported and neither keeps the other rules from looking: the order of events is still known.
void check_signs(const TraceEvent& event, Findings& findings) {
  if (event.time.thousandths && *event.time.thousandths < 0)
    findings.add(Rule::negative_time, event.index, [&] { return place_of(event, "ts is " + event.time.text); });
  if (event.letter() == 'X' && event.duration.thousandths && *event.duration.thousandths < 0)
    findings.add(Rule::negative_duration, event.index, [&] { return place_of(event, "dur is " + event.duration.text); });
}

}  // namespace

TracePlace place_of(const TraceEvent& event, std::string detail) {
  return {event.index, event.name.is(Type::text) ? event.name.text : std::string(), event.time.thousandths, std::move(detail)};
}

bool check_event(const TraceEvent& event, Findings& findings) {
  if (!event.is_object) {
    findings.add(Rule::wrong_type, event.index, [&] { return place_of(event, "the event is no object"); });
    return false;
  }
  if (!event.phase.is(Type::text)) {
    if (event.phase.present()) {
      findings.add(Rule::wrong_type, event.index, [&] { return place_of(event, fmt::format("ph is {}", name_of(event.phase.type))); });
    } else {
      findings.add(Rule::missing_key, event.index, [&] { return place_of(event, "no ph"); });
    }
    return false;
  }
  const std::string_view needed = needed_by(event.letter());
  if (needed.empty()) {
    if (event.letter() == '\0' || kOtherPhases.find(event.letter()) == std::string_view::npos)
      findings.add(Rule::unknown_phase, event.index, [&] { return place_of(event, "ph is \"" + event.phase.text + '"'); });
    return false;
  }
  bool usable = true;
  for (const Key& key : kKeys) {
    const TraceValue& value = event.*key.value;
    const bool is_needed = needs(needed, key.name);
    if (!value.present()) {
      if (!is_needed) continue;
      findings.add(Rule::missing_key, event.index,
                   [&] { return place_of(event, fmt::format("no {}, which ph \"{}\" needs", key.name, event.phase.text)); });
    } else if (!is_allowed(value, key.allowed)) {
      findings.add(Rule::wrong_type, event.index,
                   [&] { return place_of(event, fmt::format("{} is {}, not {}", key.name, name_of(value.type), name_of(key.allowed))); });
    } else if (key.allowed == Allowed::number && !value.thousandths) {
      findings.add(Rule::wrong_type, event.index,
                   [&] { return place_of(event, fmt::format("{} is {}, which no nanoseconds can hold", key.name, value.text)); });
    } else {
      continue;
    }
    usable = false;
  }
  if (event.letter() == 'C' && event.args.is(Type::object) && !event.details.has_number)
    findings.add(Rule::wrong_type, event.index, [&] { return place_of(event, "the counter has no value that is a number"); });
  check_names(event, findings);
  check_signs(event, findings);
  return usable;
}

}  // namespace xpu::profiler
