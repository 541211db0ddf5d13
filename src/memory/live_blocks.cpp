#include "memory/live_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "xpu/base/text.hpp"

namespace xpu::memory {

LiveBlockReport summarise_live_blocks(const std::vector<NotedBlock>& blocks, std::uint64_t time_ns, std::size_t max_rows,
                                      const std::function<std::vector<StackRecorder::Frame>(StackId stack)>& frames_of) {
  // By what the stacks say: a recorder may give one stack several numbers.
  using Key = std::tuple<std::string, std::int64_t, std::uint64_t, std::uint64_t>;
  std::map<Key, LiveBlockReport::Row> rows;
  std::map<StackId, std::pair<std::string, std::vector<StackRecorder::Frame>>> stacks;
  for (const NotedBlock& block : blocks) {
    const auto [stack, is_new] = stacks.try_emplace(block.allocated_at);
    if (is_new && block.allocated_at != 0) {
      std::vector<StackRecorder::Frame> frames = frames_of(block.allocated_at);
      std::string text = stack_text(frames);
      stack->second = {std::move(text), std::move(frames)};
    }
    LiveBlockReport::Row& row = rows[{stack->second.first, block.stream, block.pool.graph, block.pool.user}];
    ++row.blocks;
    row.requested_bytes += block.requested_bytes;
    row.stream = block.stream;
    row.pool = block.pool;
    if (block.allocated_ns != 0) row.oldest_age_ns = std::max(row.oldest_age_ns, time_ns - std::min(block.allocated_ns, time_ns));
    row.stack = stack->second.second;
  }
  LiveBlockReport report;
  for (auto& [key, row] : rows) report.rows.push_back(std::move(row));
  std::stable_sort(report.rows.begin(), report.rows.end(),
                   [](const LiveBlockReport::Row& a, const LiveBlockReport::Row& b) { return a.requested_bytes > b.requested_bytes; });
  for (std::size_t index = max_rows; index < report.rows.size(); ++index) {
    ++report.more_rows;
    report.more_blocks += report.rows[index].blocks;
    report.more_bytes += report.rows[index].requested_bytes;
  }
  report.rows.resize(std::min(report.rows.size(), max_rows));
  return report;
}

namespace {

std::string amount_text(std::uint64_t bytes, std::uint64_t blocks) {
  return fmt::format("{} in {} block{}", bytes_text(bytes), with_thousands(blocks), blocks == 1 ? "" : "s");
}

}  // namespace

std::string to_string(const LiveBlockReport& report) {
  std::uint64_t bytes = report.more_bytes, blocks = report.more_blocks;
  for (const LiveBlockReport::Row& row : report.rows) {
    bytes += row.requested_bytes;
    blocks += row.blocks;
  }
  if (blocks == 0) return {};
  std::string text = fmt::format("{} {} not freed:", amount_text(bytes, blocks), blocks == 1 ? "was" : "were");
  for (const LiveBlockReport::Row& row : report.rows) {
    text += fmt::format("\n  {}, stream {}", amount_text(row.requested_bytes, row.blocks), row.stream);
    if (row.pool != PoolId{}) text += fmt::format(", pool ({}, {})", row.pool.graph, row.pool.user);
    if (row.oldest_age_ns != 0) text += fmt::format(", {}{} old", row.blocks == 1 ? "" : "up to ", duration_text(row.oldest_age_ns));
    text += stack_text(row.stack);
  }
  if (report.more_rows != 0) {
    text += fmt::format("\n  … and {} more ({})", with_thousands(report.more_rows), amount_text(report.more_bytes, report.more_blocks));
  }
  return text;
}

}  // namespace xpu::memory
