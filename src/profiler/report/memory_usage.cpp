#include "profiler/report/memory_usage.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "profiler/time_difference.hpp"

namespace xpu::profiler {
namespace {

constexpr std::size_t kTimelineSteps = 64;
constexpr const char* kBefore = "(before the recording)";

}  // namespace

void MemoryUsage::add(const MemoryActivity& activity) {
  events_[{activity.process->index, activity.context}].push_back(
      {activity.start_ns, activity.address, activity.bytes, activity.alive_bytes, activity.thread, activity.allocates});
}

/// Of two events at the same time, which was later is open: the answer must not depend on which was read first.
void MemoryUsage::sort(std::vector<Event>& events) {
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time_ns, b.alive_bytes, b.allocates, a.address) < std::tie(b.time_ns, a.alive_bytes, a.allocates, b.address);
  });
}

std::vector<MemoryUsage::Block> MemoryUsage::blocks_at(const std::vector<Event>& events, std::size_t peak) {
  std::unordered_map<std::uint64_t, Block> alive;
  for (std::size_t i = 0; i <= peak; ++i) {
    const Event& event = events[i];
    if (event.allocates) {
      alive[event.address] = {event.time_ns, event.bytes, event.thread};
    } else {
      alive.erase(event.address);
    }
  }
  std::vector<Block> blocks;
  blocks.reserve(alive.size());
  for (const auto& [address, block] : alive) blocks.push_back(block);
  return blocks;
}

std::vector<Report::MemoryOwner> MemoryUsage::owners_of(std::vector<Block> blocks, AnnotatedRanges& ranges, std::uint64_t peak_bytes) {
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return std::tie(a.thread, a.time_ns) < std::tie(b.thread, b.time_ns); });
  std::map<std::string, Report::MemoryOwner> by_name;
  std::uint64_t known_bytes = 0;
  const ThreadDefinition* thread = nullptr;
  std::optional<OpenRanges> walk;
  for (const Block& block : blocks) {
    if (!walk || block.thread != thread) {
      thread = block.thread;
      walk.emplace(ranges.of(thread));
    }
    const std::vector<const AnnotatedRange*>& open = walk->at(block.time_ns);
    Report::MemoryOwner& owner = by_name[open.empty() ? kNoRange : open.back()->name->text];
    owner.bytes += block.bytes;
    ++owner.blocks;
    known_bytes += block.bytes;
  }
  if (known_bytes < peak_bytes) by_name[kBefore].bytes += peak_bytes - known_bytes;
  std::vector<Report::MemoryOwner> owners;
  for (auto& [name, owner] : by_name) {
    owner.name = name;
    owners.push_back(std::move(owner));
  }
  std::stable_sort(owners.begin(), owners.end(),
                   [](const Report::MemoryOwner& a, const Report::MemoryOwner& b) { return a.bytes > b.bytes; });
  return owners;
}

void MemoryUsage::add_timeline(const std::vector<Event>& events, Report::Memory& row) {
  const auto since_first = [&](const Event& event) {
    return static_cast<std::uint64_t>(event.time_ns) - static_cast<std::uint64_t>(events.front().time_ns);
  };
  const std::uint64_t span_ns = since_first(events.back());
  row.timeline_step_ns = span_ns / kTimelineSteps + 1;
  row.timeline_bytes.resize(span_ns / row.timeline_step_ns + 1);
  std::size_t next = 0;
  std::uint64_t alive_bytes = 0;
  for (std::size_t step = 0; step < row.timeline_bytes.size(); ++step) {
    std::uint64_t most_bytes = alive_bytes;
    for (; next < events.size() && since_first(events[next]) / row.timeline_step_ns == step; ++next) {
      alive_bytes = events[next].alive_bytes;
      most_bytes = std::max(most_bytes, alive_bytes);
    }
    row.timeline_bytes[step] = most_bytes;
  }
}

std::vector<Report::Memory> MemoryUsage::take(const Definitions& definitions, AnnotatedRanges& ranges, std::int64_t origin_ns) {
  std::vector<Report::Memory> rows;
  for (auto& [key, events] : events_) {
    sort(events);
    const auto peak =
        std::max_element(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.alive_bytes < b.alive_bytes; });
    Report::Memory& row = rows.emplace_back();
    row.pid = definitions.processes[key.first].pid;
    row.context = key.second;
    row.peak_bytes = peak->alive_bytes;
    row.peak_ns = difference_ns(peak->time_ns, origin_ns);
    row.alive_bytes = events.back().alive_bytes;
    row.allocations = static_cast<std::uint64_t>(std::count_if(events.begin(), events.end(), [](const Event& e) { return e.allocates; }));
    row.releases = events.size() - row.allocations;
    row.owners = owners_of(blocks_at(events, static_cast<std::size_t>(peak - events.begin())), ranges, row.peak_bytes);
    row.timeline_start_ns = difference_ns(events.front().time_ns, origin_ns);
    add_timeline(events, row);
  }
  return rows;
}

}  // namespace xpu::profiler
