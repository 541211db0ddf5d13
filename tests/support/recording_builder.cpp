#include "tests/support/recording_builder.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "trace/recording/manifest.hpp"

namespace xpu::test_support {
namespace {

using trace::ChunkHeader;
using trace::ChunkState;
using trace::RecordHeader;
using trace::SegmentHeader;

constexpr std::size_t kRoom = trace::kChunkRecordsEnd - trace::kChunkHeaderBytes;

template <typename Record>
std::vector<std::byte> with_tail(Record record, trace::RecordKind kind, std::uint32_t flags, std::span<const std::byte> tail) {
  std::vector<std::byte> bytes(sizeof(Record) + (tail.size() + 7) / 8 * 8);
  record.header = {static_cast<std::uint16_t>(kind), static_cast<std::uint16_t>(bytes.size()), flags};
  std::memcpy(bytes.data(), &record, sizeof(Record));
  std::copy(tail.begin(), tail.end(), bytes.begin() + sizeof(Record));
  return bytes;
}

// Not insert: without optimisation that goes byte by byte.
void append(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  if (more.empty()) return;
  const std::size_t before = bytes.size();
  bytes.resize(before + more.size());
  std::memcpy(bytes.data() + before, more.data(), more.size());
}

std::span<const std::byte> bytes_of(const RecordHeader& header) { return {reinterpret_cast<const std::byte*>(&header), header.size}; }

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "test support: {}\n", what);
  std::abort();
}

}  // namespace

trace::OperationSubmittedRecord submission(std::uint64_t operation, std::uint32_t queue, std::uint32_t sequence, std::uint64_t enter_ns) {
  auto record = make_record<trace::OperationSubmittedRecord>(1u << trace::kCommandShift);
  record.operation = operation;
  record.enter_ns = enter_ns;
  record.exit_ns = enter_ns + 200;
  record.queue = queue;
  record.queue_sequence = sequence;
  record.thread = trace::operation_writer(operation);
  return record;
}

trace::OperationCompletedRecord completion(std::uint64_t operation, std::uint32_t queue, std::uint64_t start, std::uint64_t end) {
  auto record = make_record<trace::OperationCompletedRecord>();
  record.operation = operation;
  record.queued = record.submit = record.start = start;
  record.end = end;
  record.queue = queue;
  return record;
}

trace::QueueRecord queue_record(std::uint32_t queue, std::uint32_t published_before, std::uint32_t device) {
  auto record = make_record<trace::QueueRecord>();
  record.queue = queue;
  record.device = device;
  record.published_before = published_before;
  return record;
}

trace::LossRecord loss(std::uint32_t queue, std::uint32_t cause, std::uint64_t count, std::uint32_t flags, std::uint32_t last_sequence) {
  auto record = make_record<trace::LossRecord>(flags);
  record.queue = queue;
  record.cause = cause;
  record.count = count;
  record.last_sequence = last_sequence;
  return record;
}

RecordingBuilder::RecordingBuilder() {
  manifest.program = "program";
  manifest.argv = {"program", "argument"};
  manifest.host = "host";
  manifest.start_monotonic_ns = 1'000;
  manifest.start_raw_ns = 1'000;
  manifest.start_realtime_ns = 1'700'000'000'000'000'000;
  manifest.end.known = true;
  manifest.end.exit_code = 0;
}

std::size_t RecordingBuilder::add_process(const trace::ProcessInfo& info) {
  processes_.push_back({info, {}, {}, {}});
  return processes_.size() - 1;
}

RecordingBuilder::Chunk& RecordingBuilder::chunk_for(std::size_t process, std::uint32_t writer, std::size_t bytes) {
  Process& target = processes_[process];
  const auto present = target.present.find(writer);
  if (present != target.present.end() && target.chunks[present->second].records.size() + bytes <= kRoom)
    return target.chunks[present->second];
  if (present != target.present.end()) target.chunks[present->second].open = false;
  target.present[writer] = target.chunks.size();
  target.chunks.push_back({writer, target.next_sequence[writer]++, true, 0, {}, {}});
  return target.chunks.back();
}

void RecordingBuilder::next_chunk(std::size_t process, std::uint32_t writer) { chunk_for(process, writer, kRoom); }

void RecordingBuilder::add_bytes(std::size_t process, std::uint32_t writer, std::span<const std::byte> record) {
  Chunk& chunk = chunk_for(process, writer, record.size());
  append(chunk.records, record);
}

void RecordingBuilder::add_string(std::size_t process, std::uint32_t writer, std::uint32_t id, std::string_view text, std::uint32_t flags) {
  const trace::StringRecord record{{}, id, static_cast<std::uint32_t>(text.size())};
  add_bytes(process, writer, with_tail(record, trace::RecordKind::string, flags, std::as_bytes(std::span(text))));
}

void RecordingBuilder::add_process_record(std::size_t process, std::uint32_t writer, const trace::ProcessRecord& fields,
                                          std::string_view name) {
  trace::ProcessRecord record = fields;
  record.name_bytes = static_cast<std::uint32_t>(name.size());
  add_bytes(process, writer, with_tail(record, trace::RecordKind::process, 0, std::as_bytes(std::span(name))));
}

void RecordingBuilder::add_context(std::size_t process, std::uint32_t writer, std::uint32_t context,
                                   std::span<const std::uint32_t> devices) {
  const trace::ContextRecord record{{}, context, static_cast<std::uint32_t>(devices.size()), 0};
  add_bytes(process, writer, with_tail(record, trace::RecordKind::context, 0, std::as_bytes(devices)));
}

void RecordingBuilder::add_loss(std::size_t process, std::uint32_t writer, const trace::LossRecord& loss) {
  Chunk& chunk = chunk_for(process, writer, 0);
  if (chunk.losses.size() == trace::kMaxLossSlots) give_up("a chunk has no room for another loss record");
  chunk.losses.push_back(loss);
}

void RecordingBuilder::count_filtered(std::size_t process, std::uint32_t writer, std::uint64_t operations) {
  chunk_for(process, writer, 0).filtered += operations;
}

// As the recorder does it: per process and kind one block.
void RecordingBuilder::add_to_batch(trace::CompactBatch& batch, std::size_t chunks_per_process) const {
  trace::BlockEncoder encoder;
  for (const Process& process : processes_) {
    const auto index = static_cast<std::uint32_t>(batch.processes.size());
    trace::CompactProcess compact;
    compact.info = process.info;
    std::map<std::uint16_t, std::vector<std::byte>> by_kind;
    const auto sort_in = [&](std::span<const std::byte> records) {
      trace::for_each_record(records, [&](const RecordHeader& header) { append(by_kind[header.kind], bytes_of(header)); });
    };
    for (std::size_t chunk = 0; chunk < std::min(chunks_per_process, process.chunks.size()); ++chunk) {
      const Chunk& source = process.chunks[chunk];
      sort_in(source.records);
      sort_in(std::as_bytes(std::span(source.losses)));
      compact.chunks_filtered += source.filtered;
      batch.chunks.push_back({index, source.writer, source.sequence});
    }
    batch.processes.push_back(compact);
    for (const auto& entry : by_kind) {  // not a structured binding: a lambda cannot capture one
      // Blocks hold a bounded number of records.
      std::vector<std::byte> block;
      std::uint32_t count = 0;
      const auto flush = [&] {
        if (count != 0) batch.add(index, entry.first, block, encoder);
        block.clear();
        count = 0;
      };
      trace::for_each_record(entry.second, [&](const RecordHeader& header) {
        append(block, bytes_of(header));
        if (++count == trace::kMaxBlockRecords) flush();
      });
      flush();
    }
  }
}

Result<> RecordingBuilder::write_file(const std::string& path) const {
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return Error{ErrorCode::unavailable, "cannot make " + path};
  trace::CompactWriter writer;
  XPU_TRY(writer.start(fd));
  trace::CompactBatch batch;
  add_to_batch(batch, static_cast<std::size_t>(-1));
  if (!batch.empty()) XPU_TRY(writer.append(batch));
  return writer.finish(trace::manifest_to_json(manifest));
}

Result<> RecordingBuilder::write_folder(const std::string& path, std::size_t compacted) const {
  std::filesystem::create_directories(path);
  const std::string json = trace::manifest_to_json(manifest);
  write_bytes(path + "/" + trace::kManifestName, std::as_bytes(std::span(json)));
  for (std::size_t index = 0; index < processes_.size(); ++index)
    write_bytes(path + "/" + segment_name(index), segment_bytes(index, compacted));

  const int fd = ::open((path + "/" + trace::kCompactedName).c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return Error{ErrorCode::unavailable, "cannot make " + path + "/" + trace::kCompactedName};
  trace::CompactWriter writer;
  XPU_TRY(writer.start(fd));
  if (compacted == 0) return {};
  trace::CompactBatch batch;
  add_to_batch(batch, compacted);
  return writer.append(batch);
}

std::string RecordingBuilder::segment_name(std::size_t process) const {
  const trace::ProcessInfo& info = processes_[process].info;
  return fmt::format("{}-{}.seg", info.pid, info.start_ns);
}

std::vector<std::byte> RecordingBuilder::segment_bytes(std::size_t process, std::size_t compacted) const {
  const Process& source = processes_[process];
  const auto chunks = static_cast<std::uint32_t>(source.chunks.size() + 1);  // one is free, as there nearly always is
  std::vector<std::byte> bytes(trace::segment_bytes(chunks));

  SegmentHeader header{};
  header.magic = trace::kSegmentMagic;
  header.format = trace::kSegmentFormat;
  header.chunk_bytes = trace::kChunkBytes;
  header.pid = source.info.pid;
  header.start_ns = source.info.start_ns;
  header.domain = static_cast<std::uint32_t>(source.info.domain);
  header.chunk_count = chunks;
  header.state = static_cast<std::uint32_t>(source.info.state);
  header.lost_before_any_chunk = source.info.lost_before_any_chunk;
  header.writer_count = source.info.writer_count;
  header.filtered = source.info.filtered;
  std::memcpy(bytes.data(), static_cast<const void*>(&header), sizeof(header));

  for (std::uint32_t index = 0; index < chunks; ++index) {
    std::byte* place = bytes.data() + trace::chunk_offset(index);
    ChunkHeader chunk{};
    chunk.magic = trace::kChunkMagic;
    if (index < source.chunks.size()) {
      const Chunk& contents = source.chunks[index];
      chunk.state = static_cast<std::uint32_t>(index < compacted ? ChunkState::drained
                                               : contents.open   ? ChunkState::open
                                                                 : ChunkState::full);
      chunk.writer = contents.writer;
      chunk.sequence = contents.sequence;
      chunk.committed = contents.records.size();
      chunk.loss_count = static_cast<std::uint32_t>(contents.losses.size());
      chunk.filtered = contents.filtered;
      if (!contents.records.empty()) std::memcpy(place + trace::kChunkHeaderBytes, contents.records.data(), contents.records.size());
      if (!contents.losses.empty()) {
        std::memcpy(place + trace::kChunkRecordsEnd, contents.losses.data(), contents.losses.size() * sizeof(trace::LossRecord));
      }
    }
    std::memcpy(place, static_cast<const void*>(&chunk), sizeof(chunk));
  }
  return bytes;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "xpu-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) give_up("cannot make the folder " + pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) give_up("cannot write " + path);
}

std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) give_up("cannot read " + path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace xpu::test_support
