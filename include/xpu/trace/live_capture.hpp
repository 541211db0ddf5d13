#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {

/// What a capture wants to be told beside the operations themselves; less of it makes a launch cheaper.
///
/// `kernels` and `queues` are about the operations themselves. What no capture wants is not recorded, and counted
/// (`ProcessInfo::filtered`). What another one wants may come along: whoever reads leaves it out.
struct CaptureOptions {
  bool host_exit_times = true;  ///< When submitting calls returned.
  bool all_ticks = true;        ///< When the driver took an operation and when the device got it, beside its start and end.
  bool waits = true;
  bool calls = false;  ///< Every other call of a device API.
  bool memory = true;
  bool annotations = true;
  /// Memory that records may take until they are taken; what comes then is dropped and counted. At least 1 MiB.
  std::uint64_t max_bytes = std::uint64_t{128} << 20;
  std::string kernels = {};                ///< POSIX extended, searched in the names that drivers give kernels; empty: all.
  std::vector<std::uint32_t> queues = {};  ///< Ids of those whose commands are wanted; empty: all.
};

/// Whole records, one after the other, of one thread in the order of writing; 8-byte aligned. Keeps their memory for as long as a copy of
/// it lives, and so the records that come from being written there.
class XPU_EXPORT RecordBuffer {
 public:
  RecordBuffer(std::span<const std::byte> records, std::shared_ptr<const void> owner) : records_(records), owner_(std::move(owner)) {}
  /// Of bytes of its own.
  explicit RecordBuffer(std::vector<std::byte> records);
  std::span<const std::byte> records() const noexcept { return records_; }

 private:
  std::span<const std::byte> records_;
  std::shared_ptr<const void> owner_;
};

/// What happens in this process, as records in memory, from the moment at which it begins. Several may be under way at a time, each sees
/// everything. While none is, publishers find a null pointer and nothing is paid.
///
/// Beside a recording (`xpu record`) a capture sees what is recorded: what it wants in addition is recorded, too, and what the recording
/// filters or pauses is in neither. The thread that fills a chunk then copies it.
///
/// Thread-safe: publishers never wait for a capture, whatever is done with it. In a forked child nothing more comes.
class XPU_EXPORT LiveCapture {
 public:
  /// Errors: invalid_argument (too little memory, `kernels` is no expression); failed_precondition when somebody else listens, or a
  /// recording was switched off; unavailable (no address space); out_of_host_memory.
  static Result<std::unique_ptr<LiveCapture>> begin(const CaptureOptions& options = {});
  /// As `finish`, if nobody did. Buffers that were taken stay.
  ~LiveCapture();
  LiveCapture(const LiveCapture&) = delete;
  LiveCapture& operator=(const LiveCapture&) = delete;

  /// Whether what begins now is of interest. What began while it was is seen to its end in any case. Neither waits for anything.
  void pause() noexcept;
  void resume() noexcept;
  /// What it wants to be told from now on. The memory that records may take stays as it was.
  void change(const CaptureOptions& options) noexcept;
  /// Living objects are described in what is taken next, with how far queues have counted by now: for whoever begins to count here.
  void describe_again() noexcept;
  /// Nothing more is recorded for it. What was recorded can still be taken. Once it returned, and no other capture is under way, nobody
  /// listens.
  void finish() noexcept;

  /// What was recorded since the last call, the living objects first of all at the first one. Calls no driver: `harvest` does.
  std::vector<RecordBuffer> take();
  /// Makes publishers tell of everything that has ended by now, without a wait for what has not.
  static void harvest() noexcept;

  /// The process itself and every text that records refer to, whenever it was first used: behind the last `take`.
  RecordBuffer texts() const;
  /// Counts in it are complete after `finish`.
  ProcessInfo process() const;
  /// This process and machine, when the capture began.
  const Manifest& manifest() const noexcept;
  /// Records that were handed to this capture and wait to be taken, in bytes.
  std::uint64_t waiting_bytes() const noexcept;

  struct Impl;

 private:
  explicit LiveCapture(std::unique_ptr<Impl> impl);
  bool is_of_this_process() const noexcept;
  bool is_finished() const noexcept;
  Result<> hand_over_objects(std::uint32_t wanted) noexcept;
  bool leave() noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Why `LiveCapture::begin` would refuse now, in the sentence of its error, as far as that is known before; else empty. Any thread.
XPU_EXPORT std::string why_no_capture();

}  // namespace xpu::trace
