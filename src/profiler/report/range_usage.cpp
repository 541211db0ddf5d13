#include "profiler/report/range_usage.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace xpu::profiler {
namespace {

void add_time(std::optional<std::uint64_t>& sum, std::uint64_t ns) { sum = sum.value_or(0) + ns; }

std::uint64_t length_ns(const AnnotatedRange& range) {
  return static_cast<std::uint64_t>(range.end_ns) - static_cast<std::uint64_t>(range.begin_ns);
}

}  // namespace

void RangeUsage::add(const DeviceActivity& activity) {
  if (activity.call == nullptr || activity.state == CommandState::refused) return;
  if (activity.command == Command::marker || activity.command == Command::barrier) return;
  commands_[activity.call->thread].push_back({activity.call->start_ns, activity.duration_ns, activity.timed});
}

/// A range inside of one of the same name is part of that one's time already.
void RangeUsage::add_host_times(const std::vector<AnnotatedRange>& ranges, Rows& rows) {
  OpenRanges walk(ranges);
  std::vector<std::uint64_t> inside_ns(ranges.size());  // time of the ranges directly in each
  const auto index_of = [&](const AnnotatedRange* range) { return static_cast<std::size_t>(range - ranges.data()); };
  for (const AnnotatedRange& range : ranges) {
    Report::Range& row = rows[range.name->text];
    ++row.calls;
    if (!range.is_closed) continue;
    const AnnotatedRange* parent = nullptr;
    bool is_in_its_own_name = false;
    for (const AnnotatedRange* open : walk.at(range.begin_ns)) {
      if (open == &range || index_of(open) > index_of(&range) || open->end_ns < range.end_ns) continue;
      parent = open;
      is_in_its_own_name = is_in_its_own_name || open->name->text == range.name->text;
    }
    if (parent != nullptr) inside_ns[index_of(parent)] += length_ns(range);
    if (!is_in_its_own_name) add_time(row.host_ns, length_ns(range));
  }
  for (const AnnotatedRange& range : ranges) {
    if (!range.is_closed) continue;
    // Ranges of a damaged recording may overlap as they like.
    add_time(rows[range.name->text].host_self_ns, length_ns(range) - std::min(length_ns(range), inside_ns[index_of(&range)]));
  }
}

void RangeUsage::add_device_times(const std::vector<AnnotatedRange>& ranges, std::vector<Submitted>& commands, Rows& rows) {
  std::sort(commands.begin(), commands.end(), [](const Submitted& a, const Submitted& b) { return a.submitted_ns < b.submitted_ns; });
  OpenRanges walk(ranges);
  std::vector<const std::string*> names;  // that are open, each once
  for (const Submitted& command : commands) {
    const std::vector<const AnnotatedRange*>& open = walk.at(command.submitted_ns);
    names.clear();
    for (const AnnotatedRange* range : open) {
      const auto is_same = [&](const std::string* name) { return *name == range->name->text; };
      if (std::none_of(names.begin(), names.end(), is_same)) names.push_back(&range->name->text);
    }
    const std::string none = kNoRange;
    if (open.empty()) names.push_back(&none);
    for (const std::string* name : names) {
      Report::Range& row = rows[*name];
      ++row.commands;
      if (command.is_timed) add_time(row.device_ns, command.duration_ns);
    }
    if (command.is_timed) add_time(rows[open.empty() ? none : open.back()->name->text].device_self_ns, command.duration_ns);
  }
}

std::vector<Report::Range> RangeUsage::take(AnnotatedRanges& ranges) {
  if (ranges.is_empty()) return {};
  Rows rows;
  for (const ThreadDefinition* thread : ranges.threads()) add_host_times(ranges.of(thread), rows);
  for (auto& [thread, commands] : commands_) add_device_times(ranges.of(thread), commands, rows);
  std::vector<Report::Range> table;
  for (auto& [name, row] : rows) {
    row.name = name;
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace xpu::profiler
