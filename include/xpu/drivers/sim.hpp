#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"

namespace xpu::hal {
class Device;
class Driver;
}  // namespace xpu::hal

/// The driver `sim`: devices on a virtual clock, whose every time is programmed and therefore known.
///
/// **Time.** All devices of one driver share one virtual time, which begins at 0 and stands still while the host
/// does nothing with them. A call that submits takes `submit` of it. The operation then starts at the latest of: the end of the one before
/// it on its queue, the end of the call + `launch`, the events that its queue waits for; and ends `duration` (+ bytes / rate) later. An
/// event lies at the later of the end of what is in front of it on its queue and the end of the recording call. Waiting moves the time on
/// to what is waited for; a query that says "not yet" moves it on to the next end of any operation, so a loop of queries comes to an end
/// after as many of them as there are operations; reading a clock does not move it. With the defaults and an idle queue, in microseconds:
///
///     record a      0   to  0.5    a lies at 0.5
///     launch        0.5 to  2.5    starts at 5.5 (launch), ends at 15.5
///     record b      2.5 to  3      b lies at 15.5: b - a = submit + launch + duration = 15
///     record c      3   to  3.5    c lies at 15.5
///     launch        3.5 to  5.5    starts at 15.5 (the queue is busy), ends at 25.5
///     record d      5.5 to  6      d lies at 25.5: d - c = duration = 10
///
/// **Effects.** Kernels, copies, fills and host functions really run, one after the other in the order of their ends, on the thread that
/// moves the time past their end; until then memory does not show them. So an operation of one queue must not wait for one of another, and
/// a kernel or host function must not wait for the device: that is refused with `unavailable`.
///
/// **Host times** of clock readings are virtual too: `Program::origin_ns` + the virtual time, and not what the host's clock shows then.
namespace xpu::drivers::sim {

/// Virtual time and durations: exact, and the literals of <chrono> convert to it (`using namespace std::chrono_literals; 10us`).
using Time = std::chrono::duration<std::int64_t, std::pico>;
/// The longest time that a program may name. A driver's virtual time ends after about 100 days: then it stands still.
inline constexpr Time kMaxTime = std::chrono::hours(24);

/// What a queue executes; `event` stands for records and waits, which take the host's time only.
enum class OperationKind : std::uint8_t { kernel, copy, fill, host_function, event };
/// "kernel", "copy", "fill", "host_function", "event".
XPU_EXPORT const char* to_string(OperationKind kind) noexcept;

/// How long operations take. Rules are applied in order: each sets what it names, for the operations that it matches. Before the first one:
/// kernel submit=2us launch=3us duration=10us; copy and fill submit=2us launch=3us duration=1us rate=10GB/s;
/// host_function submit=1us launch=1us duration=1us; event submit=500ns.
struct TimingRule {
  OperationKind operation = OperationKind::kernel;
  std::string kernel_pattern = "*";                 ///< '*' any text, '?' any character. Only of kernels.
  std::optional<Time> submit{};                     ///< Of the host, by the call that submits.
  std::optional<Time> launch{};                     ///< From the end of that call to the earliest start. Not of events.
  std::optional<Time> duration{};                   ///< From start to end, without what the rate adds. Not of events.
  std::optional<std::uint64_t> bytes_per_second{};  ///< Of copies and fills; 0 = unlimited.

  bool operator==(const TimingRule&) const = default;
};

enum class FaultKind : std::uint8_t {
  record_lost,       ///< The completion is never delivered.
  record_late,       ///< It is delivered by the first synchronisation that begins after the operation ended.
  record_duplicate,  ///< It is delivered twice.
  record_negative,   ///< Its end lies before its start.
  record_untimed,    ///< It has no times.
  operation_fails,   ///< The operation has no effect and an asynchronous error of code `internal`.
  device_lost,       ///< The device is lost at the end of the operation, for good.
  out_of_memory,     ///< An allocation or mapping of device or shared memory is refused. Counts those and no operations.
  queue_refused,     ///< A queue is not created (`unavailable`). Counts queues and no operations.
};
/// "record_lost", ...
XPU_EXPORT const char* to_string(FaultKind kind) noexcept;

/// What goes wrong, and when. Each rule counts by itself what it matches, over all devices of the driver, in the order of submission.
struct FaultRule {
  FaultKind fault = FaultKind::record_lost;
  std::optional<OperationKind> operation{};  ///< Nothing: every operation. Not `event`.
  std::string kernel_pattern = "*";          ///< With OperationKind::kernel.
  std::uint64_t nth = 0;                     ///< Only the one with this number, from 1; 0 = see `every`.
  std::uint64_t every = 1;                   ///< Each one whose number it divides; not looked at where nth is not 0.

  bool operator==(const FaultRule&) const = default;
};

/// The device's clock jumps (forwards, or backwards when negative) by `jump` at the virtual time `at`.
struct ClockStep {
  Time at{0}, jump{0};
  bool operator==(const ClockStep&) const = default;
};

/// A device's clock. At the virtual time t it shows start_ticks + t (1 + drift) / tick, rounded down, + the jumps until then, each rounded
/// towards zero; modulo 2^valid_bits.
struct Clock {
  std::uint32_t tick_numerator = 1, tick_denominator = 1;  ///< Nanoseconds per tick = numerator / denominator.
  std::uint32_t valid_bits = 64;                           ///< 8 to 64.
  std::uint64_t start_ticks = 0;
  std::int64_t drift_ppb = 0;                   ///< Parts per billion by which it is faster than its nominal tick; at most 10 % either way.
  Time bracket = std::chrono::microseconds(1);  ///< Of a reading: the two host times lie half of it before and behind it.
  std::vector<ClockStep> steps{};

  bool operator==(const Clock&) const = default;
};

/// What the devices of one driver do.
struct Program {
  std::uint32_t device_count = 1;                       ///< 1 to 64.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  ///< Of each device.
  std::optional<std::uint64_t> origin_ns{};  ///< Host time at the virtual time 0; nothing: CLOCK_MONOTONIC when the first device is opened.
  std::vector<Clock> clocks = std::vector<Clock>(1);  ///< Of device 0, 1, ...; the last one serves those that follow too.
  std::vector<TimingRule> timings{};
  std::vector<FaultRule> faults{};

  bool operator==(const Program&) const = default;
};

/// Reads a program from text, whose lines src/drivers/sim/PROGRAM.md describes. `file` is for messages: "sim.txt:3: ...".
XPU_EXPORT Result<Program> parse_program(std::string_view text, std::string_view file);
/// The text of a program that `check_program` accepts: `parse_program` makes the same program of it.
XPU_EXPORT std::string to_text(const Program& program);
/// The first thing in it that is not allowed.
XPU_EXPORT Result<> check_program(const Program& program);

/// A driver with this program; `name()` is "sim". What is wrong with the program is the error of its `enumerate`.
XPU_EXPORT std::unique_ptr<hal::Driver> create_programmed_driver(const Program& program);
/// The program of each driver that the process creates from now on because `XPU_DRIVER` names it; nothing: that of the file
/// `XPU_SIM_PROGRAM`, or the default where there is no such variable. Thread-safe.
XPU_EXPORT void set_program(const std::optional<Program>& program);

/// The virtual time of the device's driver. These three: thread-safe; invalid_argument when the device is none of sim.
XPU_EXPORT Result<Time> virtual_time(const hal::Device& device);
/// Lets virtual time pass, and what ends in it take effect.
XPU_EXPORT Result<> advance_time(hal::Device& device, Time time);
/// How often the device's driver moved the time or completed an operation so far: does not depend on durations.
XPU_EXPORT Result<std::uint64_t> steps(const hal::Device& device);

}  // namespace xpu::drivers::sim
