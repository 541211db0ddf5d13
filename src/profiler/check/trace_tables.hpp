#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/check/trace_event.hpp"

namespace xpu::profiler {

/// Each different text once.
class InternedTexts {
 public:
  std::uint32_t id(std::string_view text);
  const std::string& text(std::uint32_t id) const { return texts_[id]; }
  /// A number that is the same for the same id: itself when it is an integer, else one that no integer of a file is likely to have.
  std::uint64_t key(const TraceValue& value);
  /// The text of a key.
  std::string key_text(std::uint64_t key) const;

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

/// A line of the picture: a thread of a process, or a queue of a device.
struct TraceRow {
  std::string pid, tid;
  std::optional<std::int64_t> device;  ///< That the args of its slices name.
  std::int64_t stated_error_ns = 0;    ///< The largest that the args of its events name.

  std::string text() const { return "pid " + pid + " tid " + tid; }
};

class RowTable {
 public:
  /// The event's row, with what its args say of it.
  std::uint32_t id(const TraceEvent& event);
  const TraceRow& row(std::uint32_t id) const { return rows_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(rows_.size()); }

 private:
  std::vector<TraceRow> rows_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::string key_;
};

/// Errors above are taken for this much, so that two can be added: thirty-six years.
inline constexpr std::int64_t kLargestErrorNs = std::int64_t{1} << 60;

/// What the rules share.
struct TraceTables {
  InternedTexts texts;
  RowTable rows;
  std::map<std::int64_t, std::int64_t> device_error_ns;  ///< By device: how far off its clock is at most, by the file's own word.
  bool has_fractions = false;                            ///< Some time has digits below the microsecond.

  /// Two times that differ by no more may be the same.
  std::int64_t resolution_ns() const noexcept { return has_fractions ? 0 : 1'000; }
  /// How far off the times of a row may be, by the file's own word. Complete once the file is read.
  std::int64_t error_ns(std::uint32_t row) const;
};

}  // namespace xpu::profiler
