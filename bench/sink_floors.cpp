#include "sink_floors.hpp"

#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

namespace xpu::bench {
namespace {

using namespace profiler;

/// A buffer that is written without looking, as long as `begin_step` is called often enough.
class FloorBuffer {
 public:
  // Not char, which may be an alias of anything: the compiler would not keep the members in registers.
  using Byte = char8_t;

  explicit FloorBuffer(FloorWrite write) : write_(std::move(write)), buffer_(kCapacity), at_(buffer_.data()) {}

  void begin_step() {
    if (at_ - buffer_.data() > kFull) flush();
  }
  void flush() {
    write_({reinterpret_cast<const char*>(buffer_.data()), static_cast<std::size_t>(at_ - buffer_.data())});
    at_ = buffer_.data();
  }
  /// The length is known to the compiler where the text is a literal.
  void text(std::string_view piece) {
    std::memcpy(at_, piece.data(), piece.size());
    at_ += piece.size();
  }
  void byte(char value) { *at_++ = static_cast<Byte>(value); }
  void number(std::uint64_t value) {
    char* const at = reinterpret_cast<char*>(at_);
    at_ += std::to_chars(at, at + 24, value).ptr - at;
  }
  void microseconds(std::uint64_t ns) {
    number(ns / 1'000);
    const auto rest = static_cast<unsigned>(ns % 1'000);
    Byte* const at = at_;
    at[0] = '.';
    at[1] = static_cast<Byte>('0' + rest / 100);
    at[2] = static_cast<Byte>('0' + rest / 10 % 10);
    at[3] = static_cast<Byte>('0' + rest % 10);
    at_ = at + 4;
  }
  void varint(std::uint64_t value) {
    Byte* at = at_;
    while (value >= 0x80) {
      *at++ = static_cast<Byte>(value | 0x80);
      value >>= 7;
    }
    *at++ = static_cast<Byte>(value);
    at_ = at;
  }
  void fixed64(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    std::memcpy(at_, &bits, sizeof bits);
    at_ += sizeof bits;
  }
  /// Room for a length of one byte, and what fills it in.
  Byte* length() { return at_++; }
  void end(Byte* length) { *length = static_cast<Byte>(at_ - length - 1); }

 private:
  static constexpr std::ptrdiff_t kCapacity = 1 << 17, kFull = kCapacity - 1'024;

  FloorWrite write_;
  std::vector<Byte> buffer_;
  Byte* at_;
};

class JsonFloor final : public Sink {
 public:
  JsonFloor(const SinkLoad& load, FloorWrite write) : out_(std::move(write)), origin_ns_(load.origin_ns()) {
    for (const KernelDefinition& kernel : load.definitions().kernels)
      kernel_heads_.push_back(R"(,
{"ph":"X","cat":"kernel","name":")" +
                              kernel.name + R"(","pid":0,"tid":1,"ts":)");
    for (const GeometryDefinition& geometry : load.definitions().geometries) {
      geometries_.push_back(R"(,"device":0,"stream":1,"context":1,"grid":[)" + std::to_string(geometry.global[0] / geometry.local[0]) +
                            R"(,1,1],"block":[)" + std::to_string(geometry.local[0]) + R"(,1,1],"queued":)");
    }
  }

  void handle_annotation_activity(const AnnotationActivity& range) override {
    out_.begin_step();
    out_.text(R"(,
{"ph":"X","cat":"user_annotation","name":"forward_pass","pid":4242,"tid":4243,"ts":)");
    times(range);
    out_.text("}");
  }
  void handle_kernel_activity(const KernelActivity& kernel) override {
    out_.begin_step();
    call(R"(,
{"ph":"X","cat":"xpu_runtime","name":"clEnqueueNDRangeKernel","pid":4242,"tid":4243,"ts":)",
         *kernel.call);
    out_.text(kernel_heads_[kernel.kernel->index]);
    times(kernel);
    out_.text(R"(,"args":{"correlation":)");
    out_.number(kernel.correlation);
    out_.text(geometries_[kernel.geometry->index]);
    end_command(kernel);
  }
  void handle_memcpy_activity(const MemcpyActivity& copy) override {
    out_.begin_step();
    call(R"(,
{"ph":"X","cat":"xpu_runtime","name":"clEnqueueReadBuffer","pid":4242,"tid":4243,"ts":)",
         *copy.call);
    out_.text(R"x(,
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Host)","pid":0,"tid":1,"ts":)x");
    times(copy);
    out_.text(R"(,"args":{"correlation":)");
    out_.number(copy.correlation);
    out_.text(R"(,"device":0,"stream":1,"context":1,"bytes":)");
    out_.number(*copy.bytes);
    out_.text(R"x(,"memory bandwidth (GB/s)":)x");
    out_.microseconds(*copy.bytes * 1'000 / copy.duration_ns);
    out_.text(R"(,"queued":)");
    end_command(copy);
  }
  Result<> end(const LinkSummary&) override {
    out_.flush();
    return {};
  }

 private:
  void time(std::int64_t ns) { out_.microseconds(static_cast<std::uint64_t>(ns - origin_ns_)); }
  void times(const Activity& activity) {
    time(activity.start_ns);
    out_.text(R"(,"dur":)");
    out_.microseconds(activity.duration_ns);
  }
  /// With the beginning of the arrow.
  void call(std::string_view head, const RuntimeActivity& call) {
    out_.text(head);
    times(call);
    out_.text(R"(,"args":{"correlation":)");
    out_.number(call.correlation);
    out_.text(R"(}},
{"ph":"s","id":)");
    out_.number(call.correlation);
    out_.text(R"(,"cat":"ac2g","name":"ac2g","pid":4242,"tid":4243,"ts":)");
    time(call.start_ns);
    out_.text("}");
  }
  /// With the end of the arrow.
  void end_command(const DeviceActivity& command) {
    time(*command.queued_ns);
    out_.text(R"(,"submitted":)");
    time(*command.submitted_ns);
    out_.text(R"(}},
{"ph":"f","bp":"e","id":)");
    out_.number(command.correlation);
    out_.text(R"(,"cat":"ac2g","name":"ac2g","pid":0,"tid":1,"ts":)");
    time(command.start_ns);
    out_.text("}");
  }

  FloorBuffer out_;
  std::int64_t origin_ns_;
  std::vector<std::string> kernel_heads_, geometries_;
};

/// Bytes that may hold zeros.
template <std::size_t N>
constexpr std::string_view bytes(const char (&literal)[N]) {
  return {literal, N - 1};
}

class PerfettoFloor final : public Sink {
 public:
  PerfettoFloor(const SinkLoad& load, FloorWrite write) : out_(std::move(write)), epoch_ns_(load.origin_ns() - 1'000'000'000) {
    for (const KernelDefinition& kernel : load.definitions().kernels) {
      // Specifications are numbered as they come: the first kernel, the queue, the other kernels.
      const char stage = static_cast<char>(kernel.index == 0 ? 1 : kernel.index + 2);
      kernels_.push_back({stage, static_cast<char>(kernel.index + 1)});
    }
    for (const GeometryDefinition& geometry : load.definitions().geometries) {
      FloorBuffer triple([&](std::string_view piece) { geometries_.emplace_back(piece); });
      const auto dimension = [&](char field, std::uint64_t value) {
        triple.byte(field);
        FloorBuffer::Byte* const length = triple.length();
        triple.text(bytes("\x08"));
        triple.varint(value);
        triple.end(length);
      };
      dimension('\x0a', geometry.global[0] / geometry.local[0]);
      dimension('\x12', geometry.local[0]);
      triple.flush();
    }
  }

  void handle_annotation_activity(const AnnotationActivity& range) override {
    out_.begin_step();
    begin_packet(range.start_ns);
    out_.text(bytes("\x5a\x08\x48\x01\x58\x02\x18\x04\x50\x01"));
    out_.end(packet_);
    end_of_slice(range);
  }
  void handle_kernel_activity(const KernelActivity& kernel) override {
    out_.begin_step();
    call(*kernel.call, bytes("\x48\x01\x58\x02\x18\x01\x50\x02\x22"));
    const Kernel& ids = kernels_[kernel.kernel->index];
    FloorBuffer::Byte* const command = begin_command(kernel, ids.stage);
    out_.text(bytes("\x98\x01"));
    out_.byte(ids.id);
    out_.text(bytes("\xaa\x01"));
    FloorBuffer::Byte* const launch = out_.length();
    out_.text(geometries_[kernel.geometry->index]);
    end_command(kernel, command, launch);
  }
  void handle_memcpy_activity(const MemcpyActivity& copy) override {
    out_.begin_step();
    call(*copy.call, bytes("\x48\x01\x58\x02\x18\x01\x50\x03\x22"));
    FloorBuffer::Byte* const command = begin_command(copy, '\x01');
    out_.text(bytes("\xaa\x01"));
    FloorBuffer::Byte* const launch = out_.length();
    argument(bytes("\x08\x08\x20"), *copy.bytes);
    out_.text(bytes("\x1a\x0b\x08\x09\x29"));
    out_.fixed64(static_cast<double>(*copy.bytes) / static_cast<double>(copy.duration_ns));
    end_command(copy, command, launch);
  }
  Result<> end(const LinkSummary&) override {
    out_.flush();
    return {};
  }

 private:
  struct Kernel {
    char stage, id;
  };

  void begin_packet(std::int64_t ns) {
    out_.text(bytes("\x0a"));
    packet_ = out_.length();
    out_.text(bytes("\x50\x01\x68\x02\x40"));
    out_.varint(static_cast<std::uint64_t>(ns - epoch_ns_));
  }
  void end_of_slice(const Activity& activity) {
    begin_packet(activity.start_ns + static_cast<std::int64_t>(activity.duration_ns));
    out_.text(bytes("\x5a\x04\x48\x02\x58\x02"));
    out_.end(packet_);
  }
  void call(const RuntimeActivity& call, std::string_view head) {
    begin_packet(call.start_ns);
    out_.text(bytes("\x5a"));
    FloorBuffer::Byte* const event = out_.length();
    out_.text(head);
    FloorBuffer::Byte* const annotation = out_.length();
    out_.text(bytes("\x08\x01\x18"));
    out_.varint(call.correlation);
    out_.end(annotation);
    out_.text(bytes("\xc2\xbb\x01"));
    FloorBuffer::Byte* const correlation = out_.length();
    out_.text(bytes("\x08"));
    out_.varint(call.correlation);
    out_.end(correlation);
    out_.end(event);
    out_.end(packet_);
    end_of_slice(call);
  }
  FloorBuffer::Byte* begin_command(const DeviceActivity& command, char stage) {
    begin_packet(command.start_ns);
    out_.text(bytes("\xaa\x03"));
    FloorBuffer::Byte* const length = out_.length();
    out_.text(bytes("\x08"));
    out_.varint(command.correlation);
    out_.text(bytes("\x10"));
    out_.varint(command.duration_ns);
    out_.text(bytes("\x68\x02\x70"));
    out_.byte(stage);
    out_.text(bytes("\x28\x01\x50"));
    out_.varint(command.correlation);
    return length;
  }
  void end_command(const DeviceActivity& command, FloorBuffer::Byte* length, FloorBuffer::Byte* launch) {
    argument(bytes("\x08\x0c\x18"), static_cast<std::uint64_t>(command.start_ns - *command.queued_ns));
    argument(bytes("\x08\x0d\x18"), static_cast<std::uint64_t>(command.start_ns - *command.submitted_ns));
    argument(bytes("\x08\x0e\x20"), command.error_ns);
    out_.end(launch);
    out_.end(length);
    out_.end(packet_);
  }
  void argument(std::string_view head, std::uint64_t value) {
    out_.text(bytes("\x1a"));
    FloorBuffer::Byte* const length = out_.length();
    out_.text(head);
    out_.varint(value);
    out_.end(length);
  }

  FloorBuffer out_;
  std::int64_t epoch_ns_;
  FloorBuffer::Byte* packet_ = nullptr;
  std::vector<Kernel> kernels_;
  std::vector<std::string> geometries_;
};

}  // namespace

std::unique_ptr<Sink> make_json_floor(const SinkLoad& load, FloorWrite write) {
  return std::make_unique<JsonFloor>(load, std::move(write));
}
std::unique_ptr<Sink> make_perfetto_floor(const SinkLoad& load, FloorWrite write) {
  return std::make_unique<PerfettoFloor>(load, std::move(write));
}

}  // namespace xpu::bench
