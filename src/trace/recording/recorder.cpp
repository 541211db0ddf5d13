#include "xpu/trace/recording/recorder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "trace/recording/compact_file.hpp"
#include "trace/recording/manifest.hpp"
#include "trace/recording/recorder_compactor.hpp"
#include "trace/recording/recorder_folder.hpp"
#include "trace/recording/recorder_options.hpp"
#include "trace/recording/recorder_process.hpp"
#include "trace/recording/recorder_segment.hpp"
#include "trace/recording/storage.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::trace {
namespace {

constexpr std::size_t kSpares = 2;
constexpr std::uint64_t kMillisecond = 1'000'000;
// A batch is written when this many chunks are full (1 MiB) or the first of them has waited this long.
constexpr std::size_t kBatchChunks = 4;
constexpr std::uint64_t kBatchAgeNs = 100 * kMillisecond;
// One round takes no more, so that it never lasts long: about 10 ms.
constexpr std::size_t kMaxBatchChunks = 16;
constexpr std::uint64_t kRateSampleNs = 5 * kMillisecond;
constexpr double kReadySeconds = 0.25;
constexpr std::uint64_t kStorageRetryNs = 250 * kMillisecond;
constexpr std::uint64_t kGrowthRetryNs = 1000 * kMillisecond;

// "<pid>-<start>.seg"
void parse_claimed_name(std::string_view name, std::uint64_t& pid, std::uint64_t& start_ns) noexcept {
  const char* const end = name.data() + name.size();
  const auto first = std::from_chars(name.data(), end, pid);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '-') std::from_chars(first.ptr + 1, end, start_ns);
}

// A process that claimed a segment.
struct Traced {
  Traced(RecorderSegment claimed, std::uint64_t claimant, std::uint64_t claimed_at_ns)
      : segment(std::move(claimed)), watch(claimant, claimed_at_ns), pid(claimant), start_ns(claimed_at_ns), sampled_at_ns(now_ns()) {}

  RecorderSegment segment;
  ProcessWatch watch;
  std::uint64_t pid, start_ns;

  std::uint64_t chunks_consumed = 0;
  std::uint64_t chunks_filtered = 0, unread_bytes = 0;  // sums over consumed chunks
  bool ended = false;
  bool settled = false;  // the last facts about it are in the file
  std::set<std::pair<std::uint32_t, std::uint32_t>>
      taken_alive;  // writer and sequence of open chunks that finish() took from a living process

  std::uint64_t sampled_at_ns, sampled_taken = 0;
  double fastest_per_second = 0;  // chunks
  std::uint64_t grow_again_at_ns = 0;

  // Chunks in the program's hands or waiting here.
  std::uint64_t outstanding() const noexcept {
    const std::uint64_t taken = segment.header().chunks_taken.load(std::memory_order_acquire);
    return taken > chunks_consumed ? taken - chunks_consumed : 0;
  }
  // A claim whose program died before it could say so: nothing was ever written.
  bool is_blank() const noexcept { return segment.state() == SegmentState::spare; }

  CompactProcess facts() const {
    const SegmentHeader& header = segment.header();
    CompactProcess process;
    process.info.pid = pid;
    process.info.start_ns = start_ns;
    process.info.domain =
        header.domain <= static_cast<std::uint32_t>(ClockDomain::device) ? static_cast<ClockDomain>(header.domain) : ClockDomain::unknown;
    process.info.state = segment.state();
    process.info.lost_before_any_chunk = header.lost_before_any_chunk.load(std::memory_order_relaxed);
    process.info.filtered = header.filtered.load(std::memory_order_relaxed);
    process.info.writer_count = header.writer_count.load(std::memory_order_relaxed);
    process.chunks_filtered = chunks_filtered;
    process.unread_bytes = unread_bytes;
    return process;
  }
};

// A chunk to compact.
struct Candidate {
  std::size_t traced = 0;
  std::uint32_t index = 0;
  std::uint32_t writer = 0, sequence = 0;
  auto key() const noexcept { return std::tuple(traced, writer, sequence); }
};

class LiveRecorder final : public Recorder {
 public:
  LiveRecorder(RecorderOptions options, LiveFolder folder)
      : options_(std::move(options)), folder_(std::move(folder)), paused_(options_.start_paused) {}

  Result<> start();
  const std::string& live_path() const noexcept override { return folder_.live_path(); }
  bool poll() override;
  void set_paused(bool paused) override;
  RecorderStatus status() const override;
  Result<std::string> finish(const ProgramEnd& end) override;
  /// Leaves nothing behind; for a start that failed.
  void abandon() noexcept { folder_.remove(); }

 private:
  std::uint64_t live_bytes() const noexcept;
  std::uint32_t most_chunks() const noexcept;
  void keep_alive(std::uint64_t now) noexcept;
  bool notice_claims();
  bool keep_spares(std::uint64_t now);
  bool drop_spare();
  bool notice_ends();
  bool grow(std::uint64_t now);
  bool grow(Traced& traced, std::uint64_t now);

  enum class Drain { full_chunks, everything };
  std::vector<Candidate> candidates(Drain drain);
  bool is_urgent(const std::vector<Candidate>& ready, std::uint64_t now);
  Result<> compact(const std::vector<Candidate>& ready, Drain drain);
  bool free_storage();
  bool note_storage(const Result<>& result, std::uint64_t now);
  void remove_settled();
  Result<> drain_everything();

  RecorderOptions options_;
  LiveFolder folder_;
  Manifest manifest_;
  CompactWriter writer_;
  ChunkCompactor compactor_;
  CompactBatch batch_;
  std::vector<RecorderSegment> spares_;
  std::vector<Traced> traced_;
  std::uint32_t next_spare_ = 0;
  bool paused_;
  bool table_written_ = false, finished_ = false;
  std::uint64_t spare_again_at_ns_ = 0, store_again_at_ns_ = 0;
  std::uint64_t waiting_since_ns_ = 0;  // the oldest full chunk; 0 = none
  RecorderStatus status_;
};

Result<> LiveRecorder::start() {
  manifest_ = describe_recording(options_);
  const std::string json = manifest_to_json(manifest_);
  XPU_TRY(replace_file_at(folder_.fd(), kManifestName, std::as_bytes(std::span(json))));

  const OptionsBlock block = options_block(options_);
  XPU_TRY(replace_file_at(folder_.fd(), kOptionsName, std::as_bytes(std::span(&block, 1))));

  // Under another name until its first bytes are right, so that a reader never meets half a header.
  const std::string unfinished = std::string(kCompactedName) + ".new";
  XPU_TRY_ASSIGN(UniqueFd file, create_file_at(folder_.fd(), unfinished));
  XPU_TRY(writer_.start(file.release()));
  if (::renameat(folder_.fd(), unfinished.c_str(), folder_.fd(), kCompactedName) != 0) return storage_error("make", kCompactedName, errno);

  while (spares_.size() < kSpares) {
    XPU_TRY_ASSIGN(RecorderSegment spare,
                   RecorderSegment::create_spare(folder_.fd(), next_spare_++, std::min(kFirstChunks, most_chunks()), paused_));
    spares_.push_back(std::move(spare));
  }
  keep_alive(now_ns());
  return {};
}

std::uint64_t LiveRecorder::live_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const RecorderSegment& spare : spares_) bytes += spare.bytes();
  for (const Traced& traced : traced_) bytes += traced.segment.bytes();
  return bytes;
}

// Of one segment.
std::uint32_t LiveRecorder::most_chunks() const noexcept {
  const std::uint64_t quarter = options_.max_live_bytes / 4 / kChunkBytes;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(quarter, RecorderSegment::kFewestChunks, std::uint64_t{1} << 20));
}

void LiveRecorder::keep_alive(std::uint64_t now) noexcept {
  for (const RecorderSegment& spare : spares_) spare.header().recorder_alive_ns.store(now, std::memory_order_relaxed);
  for (const Traced& traced : traced_) traced.segment.header().recorder_alive_ns.store(now, std::memory_order_relaxed);
}

bool LiveRecorder::notice_claims() {
  bool noticed = false;
  for (std::size_t index = 0; index < spares_.size();) {
    if (spares_[index].is_named(folder_.fd(), spares_[index].name())) {
      ++index;
      continue;
    }
    RecorderSegment segment = std::move(spares_[index]);
    spares_.erase(spares_.begin() + static_cast<std::ptrdiff_t>(index));
    noticed = true;
    std::string name = segment.find_name(folder_.fd());
    if (name.empty()) continue;  // somebody removed it
    std::uint64_t pid = 0, start_ns = 0;
    parse_claimed_name(name, pid, start_ns);
    segment.set_name(std::move(name));
    segment.header().paused.store(paused_ ? 1 : 0, std::memory_order_relaxed);
    traced_.emplace_back(std::move(segment), pid, start_ns);
    ++status_.processes_attached;
  }
  return noticed;
}

bool LiveRecorder::keep_spares(std::uint64_t now) {
  bool made = false;
  while (spares_.size() < kSpares && now >= spare_again_at_ns_ && !status_.storage_failed) {
    const std::uint64_t used = live_bytes();
    const std::uint64_t left = used < options_.max_live_bytes ? (options_.max_live_bytes - used) / kChunkBytes : 0;
    // A process always gets a segment, if a small one: without any it could not even count what it loses.
    const std::uint32_t chunks =
        std::max(RecorderSegment::kFewestChunks, static_cast<std::uint32_t>(std::min<std::uint64_t>({left, kFirstChunks, most_chunks()})));
    Result<RecorderSegment> spare = RecorderSegment::create_spare(folder_.fd(), next_spare_++, chunks, paused_);
    if (!spare) {
      spare_again_at_ns_ = now + kGrowthRetryNs;
      break;
    }
    spare->header().recorder_alive_ns.store(now, std::memory_order_relaxed);
    spares_.push_back(*std::move(spare));
    made = true;
  }
  return made;
}

// Gives a spare's storage back. False when there is none left, or a program has just taken it.
bool LiveRecorder::drop_spare() {
  if (spares_.empty() || ::unlinkat(folder_.fd(), spares_.back().name().c_str(), 0) != 0) return false;
  spares_.pop_back();
  return true;
}

bool LiveRecorder::notice_ends() {
  bool noticed = false;
  for (Traced& traced : traced_) {
    if (traced.ended || !traced.watch.has_ended()) continue;
    traced.ended = true;
    noticed = true;
  }
  return noticed;
}

bool LiveRecorder::grow(std::uint64_t now) {
  bool grown = false;
  for (Traced& traced : traced_) grown = (!traced.ended && grow(traced, now)) || grown;
  return grown;
}

bool LiveRecorder::grow(Traced& traced, std::uint64_t now) {
  const std::uint64_t taken = traced.segment.header().chunks_taken.load(std::memory_order_relaxed);
  if (now - traced.sampled_at_ns >= kRateSampleNs) {
    const double rate = static_cast<double>(taken - traced.sampled_taken) * 1e9 / static_cast<double>(now - traced.sampled_at_ns);
    traced.fastest_per_second = std::max(traced.fastest_per_second, rate);
    traced.sampled_at_ns = now;
    traced.sampled_taken = taken;
  }
  const std::uint32_t count = traced.segment.chunk_count();
  const std::uint64_t busy = std::min<std::uint64_t>(traced.outstanding(), count);
  const double wanted = std::min(std::ceil(traced.fastest_per_second * kReadySeconds), 1e6);
  // Never below the first supply: a segment that was made small while storage was short grows when there is room.
  const std::uint64_t ready =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(wanted), kFirstChunks - std::min<std::uint64_t>(busy, kFirstChunks));
  if (count - busy >= ready || now < traced.grow_again_at_ns) return false;

  const std::uint64_t used = live_bytes();
  const std::uint64_t left = used < options_.max_live_bytes ? (options_.max_live_bytes - used) / kChunkBytes : 0;
  const std::uint64_t own_left = most_chunks() > count ? most_chunks() - count : 0;
  const auto chunks = static_cast<std::uint32_t>(std::min({ready - (count - busy), left, own_left}));
  if (chunks == 0) return false;
  if (traced.segment.grow(chunks) == 0) traced.grow_again_at_ns = now + kGrowthRetryNs;
  return true;
}

std::vector<Candidate> LiveRecorder::candidates(Drain drain) {
  std::vector<Candidate> found;
  for (std::size_t index = 0; index < traced_.size(); ++index) {
    const Traced& traced = traced_[index];
    if (traced.settled) continue;
    const bool open_too = traced.ended || drain == Drain::everything;
    // Chunks lie 256 KiB apart, so looking at each costs a cache miss: stop after as many as are out. A program that was killed between
    // taking a chunk and counting it is looked through to the end.
    std::uint64_t out = open_too ? UINT64_MAX : traced.outstanding();
    for (std::uint32_t chunk = 0; chunk < traced.segment.chunk_count() && out != 0; ++chunk) {
      const ChunkHeader& header = traced.segment.chunk(chunk);
      const auto state = static_cast<ChunkState>(header.state.load(std::memory_order_acquire));
      if (state == ChunkState::free) continue;
      --out;
      if (state != ChunkState::full && !(open_too && state == ChunkState::open)) continue;
      if (traced.taken_alive.contains({header.writer, header.sequence})) continue;
      found.push_back({index, chunk, header.writer, header.sequence});
    }
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.key() < b.key(); });
  return found;
}

bool LiveRecorder::is_urgent(const std::vector<Candidate>& ready, std::uint64_t now) {
  if (std::any_of(traced_.begin(), traced_.end(), [](const Traced& traced) { return traced.ended; })) return true;
  if (ready.empty()) {
    waiting_since_ns_ = 0;
    return false;
  }
  if (waiting_since_ns_ == 0) waiting_since_ns_ = now;
  if (ready.size() >= kBatchChunks || now - waiting_since_ns_ >= kBatchAgeNs) return true;
  // In a small segment few chunks are many.
  return std::any_of(ready.begin(), ready.end(),
                     [&](const Candidate& chunk) { return traced_[chunk.traced].segment.chunk_count() <= 4 * ready.size(); });
}

// Puts chunks into the file as one batch, then gives them back. With processes that ended, and in finish() with all, what else is known
// about them.
Result<> LiveRecorder::compact(const std::vector<Candidate>& ready, Drain drain) {
  // Short of storage, small steps: each chunk that is done may give some back.
  const std::size_t most = status_.storage_failed ? 1 : kMaxBatchChunks;
  const std::span<const Candidate> chosen = std::span(ready).first(std::min(ready.size(), most));
  std::vector<std::vector<ChunkCompactor::Contents>> contents(traced_.size());
  std::vector<bool> has_more(traced_.size(), false);
  for (const Candidate& left_over : std::span(ready).subspan(chosen.size())) has_more[left_over.traced] = true;
  std::vector<std::size_t> last_facts;
  std::uint64_t operations = 0;
  batch_.clear();

  for (std::size_t index = 0, next = 0; index < traced_.size(); ++index) {
    Traced& traced = traced_[index];
    const auto process = static_cast<std::uint32_t>(batch_.processes.size());
    CompactProcess facts = traced.facts();
    for (; next < chosen.size() && chosen[next].traced == index; ++next) {
      const ChunkCompactor::Contents chunk = compactor_.take(traced.segment.chunk(chosen[next].index));
      facts.chunks_filtered += chunk.filtered;
      facts.unread_bytes += chunk.unread_bytes;
      operations += chunk.operations;
      batch_.chunks.push_back({process, chunk.writer, chunk.sequence});
      contents[index].push_back(chunk);
    }
    const bool over = traced.ended || drain == Drain::everything;
    const bool last = over && !traced.settled && !has_more[index] && !traced.is_blank();
    if (last) last_facts.push_back(index);
    if (contents[index].empty() && !last) continue;
    batch_.processes.push_back(facts);
    compactor_.encode(process, batch_);
  }

  if (!batch_.empty()) XPU_TRY(writer_.append(batch_));
  waiting_since_ns_ = 0;
  status_.operations += operations;
  status_.file_bytes = writer_.bytes();
  for (const Candidate& chunk : chosen) {
    Traced& traced = traced_[chunk.traced];
    ++traced.chunks_consumed;
    if (traced.ended || drain == Drain::everything) {
      // Nobody may write there again.
      if (!traced.ended) traced.taken_alive.emplace(chunk.writer, chunk.sequence);
      traced.segment.chunk(chunk.index).state.store(static_cast<std::uint32_t>(ChunkState::drained), std::memory_order_release);
    } else {
      traced.segment.recycle(chunk.index);
    }
  }
  for (std::size_t index = 0; index < traced_.size(); ++index) {
    for (const ChunkCompactor::Contents& chunk : contents[index]) {
      traced_[index].chunks_filtered += chunk.filtered;
      traced_[index].unread_bytes += chunk.unread_bytes;
    }
  }
  for (const std::size_t index : last_facts) traced_[index].settled = true;
  return {};
}

// Makes room on a full disk with what nobody needs any more. False when there was nothing.
bool LiveRecorder::free_storage() {
  bool freed = drop_spare();
  for (Traced& traced : traced_) freed = (traced.ended && traced.segment.release_storage()) || freed;
  return freed;
}

// True when it is worth trying again at once.
bool LiveRecorder::note_storage(const Result<>& result, std::uint64_t now) {
  status_.storage_failed = !result;
  status_.storage_error = result ? "" : result.error().message;
  if (result) return true;
  // Against a limit on the size of one file room does not help.
  const bool helped = result.error().native_code != EFBIG && free_storage();
  store_again_at_ns_ = helped ? now : now + kStorageRetryNs;
  spare_again_at_ns_ = now + kGrowthRetryNs;  // not at once from the room that was just made
  return helped;
}

// Segments of processes that ended, once all about them is in the file.
void LiveRecorder::remove_settled() {
  std::erase_if(traced_, [&](const Traced& traced) {
    if (!traced.ended || !(traced.settled || traced.is_blank())) return false;
    if (traced.segment.is_named(folder_.fd(), traced.segment.name())) ::unlinkat(folder_.fd(), traced.segment.name().c_str(), 0);
    return true;
  });
}

bool LiveRecorder::poll() {
  if (finished_) return false;
  const std::uint64_t now = now_ns();
  keep_alive(now);
  bool worked = notice_claims();
  worked = keep_spares(now) || worked;
  worked = notice_ends() || worked;
  worked = grow(now) || worked;
  if (now < store_again_at_ns_) return worked;

  const std::vector<Candidate> ready = candidates(Drain::full_chunks);
  if (!is_urgent(ready, now)) return worked || !ready.empty();
  note_storage(compact(ready, Drain::full_chunks), now);
  remove_settled();
  return true;
}

void LiveRecorder::set_paused(bool paused) {
  paused_ = paused;
  for (const RecorderSegment& spare : spares_) spare.header().paused.store(paused ? 1 : 0, std::memory_order_relaxed);
  for (const Traced& traced : traced_) traced.segment.header().paused.store(paused ? 1 : 0, std::memory_order_relaxed);
}

RecorderStatus LiveRecorder::status() const {
  RecorderStatus status = status_;
  for (const Traced& traced : traced_) {
    if (!traced.ended && traced.segment.state() == SegmentState::attached) ++status.processes_alive;
  }
  return status;
}

Result<> LiveRecorder::drain_everything() {
  // Spares that nobody took; one that was taken at this moment is a process like the others.
  while (drop_spare()) {
  }
  notice_claims();
  notice_ends();
  for (Traced& traced : traced_) {
    SegmentHeader& header = traced.segment.header();
    if (traced.ended || traced.segment.state() != SegmentState::attached) continue;
    header.off_reason.store(static_cast<std::uint32_t>(OffReason::recording_finished), std::memory_order_relaxed);
    header.paused.store(1, std::memory_order_relaxed);  // programs' hot path looks at this alone
    header.state.store(static_cast<std::uint32_t>(SegmentState::off), std::memory_order_release);
  }
  for (;;) {
    const std::vector<Candidate> ready = candidates(Drain::everything);
    const bool unsettled =
        std::any_of(traced_.begin(), traced_.end(), [](const Traced& traced) { return !traced.settled && !traced.is_blank(); });
    if (ready.empty() && !unsettled) return {};
    Result<> compacted = compact(ready, Drain::everything);
    if (!note_storage(compacted, now_ns())) return compacted;
  }
}

Result<std::string> LiveRecorder::finish(const ProgramEnd& end) {
  if (finished_) return folder_.path();
  // After the table nothing can be appended, and there is nothing left to append.
  Result<> drained = table_written_ ? Result<>() : drain_everything();
  manifest_.end = end;
  const std::string json = manifest_to_json(manifest_);
  if (drained && !table_written_) {
    do {
      drained = writer_.finish(json);
    } while (!drained && note_storage(drained, now_ns()));
    table_written_ = drained.has_value();
  }
  if (drained) drained = folder_.publish(options_.overwrite);
  if (!drained) {
    // The folder stays. It learns how the program ended, if there is room for that.
    static_cast<void>(replace_file_at(folder_.fd(), kManifestName, std::as_bytes(std::span(json))));
    return std::move(drained).error();
  }
  status_.file_bytes = writer_.bytes();
  finished_ = true;
  folder_.remove();
  return folder_.path();
}

}  // namespace

Recorder::~Recorder() = default;

Result<std::unique_ptr<Recorder>> Recorder::create(RecorderOptions options) {
  XPU_TRY(check_kernel_expression(options.kernels));
  XPU_TRY_ASSIGN(LiveFolder folder, LiveFolder::create(options.path, options.overwrite));
  auto recorder = std::make_unique<LiveRecorder>(std::move(options), std::move(folder));
  if (Result<> started = recorder->start(); !started) {
    recorder->abandon();
    return std::move(started).error();
  }
  return std::unique_ptr<Recorder>(std::move(recorder));
}

}  // namespace xpu::trace
