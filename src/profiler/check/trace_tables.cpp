#include "profiler/check/trace_tables.hpp"

#include <algorithm>

namespace xpu::profiler {
namespace {

constexpr std::uint64_t kTextKey = std::uint64_t{1} << 63;

}  // namespace

std::uint32_t InternedTexts::id(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<std::uint32_t>(texts_.size());
  ids_.emplace(texts_.emplace_back(text), id);
  return id;
}

std::uint64_t InternedTexts::key(const TraceValue& value) {
  if (value.integer && *value.integer >= 0) return static_cast<std::uint64_t>(*value.integer);
  return kTextKey | id(value.text);
}

std::string InternedTexts::key_text(std::uint64_t key) const {
  return (key & kTextKey) != 0 ? text(static_cast<std::uint32_t>(key)) : std::to_string(key);
}

std::uint32_t RowTable::id(const TraceEvent& event) {
  key_.assign(event.pid.text);
  key_ += '\0';
  key_ += event.tid.text;
  const auto [found, is_new] = ids_.try_emplace(key_, size());
  if (is_new) rows_.push_back({event.pid.text, event.tid.text, std::nullopt, 0});
  TraceRow& row = rows_[found->second];
  if (event.letter() == 'X' && event.details.device.integer) row.device = event.details.device.integer;
  if (event.details.clock_error_ns.integer)
    row.stated_error_ns = std::clamp(*event.details.clock_error_ns.integer, row.stated_error_ns, kLargestErrorNs);
  return found->second;
}

std::int64_t TraceTables::error_ns(std::uint32_t row) const {
  const TraceRow& known = rows.row(row);
  std::int64_t error_ns = known.stated_error_ns;
  if (known.device) {
    if (const auto found = device_error_ns.find(*known.device); found != device_error_ns.end())
      error_ns = std::max(error_ns, found->second);
  }
  return error_ns;
}

}  // namespace xpu::profiler
