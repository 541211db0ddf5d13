#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::profiler {

class Session;

/// What a JSON timeline calls things: some readers look for the names of CUDA's calls.
enum class Compatibility : std::uint8_t {
  none,
  /// For HTA (HolisticTraceAnalysis), whose launch statistics, queue lengths and critical paths know a launch by CUDA's name: a call that
  /// submits a kernel, a copy or a fill is a cudaLaunchKernel, cudaMemcpyAsync or cudaMemsetAsync, with its own name as the argument "api",
  /// and calls have the category cuda_runtime. Commands have the arguments of Kineto's plugin for XPUs beside ours, in numbers: appended
  /// and submitted with their distance to the start, sycl queue, kernel_id, l0 call, and "memory opration id" as it is spelled there.
  hta,
};

struct ExportOptions {
  /// Compressed when it ends in ".gz" (gzip, level 1). Replaced when it exists: who must not overwrite asks first. "proto://..." is no file
  /// but for whoever registered the scheme (`outputs.hpp`), whichever function exports.
  std::string path;
  bool device_only = false;                           ///< Only what ran on devices: no calls, no flows.
  Compatibility compatibility = Compatibility::none;  ///< Of `export_chrome`.
  /// Keys and texts of the trace's head, of a JSON timeline; the keys are none of ours.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  /// Called now and then with the commands written so far and how many there are, from the calling thread.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = nullptr;
};

/// Of what went to a registered scheme: `path`, `kernels` and `untimed`; the rest is its owner's business and 0.
struct ExportSummary {
  std::string path;
  std::uint64_t bytes = 0;        ///< Of the file.
  std::uint64_t slices = 0;       ///< Everything with a duration, on host and device rows.
  std::uint64_t kernels = 0;      ///< Of `slices`.
  std::uint64_t flows = 0;        ///< Arrows from a call to its command, and from an operation to its backward ones.
  std::uint64_t overlapping = 0;  ///< Slices on rows of their own because they overlap another one of their queue.
  std::uint64_t untimed = 0;      ///< Commands without times: they have a call but no slice on a device.
};

/// Writes the recording as Kineto-shaped Chrome trace JSON: `path`.tmp first, renamed at the end; on an error neither is left behind.
/// Errors: unavailable (cannot create, disk full: the sentence names the file and the reason), invalid_argument for a scheme that nobody
/// registered, what its owner's factory and sink return, and what reading gives.
XPU_EXPORT Result<ExportSummary> export_chrome(const trace::Recording& recording, const ExportOptions& options);

/// Of what a session collected; its other sinks see nothing of it. As often as wanted. Errors: also those of `Session::run`.
XPU_EXPORT Result<ExportSummary> export_chrome(Session& session, const ExportOptions& options);

/// The same as a trace in Perfetto's own format, a quarter as large, with times to the nanosecond.
XPU_EXPORT Result<ExportSummary> export_perfetto(const trace::Recording& recording, const ExportOptions& options);
XPU_EXPORT Result<ExportSummary> export_perfetto(Session& session, const ExportOptions& options);

/// Whether a file of this name is a trace in Perfetto's own format: one that ends in .pftrace or .pftrace.gz.
XPU_EXPORT bool is_perfetto_name(std::string_view path) noexcept;
/// `export_perfetto` or `export_chrome`, as the name of the file says.
XPU_EXPORT Result<ExportSummary> export_as_named(Session& session, const ExportOptions& options);

}  // namespace xpu::profiler
