#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/recording/compact_file.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"
#include "xpu/trace/records.hpp"

/// Recordings made from a list of records, by the structures and functions that the program and the recorder use: for tests of whatever
/// reads them.
namespace xpu::test_support {

template <typename Record>
struct KindOf;
#define XPU_KIND_OF(record, kind)                                       \
  template <>                                                           \
  struct KindOf<trace::record> {                                        \
    static constexpr trace::RecordKind value = trace::RecordKind::kind; \
  }
XPU_KIND_OF(ThreadRecord, thread);
XPU_KIND_OF(DeviceRecord, device);
XPU_KIND_OF(QueueRecord, queue);
XPU_KIND_OF(ModuleRecord, module);
XPU_KIND_OF(KernelRecord, kernel);
XPU_KIND_OF(GeometryRecord, geometry);
XPU_KIND_OF(FactRecord, fact);
XPU_KIND_OF(ObjectEndRecord, object_end);
XPU_KIND_OF(OperationSubmittedRecord, operation_submitted);
XPU_KIND_OF(OperationCompletedRecord, operation_completed);
XPU_KIND_OF(CopyDetailRecord, copy_detail);
XPU_KIND_OF(RectangleRecord, rectangle);
XPU_KIND_OF(CallBeginRecord, call_begin);
XPU_KIND_OF(ApiCallRecord, api_call);
XPU_KIND_OF(SynchronizationRecord, synchronization);
XPU_KIND_OF(MemoryRecord, memory);
XPU_KIND_OF(ExternalCorrelationRecord, external_correlation);
XPU_KIND_OF(AnnotationRecord, annotation);
XPU_KIND_OF(ClockReadingRecord, clock_reading);
XPU_KIND_OF(LossRecord, loss);
XPU_KIND_OF(OverheadRecord, overhead);
XPU_KIND_OF(CommunicationRecord, communication);
XPU_KIND_OF(GraphNodeRecord, graph_node);
XPU_KIND_OF(SessionRecord, session);
#undef XPU_KIND_OF

/// A record of this kind with the right header and zeros behind it.
template <typename Record>
Record make_record(std::uint32_t flags = 0) {
  Record record{};
  record.header = {static_cast<std::uint16_t>(KindOf<Record>::value), sizeof(Record), flags};
  return record;
}

/// The two records of a command, filled in as a plain launch has them.
trace::OperationSubmittedRecord submission(std::uint64_t operation, std::uint32_t queue, std::uint32_t sequence,
                                           std::uint64_t enter_ns = 0);
trace::OperationCompletedRecord completion(std::uint64_t operation, std::uint32_t queue, std::uint64_t start = 0, std::uint64_t end = 0);
trace::QueueRecord queue_record(std::uint32_t queue, std::uint32_t published_before = 0, std::uint32_t device = 1);
trace::LossRecord loss(std::uint32_t queue, std::uint32_t cause, std::uint64_t count, std::uint32_t flags = 0,
                       std::uint32_t last_sequence = 0);

/// A recording in the making. Records of one writer keep their order.
class RecordingBuilder {
 public:
  RecordingBuilder();

  trace::Manifest manifest;

  /// Returns the process's index, which is also its index in the recording. `filtered` is the segment header's figure.
  std::size_t add_process(const trace::ProcessInfo& info);
  trace::ProcessInfo& process(std::size_t index) { return processes_[index].info; }

  template <typename Record>
  void add(std::size_t process, std::uint32_t writer, const Record& record) {
    add_bytes(process, writer, std::as_bytes(std::span(&record, 1)));
  }
  void add_string(std::size_t process, std::uint32_t writer, std::uint32_t id, std::string_view text, std::uint32_t flags = 0);
  void add_process_record(std::size_t process, std::uint32_t writer, const trace::ProcessRecord& fields, std::string_view name);
  void add_context(std::size_t process, std::uint32_t writer, std::uint32_t context, std::span<const std::uint32_t> devices);
  /// One record, any bytes.
  void add_bytes(std::size_t process, std::uint32_t writer, std::span<const std::byte> record);
  /// Into the loss area of the writer's present chunk, where a thread without a free chunk counts.
  void add_loss(std::size_t process, std::uint32_t writer, const trace::LossRecord& loss);
  void count_filtered(std::size_t process, std::uint32_t writer, std::uint64_t operations);
  /// The writer's next record goes into a new chunk.
  void next_chunk(std::size_t process, std::uint32_t writer);

  /// Writes NAME.xpu.
  Result<> write_file(const std::string& path) const;
  /// Makes the folder NAME.xpu.live, with each process's first `compacted` chunks in compacted.part; they stay in the segments as well,
  /// drained, as they do until the recorder recycles them.
  Result<> write_folder(const std::string& path, std::size_t compacted = 0) const;

  /// What `write_folder` writes as a process's segment, and as the manifest.
  std::vector<std::byte> segment_bytes(std::size_t process, std::size_t compacted = 0) const;
  std::string segment_name(std::size_t process) const;

 private:
  struct Chunk {
    std::uint32_t writer = 0, sequence = 0;
    bool open = true;
    std::uint64_t filtered = 0;
    std::vector<std::byte> records;
    std::vector<trace::LossRecord> losses;
  };
  struct Process {
    trace::ProcessInfo info;
    std::vector<Chunk> chunks;
    std::map<std::uint32_t, std::size_t> present;          // writer -> index in chunks
    std::map<std::uint32_t, std::uint32_t> next_sequence;  // of its chunks
  };

  Chunk& chunk_for(std::size_t process, std::uint32_t writer, std::size_t bytes);
  void add_to_batch(trace::CompactBatch& batch, std::size_t chunks_per_process) const;

  std::vector<Process> processes_;
};

/// A folder of its own under the system's temporary one, removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

/// Makes a file with these bytes; for tests, so a failure ends the program.
void write_bytes(const std::string& path, std::span<const std::byte> bytes);
std::vector<std::byte> read_bytes(const std::string& path);

}  // namespace xpu::test_support
