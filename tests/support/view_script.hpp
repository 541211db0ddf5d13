#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/recording_builder.hpp"
#include "xpu/trace/view/next_record.hpp"
#include "xpu/trace/view/view_builder.hpp"

/// Wire records written by hand, and the views that come out.
namespace xpu::trace::view::test_support {

using xpu::test_support::make_record;

/// Wire records one after the other.
class WireScript {
 public:
  template <typename Record>
  WireScript& add(const Record& record) {
    append(std::as_bytes(std::span(&record, 1)));
    return *this;
  }
  WireScript& add_string(std::uint32_t id, std::string_view text, std::uint32_t flags = 0) {
    StringRecord record{};
    const std::size_t padded = (text.size() + 7) / 8 * 8;
    record.header = {static_cast<std::uint16_t>(RecordKind::string), static_cast<std::uint16_t>(sizeof record + padded), flags};
    record.id = id;
    record.bytes = static_cast<std::uint32_t>(text.size());
    add(record);
    append(std::as_bytes(std::span(text)));
    bytes_.resize(bytes_.size() + padded - text.size());
    return *this;
  }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  void append(std::span<const std::byte> more) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + more.size());
    if (!more.empty()) std::memcpy(bytes_.data() + before, more.data(), more.size());
  }
  std::vector<std::byte> bytes_;
};

// What the scripts below describe. Ticks of device 1 are nanoseconds; at tick 0 its host clock shows kHostAtTick0.
inline constexpr std::uint32_t kWriter = 1, kOtherWriter = 2, kOsThread = 1001, kOtherOsThread = 1002, kPid = 77;
inline constexpr std::uint32_t kDevice = 1, kPeer = 2, kContext = 1, kQueue = 11, kPeerQueue = 12, kKernel = 21, kGeometry = 31;
inline constexpr std::uint32_t kKernelName = 101, kLaunchApi = 102, kCopyApi = 103, kFinishApi = 104, kRuntimeApi = 105, kPattern = 106;
inline constexpr std::uint64_t kHostAtTick0 = 5'000'000'000;

inline DeviceRecord device_record(std::uint32_t device, std::uint32_t valid_bits = 64) {
  auto record = make_record<DeviceRecord>();
  record.device = device;
  std::memset(record.uuid, static_cast<int>(0xa0 + device), sizeof record.uuid);
  record.pci[0] = static_cast<std::uint8_t>(0x1a + device);
  record.pci[2] = 1;
  record.tick_numerator = record.tick_denominator = 1;
  record.valid_bits = valid_bits;
  record.native = 0xd0 + device;
  return record;
}

/// "At `ticks` the host's clock showed kHostAtTick0 + ticks", to 50 ns.
inline ClockReadingRecord clock_reading(std::uint32_t device, std::uint64_t ticks) {
  auto record = make_record<ClockReadingRecord>(1);
  record.host_before_ns = kHostAtTick0 + ticks - 50;
  record.host_after_ns = kHostAtTick0 + ticks + 50;
  record.device_ticks = ticks;
  record.device = device;
  record.domain = static_cast<std::uint32_t>(ClockDomain::monotonic);
  return record;
}

inline void add_names(WireScript& script) {
  script.add_string(kKernelName, "vector_add")
      .add_string(kLaunchApi, "clEnqueueNDRangeKernel")
      .add_string(kCopyApi, "clEnqueueCopyBuffer")
      .add_string(kFinishApi, "clFinish")
      .add_string(kRuntimeApi, "xpu::Stream::launch")
      .add_string(kPattern, "0123456789abcdef");
}

inline void add_objects(WireScript& script) {
  auto process = make_record<ThreadRecord>();
  for (const auto& [writer, os_thread] : {std::pair{kWriter, kOsThread}, std::pair{kOtherWriter, kOtherOsThread}}) {
    process.thread = writer;
    process.os_thread = os_thread;
    script.add(process);
  }
  ProcessRecord owner{};
  owner.header = {static_cast<std::uint16_t>(RecordKind::process), sizeof owner, 0};
  owner.pid = kPid;
  script.add(owner);
  for (const std::uint32_t device : {kDevice, kPeer}) script.add(device_record(device));
  ContextRecord context{};
  context.header = {static_cast<std::uint16_t>(RecordKind::context), sizeof context, 0};
  context.context = kContext;
  context.native = 0xc1;
  script.add(context);
  for (const auto& [queue, device] : {std::pair{kQueue, kDevice}, std::pair{kPeerQueue, kPeer}}) {
    auto record = xpu::test_support::queue_record(queue, 0, device);
    record.context = kContext;
    record.native = 0xe00 + queue;
    script.add(record);
  }
  auto kernel = make_record<KernelRecord>();
  kernel.what = kKernel;
  kernel.name = kKernelName;
  kernel.device = kDevice;
  script.add(kernel);
  auto geometry = make_record<GeometryRecord>();
  geometry.geometry = kGeometry;
  geometry.dimensions = 2;
  geometry.global[0] = 1024;
  geometry.global[1] = 8;
  geometry.local[0] = 64;
  geometry.local[1] = 2;
  script.add(geometry);
}

inline void add_readings(WireScript& script) {
  for (const std::uint32_t device : {kDevice, kPeer}) {
    script.add(clock_reading(device, 0)).add(clock_reading(device, 100'000'000));
  }
}

/// All of the above.
inline WireScript described() {
  WireScript script;
  add_names(script);
  add_objects(script);
  add_readings(script);
  return script;
}

/// A submission 700 ns before tick `start`.
inline OperationSubmittedRecord submitted(std::uint64_t operation, std::uint32_t command, std::uint64_t start = 10'000) {
  auto record = make_record<OperationSubmittedRecord>(command << kCommandShift);
  record.operation = operation;
  record.enter_ns = kHostAtTick0 + start - 700;
  record.exit_ns = record.enter_ns + 200;
  record.queue = kQueue;
  record.queue_sequence = 1;
  record.what = command <= 3 ? kKernel : 0;
  record.geometry = command <= 3 ? kGeometry : 0;
  record.thread = operation_writer(operation);
  record.api = command <= 3 ? kLaunchApi : kCopyApi;
  return record;
}

/// Queued 300 and submitted 100 ticks before `start`, and 2,000 long.
inline OperationCompletedRecord completed(std::uint64_t operation, std::uint64_t start = 10'000) {
  auto record = make_record<OperationCompletedRecord>();
  record.operation = operation;
  record.queued = start - 300;
  record.submit = start - 100;
  record.start = start;
  record.end = start + 2'000;
  record.queue = kQueue;
  return record;
}

inline CopyDetailRecord copy_detail(std::uint64_t operation, std::uint8_t source_type, std::uint8_t destination_type) {
  auto record = make_record<CopyDetailRecord>();
  record.operation = operation;
  record.bytes = 4'096;
  record.source = 0x1000;
  record.destination = 0x2000;
  record.source_type = source_type;
  record.destination_type = destination_type;
  return record;
}

inline ExternalCorrelationRecord external(std::uint64_t operation, ExternalKind kind, std::uint64_t id) {
  auto record = make_record<ExternalCorrelationRecord>();
  record.operation = operation;
  record.external_id = id;
  record.family = static_cast<std::uint32_t>(kind);
  record.thread = kWriter;
  return record;
}

inline SynchronizationRecord wait_record(std::uint32_t type) {
  auto wait = make_record<SynchronizationRecord>();
  wait.enter_ns = 1'000;
  wait.exit_ns = 4'000;
  wait.handle = 0xabc;
  wait.type = type;
  wait.api = kFinishApi;
  wait.context = kContext;
  wait.queue = kQueue;
  wait.result = -36;
  wait.wait_count = 3;
  wait.thread = kWriter;
  return wait;
}

inline Selection selection_of(std::initializer_list<ViewKind> kinds) {
  Selection selection;
  for (const ViewKind kind : kinds) {
    if (selection.enable(kind) != ResultCode::success) std::abort();
  }
  return selection;
}
inline Selection everything() {
  return selection_of({ViewKind::kernel, ViewKind::driver_api, ViewKind::overhead, ViewKind::runtime_api, ViewKind::external_correlation,
                       ViewKind::memory_copy, ViewKind::memory_fill, ViewKind::peer_copy, ViewKind::synchronization});
}

/// Collects views into one buffer, as a subscriber has it.
class Views {
 public:
  ViewBuilder::Sink sink() {
    return [this](std::uint32_t writer, std::span<const std::byte> record) {
      writers_.push_back(writer);
      buffer_.insert(buffer_.end(), record.begin(), record.end());
    };
  }
  /// By `next_record`; aborts where the buffer is not made of records.
  std::vector<const ViewHeader*> all() const {
    std::vector<const ViewHeader*> records;
    const ViewHeader* record = nullptr;
    ResultCode code = ResultCode::success;
    while ((code = next_record(buffer_.data(), buffer_.size(), &record)) == ResultCode::success) records.push_back(record);
    if (code != ResultCode::end_of_buffer) std::abort();
    return records;
  }
  std::vector<ViewKind> kinds() const {
    std::vector<ViewKind> kinds;
    for (const ViewHeader* record : all()) kinds.push_back(record->kind);
    return kinds;
  }
  /// The `index`-th record, which must be of this type.
  template <typename View>
  const View& at(std::size_t index) const {
    const std::vector<const ViewHeader*> records = all();
    if (index >= records.size() || view_bytes(records[index]->kind) != sizeof(View)) std::abort();
    return *reinterpret_cast<const View*>(records[index]);
  }
  const std::vector<std::uint32_t>& writers() const noexcept { return writers_; }
  std::size_t count() const noexcept { return writers_.size(); }

 private:
  std::vector<std::byte> buffer_;
  std::vector<std::uint32_t> writers_;
};

/// A builder for one script from beginning to end.
struct Built {
  explicit Built(const WireScript& script, Selection selection = everything(), ViewBuilderOptions options = {})
      : builder((options.selection = selection, options), views.sink()) {
    builder.add(script.bytes());
    builder.deliver();
  }
  Built(const Built&) = delete;
  Views views;
  ViewBuilder builder;
};

}  // namespace xpu::trace::view::test_support
