#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/layout.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {

struct RecorderOptions {
  std::string path;  ///< NAME.xpu, absolute; the live folder is NAME.xpu.live beside it.
  bool overwrite = false;
  std::vector<std::string> argv;  ///< Of the program, for the manifest.
  RecordMode mode = RecordMode::standard;
  std::string kernels;  ///< POSIX extended regular expression; empty = all. Checked here.
  bool start_paused = false;
  std::uint64_t max_live_bytes = std::uint64_t{1} << 30;
};

/// What has been seen so far.
struct RecorderStatus {
  std::uint32_t processes_attached = 0;  ///< That ever claimed a segment.
  std::uint32_t processes_alive = 0;     ///< Attached and not closed and running.
  std::uint64_t operations = 0;          ///< operation_submitted records compacted so far.
  std::uint64_t file_bytes = 0;
  bool storage_failed =
      false;  ///< The disk is full or the file-size limit was reached: recording goes on in memory until the chunks are full.
  std::string storage_error;  ///< One sentence, when `storage_failed`.
};

/// The recorder's side of a recording: makes the live folder, keeps spare segments and ready chunks, compacts full chunks, and finally
/// writes NAME.xpu. The only one who grows files. One owner at a time. SIGXFSZ must be ignored or blocked while it works.
class XPU_EXPORT Recorder {
 public:
  /// Makes the folder (mode 0700, files 0600, never through a link), manifest, options and two spare segments. Errors: failed_precondition
  /// when the recording exists and `overwrite` is false; invalid_argument (bad expression, bad path); unavailable (no space, no permission:
  /// says which).
  static Result<std::unique_ptr<Recorder>> create(RecorderOptions options);
  virtual ~Recorder();

  /// Absolute; the value of XPU_RECORD for the program.
  virtual const std::string& live_path() const noexcept = 0;

  /// One round of work; never blocks for long. Returns true when there was something to do (call again soon: 1 to 2 ms; else up to 20 ms).
  virtual bool poll() = 0;
  virtual void set_paused(bool paused) = 0;
  virtual RecorderStatus status() const = 0;

  /// Drains everything, switches processes that still live off, writes NAME.xpu by rename and removes the folder. On an error (disk full)
  /// the folder stays and is readable. Returns the path of the finished file.
  virtual Result<std::string> finish(const ProgramEnd& end) = 0;
};

}  // namespace xpu::trace
