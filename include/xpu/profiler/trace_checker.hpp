#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"

namespace xpu::profiler {

/// How bad a finding is. Only errors make a trace wrong: a viewer then drops, misplaces or mislabels something, or a figure is false.
enum class Severity : std::uint8_t { error, warning, note };
XPU_EXPORT std::string_view to_string(Severity severity) noexcept;

/// Something that a trace is examined for.
struct TraceRule {
  std::string_view name;  ///< Stable, in kebab-case: scripts may rely on it.
  Severity severity;
  std::string_view meaning;  ///< What it means when the rule is broken, in half a sentence.
};

/// All rules in the order in which findings are listed. Lives as long as the program.
XPU_EXPORT std::span<const TraceRule> trace_rules() noexcept;

/// One of the places where a rule is broken.
struct TracePlace {
  std::optional<std::uint64_t> event;  ///< Index in the list of events, from 0; empty for what concerns the file as a whole.
  std::string name;                    ///< Of the event, as the file has it: any text.
  std::optional<std::int64_t> time_ns;
  std::string detail;  ///< What is wrong with it, with names and numbers from the file.
};

struct TraceFinding {
  const TraceRule* rule;  ///< Of `trace_rules`, not null.
  std::uint64_t count = 0;
  std::vector<TracePlace> places;  ///< The first ones in the file.
};

/// What a trace holds and what is wrong with it: plain data.
struct TraceCheck {
  std::string path;
  std::uint64_t events = 0;
  std::uint64_t slices = 0;   ///< Events with a duration, pairs of begin and end included.
  std::uint64_t kernels = 0;  ///< Of `slices`.
  std::uint64_t device_slices = 0, device_slices_with_correlation = 0, device_slices_with_call = 0;
  std::uint64_t calls = 0, calls_with_correlation = 0, calls_with_device_slice = 0;  ///< Of the runtime or driver API.
  std::uint64_t flows = 0;                                                           ///< Different ids.
  std::vector<TraceFinding> findings;  ///< Rules that are broken, in the order of `trace_rules`.

  /// Findings, not places, of that severity.
  std::uint64_t findings_of(Severity severity) const noexcept {
    std::uint64_t count = 0;
    for (const TraceFinding& finding : findings) count += finding.rule->severity == severity ? 1 : 0;
    return count;
  }
  bool ok() const noexcept { return findings_of(Severity::error) == 0; }
};

/// Examines Chrome trace JSON as Kineto, PyTorch and libxpu write it: an object with "traceEvents", or the list of events alone.
///
/// The text is read once and never held as a whole; kept are about 50 bytes per slice, end of an arrow and correlation, and each different
/// name once. Times are compared in whole nanoseconds, as they are written. A checker holds its options only: threads may share one.
class XPU_EXPORT TraceChecker {
 public:
  struct Options {
    std::size_t places = 3;         ///< Most places to keep of each finding.
    std::uint64_t now_unix_ns = 0;  ///< What clocks are compared with; 0 = the time of the call.
  };
  explicit TraceChecker(Options options);
  TraceChecker() : TraceChecker(Options{}) {}

  /// Whether the file begins as such a trace does, compressed or not. Its name does not matter. False also when it cannot be read.
  static bool looks_like_trace(const std::string& path);

  /// A plain or gzip file. Errors: unavailable (cannot be read, or not whole as gzip), invalid_argument (it is no trace at all). A trace
  /// that breaks off is no error but a finding.
  Result<TraceCheck> check_file(const std::string& path) const;

  /// The same for plain text, from where `input` stands to its end. `path` of the result is empty.
  Result<TraceCheck> check(std::istream& input) const;

 private:
  Options options_;
};

}  // namespace xpu::profiler
