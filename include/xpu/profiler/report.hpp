#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/sink.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::profiler {

class Session;

struct ReportOptions {
  /// What a row of the kernel table stands for: a kernel on a device (`none`), a kernel on any device (`kernel`), or a kernel together with
  /// the process, queue or submitting thread that ran it.
  enum class By : std::uint8_t { none, process, queue, kernel, thread };

  int top = 20;                ///< Rows of each table in the text; 0 = all. JSON and CSV always hold all of them.
  std::string sort = "total";  ///< total, calls, avg, min, median, p99, max or name; of kernels, and of ranges where they have it.
  std::string kernels_regex =
      {};  ///< POSIX extended, searched in the name and in the raw name; only matching kernels are listed. Empty = all.
  std::string ranges_regex = {};  ///< The same for the names of annotated ranges.
  By by = By::none;
  bool wide = false;  ///< Names are never shortened and `width` does not bind.
  bool color = false;
  int width = 0;  ///< Columns of the terminal; 0 = 100.
};

/// A recording in figures: plain data, the contents of `xpu report --json` (docs/formats.md section 4). Everything unknown is empty, never
/// 0. All times are nanoseconds. Percentiles are nearest-rank over all timed calls, exact; averages are rounded to the nearest nanosecond.
struct Report {
  struct Program {
    std::string path;  ///< Of the recording.
    std::vector<std::string> argv;
    std::optional<int> exit_code, signal;
    std::optional<std::uint64_t> wall_ns;
    bool finished = true;  ///< False: read from the folder of a recording that was not finished.
    std::string damage;    ///< One sentence about what could not be read, or empty.
  };
  struct Process {
    std::uint64_t pid = 0;
    std::string name;
    std::optional<int> rank;
    std::string command;  ///< The command line, of the program itself only; else the name.
    bool closed = true;   ///< It detached in good order.
  };
  /// One device, whichever and however many processes used it.
  struct Device {
    std::uint32_t id = 0;  ///< Index in `devices`, what kernels refer to.
    std::string name, driver;
    /// Union over all queues of the time in which some command ran (markers and barriers are no work).
    std::optional<std::uint64_t> busy_ns;
    std::optional<std::uint64_t> idle_ns;  ///< span - busy.
    std::optional<std::uint64_t> span_ns;  ///< First start to last end; empty when nothing was timed.
    std::uint64_t commands = 0;
  };
  struct Delay {
    std::int64_t median = 0, p99 = 0;  ///< Start on the device - exit of the call: negative when it started before the call returned.
  };
  struct Geometry {
    std::uint32_t dimensions = 0;
    std::uint64_t offset[3] = {0, 0, 0}, global[3] = {1, 1, 1};
    std::uint64_t local[3] = {0, 0, 0};  ///< All 0: the driver's choice.
    std::uint64_t calls = 0;
  };
  struct Kernel {
    std::string name, raw_name;
    std::optional<std::uint32_t> device;   ///< Empty when several (`By::kernel`).
    std::optional<std::uint64_t> process;  ///< pid, for `By::process`, `queue` and `thread`.
    std::optional<std::uint32_t> queue;    ///< For `By::queue`.
    std::optional<std::uint32_t> thread;   ///< Of the operating system, for `By::thread`.
    std::uint64_t calls = 0;               ///< Accepted by the driver: completed, pending and untimed ones.
    std::uint64_t failed = 0;              ///< Refused calls and commands that ended in an error.
    std::uint64_t timed = 0;               ///< Of `calls`, those that the times below are made of.
    std::optional<std::uint64_t> total_ns, avg_ns, min_ns, median_ns, p99_ns, max_ns;
    std::optional<double> share;  ///< Of all kernel time on the device.
    std::optional<Delay> launch_delay_ns;
    std::vector<Geometry> geometries;  ///< The most frequent first.
  };
  /// Copies of one route, or fills of one device.
  struct Transfer {
    std::string route;  ///< "host_to_device", "pinned_to_host", "map", … ; for fills "device" or "host".
    std::uint64_t calls = 0, failed = 0;
    std::optional<std::uint64_t> bytes;
    std::optional<std::uint64_t> total_ns;
    std::optional<std::uint64_t> bytes_per_s;  ///< Over timed copies of known size; none for maps, which may only hand out an address.
  };
  struct Api {
    std::string name;
    std::uint64_t calls = 0, failed = 0;
    std::optional<std::uint64_t> total_ns, max_ns;
    bool waits = false;  ///< It waits for the device.
  };
  struct Call {
    std::string name;
    std::uint64_t pid = 0;
    std::uint32_t thread = 0;
    std::int64_t start_ns = 0;  ///< After the start of the program.
    std::optional<std::uint64_t> duration_ns;
    std::int32_t result = 0;
    std::uint64_t calls = 1;  ///< For failed calls: how many returned the same code.
  };
  /// The ranges of one name that the program annotated, or "(no range)" for commands that were submitted in none.
  struct Range {
    std::string name;
    std::uint64_t calls = 0;               ///< Of these ranges.
    std::optional<std::uint64_t> host_ns;  ///< From begin to end, of those whose end is known; inside of one of the same name only once.
    std::optional<std::uint64_t> host_self_ns;  ///< Without the ranges inside of them.
    std::uint64_t commands = 0;                 ///< That their threads submitted meanwhile; markers and barriers are no work.
    /// Of these commands. They may run later, and beside each other, so that this can be more than `host_ns`.
    std::optional<std::uint64_t> device_ns;
    std::optional<std::uint64_t> device_self_ns;  ///< Of those that were submitted in no range inside. Of all rows: all device time.
  };
  struct MemoryOwner {
    /// Of the range; "(no range)"; or "(before the recording)" for what is only known to have been alive.
    std::string name;
    std::uint64_t bytes = 0, blocks = 0;  ///< No number of blocks is known from before the recording.
  };
  /// One context of a process.
  struct Memory {
    std::uint64_t pid = 0;
    std::uint32_t context = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t alive_bytes = 0;  ///< After the last event.
    std::uint64_t allocations = 0, releases = 0;
    std::int64_t peak_ns = 0;  ///< When the peak was first reached, after the start of the program.
    /// What the peak is made of, the largest first: blocks by the innermost range of annotations in which their thread had allocated them.
    std::vector<MemoryOwner> owners;
    /// The most that was alive in each of at most 64 equal steps from `timeline_start_ns` on: the first event is in the first step, the
    /// last event in the last.
    std::vector<std::uint64_t> timeline_bytes;
    std::int64_t timeline_start_ns = 0;
    std::uint64_t timeline_step_ns = 0;
  };
  struct Books {
    std::uint64_t pid = 0;
    std::uint32_t queue = 0;
    std::uint64_t submitted = 0, recorded = 0, lost = 0, pending = 0, untimed = 0, failed = 0;
    std::int64_t unexplained = 0;
  };
  struct Pending {
    std::string name;  ///< Kernel or command.
    std::uint64_t pid = 0;
    std::uint32_t queue = 0;
    std::int64_t enter_ns = 0;  ///< Host time of the submitting call after the start of the program.
  };
  struct Conservation {
    std::uint64_t submitted = 0, recorded = 0, lost = 0, pending = 0, filtered = 0, untimed = 0, failed = 0, refused = 0;
    std::int64_t unexplained = 0;
    std::vector<Books> queues;
    std::vector<Pending> pending_commands;  ///< At most 1,000, the oldest first.
    std::uint64_t left_out = 0;             ///< Recorded, and in no table, because of the session's filter; `filtered` was not recorded.
    std::uint64_t other_records_lost = 0;   ///< Of waits, calls, memory, …: in no other figure.
    /// What a framework transferred to the session at a wrong time or of a wrong kind, and ends of arrows between its operations that are
    /// not shown: in no other figure.
    std::uint64_t cpu_traces_discarded = 0, cpu_operations_discarded = 0, dangling_flow_ends = 0;
  };
  struct Loss {
    std::string cause;
    std::uint64_t pid = 0;
    std::uint32_t queue = 0;
    std::uint64_t count = 0;
  };
  struct Clock {
    std::uint32_t device = 0;
    std::uint64_t pid = 0;
    ClockDomain domain = ClockDomain::unknown;
    std::optional<double> tick_ns;
    /// Half-width of the interval that holds the true time, over all commands.
    std::optional<std::uint64_t> error_median_ns, error_max_ns;
    std::uint64_t readings = 0;
  };
  struct Overhead {
    std::optional<std::uint64_t> program_ns;   ///< Spent in the program by recording, estimated from samples.
    std::optional<std::uint64_t> recorder_ns;  ///< CPU time of the recorder.
  };

  Program program;
  std::vector<Process> processes;
  std::vector<Device> devices;
  std::vector<Kernel> kernels;  ///< In the order of `ReportOptions::sort`.
  std::vector<Transfer> copies, fills;
  std::vector<Api> api;             ///< The longest total first.
  std::vector<Call> slowest_calls;  ///< At most 10.
  std::vector<Call> failed_calls;   ///< One per name and code.
  std::vector<Range> ranges;        ///< In the order of `ReportOptions::sort`: total (of the device), calls or name.
  std::vector<Memory> memory;
  Conservation conservation;
  ErrorStatistics errors;
  std::uint64_t duplicates = 0, orphans = 0;  ///< As in `LinkSummary`.
  std::vector<Loss> losses;
  std::vector<Clock> clocks;
  Overhead overhead;
  /// What went wrong with child profilers and the client of the session, with their names, in sentences.
  std::vector<std::string> participant_errors;
};

/// Reads the recording three times (twice to link, once to balance the books). Errors: invalid_argument (an unknown `sort`, a bad
/// expression: the sentence names it), and what reading gives.
XPU_EXPORT Result<Report> make_report(const trace::Recording& recording, const ReportOptions& options);
/// Of what a session collected; its sinks see nothing of it. Errors: also those of `Session::run`.
XPU_EXPORT Result<Report> make_report(Session& session, const ReportOptions& options);

/// Tables for a person, UTF-8, ending in a newline. Escape sequences only when `color` is set.
XPU_EXPORT std::string report_text(const Report& report, const ReportOptions& options);
/// One JSON document, schema "xpu.report/1".
XPU_EXPORT std::string report_json(const Report& report);
enum class ReportTable : std::uint8_t { kernels, ranges, calls };
/// One table, a line for each row after a line of names, quoted as in RFC 4180; unknown is an empty field.
XPU_EXPORT std::string report_csv(const Report& report, ReportTable table = ReportTable::kernels);

}  // namespace xpu::profiler
