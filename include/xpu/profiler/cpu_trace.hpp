#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "xpu/profiler/activity_kind.hpp"
#include "xpu/profiler/external_id.hpp"

/// What a framework recorded of itself on the host, for `Session::transfer_cpu_trace`: plain data.
namespace xpu::profiler {

/// What an argument may be: no text is ever taken for JSON.
using CpuArgumentValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<std::int64_t>,
                                      std::vector<std::string>, std::vector<std::vector<std::int64_t>>>;

/// A fact about an operation, under the key by which readers look for it: "Input Dims", "Sequence number", "Python id", ...
struct CpuArgument {
  std::string key;
  CpuArgumentValue value;
};

/// Why an arrow leads from one operation to another.
enum class CpuFlowKind : std::uint8_t {
  forward_backward = 1,  ///< From an operation to the one that computes its gradient: "fwdbwd" in traces.
};

/// One end of an arrow: a number has one start, and ends after it.
struct CpuFlow {
  std::uint64_t id = 0;
  CpuFlowKind kind = CpuFlowKind::forward_backward;
  bool is_start = false;
};

/// Something that the framework did, on a thread. Those of a thread lie in each other or beside each other.
struct CpuOperation {
  std::string name;
  /// `cpu_op`, `user_annotation`, `cpu_instant_event` or `python_function`.
  ActivityKind kind = ActivityKind::cpu_op;
  std::int64_t start_ns = 0;                   ///< Of the clock `Session::clock_domain`.
  std::optional<std::int64_t> end_ns = {};     ///< Nothing, or a time before `start_ns`: it had not ended. Of an instant: nothing.
  std::uint32_t thread = 0;                    ///< Its number in the operating system.
  std::optional<ExternalId> external_id = {};  ///< What was pushed for it: finds the work that it submitted.
  std::optional<CpuFlow> flow = {};
  std::vector<CpuArgument> arguments = {};  ///< Written in this order.
};

/// How a thread is to be called where the program itself did not name it.
struct CpuThread {
  std::uint32_t thread = 0;
  std::string name;
};

struct CpuTrace {
  std::vector<CpuOperation> operations;  ///< In any order.
  std::vector<CpuThread> threads = {};
  /// Empty: on the rows of the program's threads. Else on rows of a group of this name, whose threads are numbers that mean nothing outside
  /// of it; no work is linked to what is on them.
  std::string rows = {};
};

/// What became of the traces that were transferred to a session.
struct CpuTraceCounts {
  std::uint64_t traces = 0, operations = 0;  ///< That were accepted.
  std::uint64_t discarded_traces = 0;        ///< That came too early, or too late.
  std::uint64_t discarded_operations = 0;    ///< Of them, and of a kind that no operation on the host has.
};

}  // namespace xpu::profiler
