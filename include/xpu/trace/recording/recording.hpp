#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/layout.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace {

/// How the recorded program ended, as far as it is known.
struct ProgramEnd {
  bool known = false;  ///< False in a recording whose recorder was killed.
  int exit_code = -1;  ///< -1 when a signal ended it.
  int signal = 0;      ///< 0 when it exited.
  std::uint64_t wall_ns = 0;
  std::uint64_t recorder_cpu_ns = 0;
};

/// What the recorder knew when it started and ended; the file manifest.json of a live folder and a section of a finished file.
struct Manifest {
  std::string program;  ///< argv[0] as given.
  std::vector<std::string> argv;
  std::string working_directory, host, boot_id, xpu_version;
  std::string system;  ///< The machine's: "Linux 6.1.0 x86_64"; empty in recordings of a version that did not note it.
  std::vector<std::pair<std::string, std::string>> environment;  ///< XPU_*, OPENCL_*, OCL_ICD_*, ONEAPI_*, POCL_* of the program.
  RecordMode mode = RecordMode::standard;
  std::string kernels;  ///< The --kernels expression, empty = all.
  std::uint64_t start_monotonic_ns = 0, start_raw_ns = 0, start_realtime_ns = 0;
  ProgramEnd end;
};

/// One traced process of a recording.
struct ProcessInfo {
  std::uint64_t pid = 0;
  std::uint64_t start_ns = 0;
  ClockDomain domain = ClockDomain::monotonic;
  SegmentState state = SegmentState::attached;  ///< `closed`: it detached in good order.
  std::uint64_t lost_before_any_chunk = 0;
  std::uint64_t filtered = 0;      ///< Operations that were not wanted (paused, --kernels, --duration).
  std::uint32_t writer_count = 0;  ///< Threads that wrote.
};

/// A finished recording (`NAME.xpu`) or one that is still running or was never finished (`NAME.xpu.live/`), opened for reading.
/// Survives any bytes: what is intact is delivered, the rest is described in `damage()`. One owner at a time; several may read one file.
class XPU_EXPORT Recording {
 public:
  /// `path`: a file, a live folder, or either name without its suffix. Errors: not_found (no such recording, with the names that were
  /// tried), invalid_argument (not a recording at all).
  static Result<Recording> open(const std::string& path);
  ~Recording();
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;

  const std::string& path() const noexcept;
  const Manifest& manifest() const noexcept;
  /// False when read from a live folder: the recording was not finished (yet).
  bool finished() const noexcept;
  /// One sentence about what could not be read, empty when everything was.
  const std::string& damage() const noexcept;
  const std::vector<ProcessInfo>& processes() const noexcept;
  std::uint64_t file_bytes() const noexcept;

  /// Hands every record over, in batches of whole records one after the other (8-byte aligned, each `header.size` bytes long, never shorter
  /// than this library's structure of its kind). `process` is an index into `processes()`. Order: within one batch of one kind that of
  /// writing; across batches none is promised, so link by ids. May be called any number of times. Memory: one batch (at most some MiB) at a
  /// time.
  using Visitor = std::function<void(std::size_t process, std::span<const std::byte> records)>;
  Result<> for_each_batch(const Visitor& visit) const;
  /// Only batches that may hold one of these kinds (others may come along where the file is not compacted).
  Result<> for_each_batch(std::span<const RecordKind> kinds, const Visitor& visit) const;

 private:
  struct Impl;
  explicit Recording(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Calls `visit(const RecordHeader&)` for each record of a batch; the caller casts by kind. Stops at the first record that does not fit.
template <typename Visit>
void for_each_record(std::span<const std::byte> records, Visit&& visit) {
  while (records.size() >= sizeof(RecordHeader)) {
    const auto* header = reinterpret_cast<const RecordHeader*>(records.data());
    if (header->size < sizeof(RecordHeader) || header->size > records.size()) return;
    visit(*header);
    records = records.subspan(header->size);
  }
}

/// The newest recording (file or live folder) in a folder, by the start in its manifest. not_found when there is none.
XPU_EXPORT Result<std::string> newest_recording(const std::string& folder);

}  // namespace xpu::trace
