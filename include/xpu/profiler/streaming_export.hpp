#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/config.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/profiler/sink.hpp"
#include "xpu/trace/conservation.hpp"

namespace xpu::profiler {

struct StreamingOptions {
  /// As for `export_as_named`. `progress` is told of the commands written so far, from the thread that writes.
  ExportOptions output;
  /// Between two rounds. One comes earlier when a quarter of the session's memory for records is full.
  std::chrono::milliseconds interval{1'000};
  /// At least so many bytes a file, of which the next begins with a round: trace.0.json, trace.1.json, … for the path trace.json, each a
  /// whole trace with its own figures, on the same time axis, with the same rows. A range stands in the file in which it ends. 0 = one
  /// file.
  std::uint64_t split_bytes = 0;
  bool has_thread = true;  ///< Without it nothing is written but by `advance` and `finish`: the program says when.
};

/// What a trace that was written while the program went on is in the end.
struct StreamedTrace {
  ExportSummary trace;             ///< Of all files together; the path is the first one's.
  std::vector<std::string> files;  ///< More than one where the trace was split.
  LinkSummary links;
  trace::Conservation books;  ///< submitted = recorded + lost + pending; `unexplained` must be 0.
  StreamCounts memory;
};

/// Writes the trace of this process while it goes on: memory holds the records of one interval, the operations that are not over, and what
/// describes things, however long it takes. What comes out is what a `Session` over the same time would have written at its end.
///
/// The file is PATH.tmp until `finish`. After each round everything so far is in it, so that a crash costs one interval; what is left then,
/// after an error or when this object ends without `finish`, is a part: see docs/profiler.md for how to read it.
///
/// `toggle` is for any thread, also without waiting for a round; `advance` and `counts` are for any thread and wait for the round that is
/// under way; the rest has one owner. In a forked child it does nothing, and errors say so.
class XPU_EXPORT StreamingExport {
 public:
  /// Collecting from here on. Errors: invalid_argument (an interval below 1 ms), unavailable (the file; no thread), those of
  /// `Session::start`.
  static Result<std::unique_ptr<StreamingExport>> start(Config config, const StreamingOptions& options);
  ~StreamingExport();
  StreamingExport(const StreamingExport&) = delete;
  StreamingExport& operator=(const StreamingExport&) = delete;

  /// As `Session::toggle`.
  void toggle(bool collect) noexcept;
  /// A round, now. Errors end the stream, and nobody listens any more: the file's (disk full, …). From then on the same error.
  Result<> advance();
  /// Stops, waits for what is not over as `Session::collect` does, writes the rest and gives the file its name. Errors: that of the round
  /// that failed; failed_precondition when it has ended.
  Result<StreamedTrace> finish(std::chrono::milliseconds patience = Session::kDefaultPatience);
  /// Nothing is kept, neither file nor part.
  void cancel();
  StreamCounts counts() const;

 private:
  struct Impl;
  explicit StreamingExport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::profiler
