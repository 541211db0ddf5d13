#pragma once

#include <cstdint>
#include <string>

#include "base/probe.hpp"
#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/layout.hpp"

namespace xpu::trace {

class Segment;

/// Where and what this process records.
struct Attachment {
  std::string live_path;  ///< The live folder, absolute.
  RecordMode mode = RecordMode::standard;
  std::string kernels;  ///< POSIX extended regular expression; empty = all.
  std::uint64_t max_live_bytes = std::uint64_t{1} << 30;
  /// Called once, before the process's first record, when no launcher provides the folder; it must exist when this returns. May be null.
  Result<> (*start_recorder)(const Attachment&) = nullptr;
  /// How long the first record waits for a spare segment.
  unsigned claim_wait_ms = 200;
};

/// What is asked of publishers in a mode: a mask of probe::Wanted.
std::uint32_t wanted_by(RecordMode mode) noexcept;

/// Makes the trace the probe's one subscriber. Nothing is opened before the first record. failed_precondition when there is a subscriber
/// already, invalid_argument for a bad expression. Not while another thread attaches or detaches.
Result<> attach(const Attachment& attachment);

/// Marks the process's segment as closed in good order, after the last publisher has drained. Recording goes on: what static destructors
/// still publish is kept as long as chunks last. Nothing to do when there never was a record.
void close_segment() noexcept;

/// `close_segment`, and then nobody listens any more; the next `attach` begins a new segment. No other thread may be publishing.
void detach() noexcept;

/// The segment that threads write into while a capture is under way: that of the recording to which the process is attached, or one in its
/// own memory, made at the first call and kept for ever. Errors: failed_precondition when a recording was switched off; unavailable and
/// out_of_host_memory.
Result<Segment*> segment_for_captures();
/// failed_precondition when somebody else listens.
Result<> can_capture();
/// What the recording to which this process is attached wants: a mask of probe::Wanted. 0 when it is attached to none.
std::uint32_t wanted_by_recording() noexcept;
/// Makes the trace the probe's subscriber, if it is not, and brings `definitions()` up to date: everything that lives is published again,
/// and goes nowhere else. `wanted`: a mask of probe::Wanted. failed_precondition when somebody else listens. One thread at a time.
Result<> listen_for_captures(std::uint32_t wanted) noexcept;
/// Nobody listens any more, where there is no recording. Publishers that are under way finish what they write. One thread at a time.
void stop_listening() noexcept;

/// Nothing more is recorded in this process, which the segment says with the reason.
void switch_off(OffReason reason) noexcept;

}  // namespace xpu::trace
