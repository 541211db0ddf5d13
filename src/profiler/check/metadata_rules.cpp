#include "profiler/check/metadata_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "profiler/check/event_rules.hpp"

namespace xpu::profiler {
namespace {

// Where Kineto sorts its devices to: this and the device's number.
constexpr std::int64_t kDeviceSortIndex = 5'000'000, kMostDevices = 1'000;

bool is_description(std::string_view name) {
  return name == "process_name" || name == "process_labels" || name == "process_sort_index" || name == "thread_name" ||
         name == "thread_sort_index";
}

const TraceValue& described_as(const TraceEvent& event) {
  const TraceEvent::Args& args = event.details;
  if (event.name.text.ends_with("_name")) return args.name;
  return event.name.text.ends_with("_labels") ? args.labels : args.sort_index;
}

/// "GPU 3", "XPU 3".
bool is_device_label(std::string_view label) {
  if (!label.starts_with("GPU ") && !label.starts_with("XPU ")) return false;
  label.remove_prefix(4);
  return !label.empty() && std::all_of(label.begin(), label.end(), [](char digit) { return digit >= '0' && digit <= '9'; });
}

bool lists_device(const TraceEvent& event) {
  if (event.name.text == "process_labels") return is_device_label(event.details.labels.text);
  const auto& index = event.details.sort_index.integer;
  return event.name.text == "process_sort_index" && index && *index >= kDeviceSortIndex && *index < kDeviceSortIndex + kMostDevices;
}

}  // namespace

void MetadataRules::add(const TraceEvent& event) {
  if (event.letter() != 'M') {
    if (!used_.contains(event.pid.text)) used_.insert(event.pid.text);
    return;
  }
  if (!is_description(event.name.text)) return;
  if (lists_device(event)) {
    const auto device = devices_.try_emplace(event.pid.text, Device{"", event.index}).first;
    if (device->second.label.empty()) device->second.label = event.details.labels.text;
  }
  add_description(event);
}

void MetadataRules::add_description(const TraceEvent& event) {
  const bool is_of_thread = event.name.text.starts_with("thread_");
  if (is_of_thread && !event.tid.present()) {
    findings_.add(Rule::missing_key, event.index, [&] { return place_of(event, "no tid, which a row's description needs"); });
    return;
  }
  const TraceValue& value = described_as(event);
  if (!value.present()) {
    findings_.add(Rule::missing_key, event.index, [&] { return place_of(event, "its args have no value"); });
    return;
  }
  std::string row = fmt::format("pid {}{}{}", event.pid.text, is_of_thread ? " tid " : "", is_of_thread ? event.tid.text : "");
  const auto [known, is_new] = descriptions_.try_emplace(event.name.text + ' ' + row, Description{value.text, event.index});
  if (is_new) return;
  const Description& first = known->second;
  const bool is_same = first.value == value.text;
  findings_.add(is_same ? Rule::duplicate_metadata : Rule::conflicting_metadata, event.index, [&] {
    return place_of(event, is_same ? fmt::format("{} is \"{}\" since event {}", row, value.text, first.event)
                                   : fmt::format("{} is \"{}\", and \"{}\" in event {}", row, value.text, first.value, first.event));
  });
}

void MetadataRules::finish() {
  for (const auto& [pid, device] : devices_) {
    if (used_.contains(pid)) continue;
    findings_.add(Rule::phantom_devices, device.event,
                  [&] { return TracePlace{device.event, device.label, std::nullopt, fmt::format("nothing happens on pid {}", pid)}; });
  }
}

}  // namespace xpu::profiler
