#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Memory layout of a live recording's segment files (docs/formats.md section 2). Shared between the program that records, the recorder
/// process and the reader; all integers little-endian, native alignment.
///
/// Who writes what. The recorder creates and grows a segment (really allocated, never sparse) and recycles its chunks. The program
/// claims a spare segment by renaming it, takes ready chunks, writes records into them, and hands them over as full. Nobody ever
/// waits for the other: no ready chunk means that the newest record is dropped and counted.
namespace xpu::trace {

inline constexpr std::uint64_t kSegmentMagic = 0x3130474553555058;  // "XPUSEG01"
inline constexpr std::uint32_t kSegmentFormat = 1;
inline constexpr std::uint32_t kChunkMagic = 0x4b4e4843;  // "CHNK"
inline constexpr std::size_t kSegmentHeaderBytes = 4096;
inline constexpr std::size_t kChunkBytes = 262'144;
inline constexpr std::size_t kChunkHeaderBytes = 64;
inline constexpr std::size_t kLossAreaBytes = 1024;
/// Records of a chunk lie in [kChunkHeaderBytes, kChunkRecordsEnd).
inline constexpr std::size_t kChunkRecordsEnd = kChunkBytes - kLossAreaBytes;
inline constexpr std::uint32_t kFirstChunks = 64;

enum class SegmentState : std::uint32_t { spare = 0, attached = 1, off = 2, closed = 3 };
enum class OffReason : std::uint32_t { none = 0, recording_finished = 1, internal_error = 2, abi_mismatch = 3 };

struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t chunk_bytes;
  std::uint64_t pid;
  std::uint64_t start_ns;
  std::uint32_t domain;                    ///< xpu::ClockDomain of all host times.
  std::atomic<std::uint32_t> chunk_count;  ///< Chunks that exist; grown by the recorder, never shrunk.
  std::atomic<std::uint32_t> state;        ///< SegmentState. `closed`: the process detached in good order.
  std::atomic<std::uint32_t> off_reason;
  std::atomic<std::uint64_t> lost_before_any_chunk;  ///< Records dropped by threads that never had a chunk.
  std::atomic<std::uint64_t> recorder_alive_ns;      ///< Monotonic; stands still when the recorder is dead.
  std::atomic<std::uint32_t> paused;                 ///< Set by the recorder: begin() refuses operations and counts them as filtered.
  std::atomic<std::uint32_t> writer_count;           ///< Writers that ever existed in this process.
  std::atomic<std::uint64_t> filtered;               ///< Operations that were filtered by threads which had no chunk yet.
  std::atomic<std::uint64_t> chunks_taken;           ///< Chunks ever taken by writers: with time, the rate.
  std::atomic<std::uint32_t> epoch;                  ///< Raised when somebody begins to read who knows nothing of what was written before.
};
static_assert(sizeof(SegmentHeader) <= 256);

enum class ChunkState : std::uint32_t { free = 0, open = 1, full = 2, drained = 3 };

struct ChunkHeader {
  std::uint32_t magic;
  std::atomic<std::uint32_t>
      state;  ///< ChunkState. free -> open by compare-exchange (writer), full by the writer, free again by the recorder.
  std::uint32_t writer;
  std::uint32_t sequence;                ///< Per writer from 0: (pid, start, writer, sequence) names a chunk's contents for ever.
  std::atomic<std::uint64_t> committed;  ///< Bytes of whole records after the header; stored with release after each record.
  std::uint64_t first_ns;
  std::atomic<std::uint32_t> loss_count;  ///< Loss slots in use, each a LossRecord, in the loss area at the chunk's end, updated in place.
  std::uint32_t reserved;
  std::atomic<std::uint64_t> filtered;  ///< Operations that this writer did not want while it had this chunk.
  std::uint64_t reserved2[2];
};
static_assert(sizeof(ChunkHeader) == kChunkHeaderBytes);
inline constexpr std::size_t kMaxLossSlots = kLossAreaBytes / 56;

inline constexpr std::size_t segment_bytes(std::uint32_t chunks) { return kSegmentHeaderBytes + std::size_t{chunks} * kChunkBytes; }
inline constexpr std::size_t chunk_offset(std::uint32_t chunk) { return kSegmentHeaderBytes + std::size_t{chunk} * kChunkBytes; }

/// What to record.
enum class RecordMode : std::uint32_t { standard = 0, device_only = 1, api = 2 };

inline constexpr std::uint64_t kOptionsMagic = 0x31305354504f5058;  // "XPOPTS01"
/// The file `options` of a live folder: a fixed block, so that no parser runs in the program.
struct OptionsBlock {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t mode;  ///< RecordMode.
  std::uint64_t max_live_bytes;
  std::uint32_t reserved;
  std::uint32_t start_paused;
  std::uint64_t recorder_pid;
  char kernels[1024];  ///< POSIX extended regular expression, zero-terminated; empty = all.
};
static_assert(sizeof(OptionsBlock) == 1064);

}  // namespace xpu::trace
