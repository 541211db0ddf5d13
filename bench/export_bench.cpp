/// How long it takes, and how much memory, to turn a recording into a report and a timeline.
///
///     export_bench [LAUNCHES [FOLDER [MOST_FLOORS]]]     default: 1000000 launches, files in the folder for temporary files
///
/// Makes a recording of that many kernel launches as the recorder would (one thread, one in-order queue, 20 kernels), and then, each in a
/// process of its own so that peak memory is its own: reads it, links it, exports it, exports it compressed, reports on it. Beside the
/// times stands the floor: what the same document costs when it is only formatted and written. With MOST_FLOORS it fails when an
/// uncompressed export takes longer than so many.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/probe.hpp"
#include "profiler/sinks/export_source.hpp"
#include "trace/recording/compact_file.hpp"
#include "trace/recording/manifest.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu {
namespace {

using Clock = std::chrono::steady_clock;
using trace::RecordKind;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void fail(const std::string& sentence) {
  std::fprintf(stderr, "export_bench: %s\n", sentence.c_str());
  std::exit(1);
}

/// Collects records of one kind and puts them into the file in the blocks that a recorder makes.
class SyntheticRecording {
 public:
  explicit SyntheticRecording(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || !writer_.start(file)) fail("cannot create " + path);
    trace::CompactProcess process;
    process.info.pid = 4'242;
    process.info.start_ns = kStart;
    process.info.state = trace::SegmentState::closed;
    process.info.writer_count = 1;
    batch_.processes.push_back(process);
  }

  void write(std::uint64_t launches) {
    describe();
    constexpr std::uint64_t kRound = trace::kMaxBlockRecords;
    for (std::uint64_t first = 0; first < launches; first += kRound) add_launches(first, std::min(first + kRound, launches));
    trace::Manifest manifest;
    manifest.program = "synthetic";
    manifest.argv = {"synthetic", std::to_string(launches)};
    manifest.start_monotonic_ns = kStart;
    manifest.start_realtime_ns = 1'700'000'000'000'000'000;
    if (!writer_.finish(trace::manifest_to_json(manifest))) fail("cannot finish the recording");
  }

 private:
  static constexpr std::uint64_t kStart = 1'000'000'000'000;
  static constexpr std::uint32_t kKernels = 20;

  template <typename Record>
  static void append(std::vector<std::byte>& out, RecordKind kind, Record record, std::string_view text = {}) {
    const std::size_t size = sizeof(Record) + (text.size() + 7) / 8 * 8;
    record.header.kind = static_cast<std::uint16_t>(kind);
    record.header.size = static_cast<std::uint16_t>(size);
    const std::size_t at = out.size();
    out.resize(at + size);
    std::memcpy(out.data() + at, &record, sizeof record);
    std::memcpy(out.data() + at + sizeof record, text.data(), text.size());
  }
  void put(RecordKind kind, const std::vector<std::byte>& records) { batch_.add(0, static_cast<std::uint16_t>(kind), records, encoder_); }
  void flush() {
    if (!writer_.append(batch_)) fail("cannot write the recording");
    const std::vector<trace::CompactProcess> processes = batch_.processes;
    batch_.clear();
    batch_.processes = processes;
  }

  std::uint32_t add_string(std::vector<std::byte>& out, std::string_view text) {
    trace::StringRecord record{};
    record.id = ++strings_;
    record.bytes = static_cast<std::uint32_t>(text.size());
    append(out, RecordKind::string, record, text);
    return record.id;
  }

  void describe() {
    std::vector<std::byte> strings, threads, devices, queues, kernels, geometries;
    trace::DeviceRecord device{};
    device.device = 1;
    device.name = add_string(strings, "synthetic device");
    device.driver = add_string(strings, "synthetic driver");
    device.tick_numerator = device.tick_denominator = 1;
    device.valid_bits = 64;
    append(devices, RecordKind::device, device);
    trace::QueueRecord queue{};
    queue.queue = queue.context = queue.device = 1;
    append(queues, RecordKind::queue, queue);
    trace::ThreadRecord thread{};
    thread.thread = 1;
    thread.os_thread = 4'242;
    append(threads, RecordKind::thread, thread);
    for (std::uint32_t i = 1; i <= kKernels; ++i) {
      trace::KernelRecord kernel{};
      kernel.what = i;
      kernel.name = add_string(strings, "kernel_number_" + std::to_string(i));
      append(kernels, RecordKind::kernel, kernel);
      trace::GeometryRecord geometry{};
      geometry.geometry = i;
      geometry.dimensions = 1;
      geometry.global[0] = 1'024 * i;
      geometry.local[0] = 64;
      geometry.global[1] = geometry.global[2] = geometry.local[1] = geometry.local[2] = 1;
      append(geometries, RecordKind::geometry, geometry);
    }
    api_ = add_string(strings, "clEnqueueNDRangeKernel");
    put(RecordKind::string, strings);
    put(RecordKind::device, devices);
    put(RecordKind::queue, queues);
    put(RecordKind::thread, threads);
    put(RecordKind::kernel, kernels);
    put(RecordKind::geometry, geometries);
    flush();
  }

  void add_launches(std::uint64_t first, std::uint64_t last) {
    std::vector<std::byte> submissions, completions, readings;
    for (std::uint64_t i = first; i < last; ++i) {
      // A launch every 5 us or so, each running for 2 to 4 us, with the jitter that makes real columns hard to compress.
      noise_ = noise_ * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
      const std::uint64_t jitter = noise_ >> 54;  // below 1,024
      const std::uint64_t enter = kStart + 1'000'000 + i * 5'000 + jitter;
      trace::OperationSubmittedRecord submitted{};
      submitted.header.flags = static_cast<std::uint32_t>(probe::Command::ndrange_kernel) << trace::kCommandShift;
      submitted.operation = trace::make_operation(1, i + 1);
      submitted.enter_ns = enter;
      submitted.exit_ns = enter + 700 + jitter / 4;
      submitted.queue = submitted.thread = 1;
      submitted.queue_sequence = static_cast<std::uint32_t>(i + 1);
      submitted.what = submitted.geometry = 1 + static_cast<std::uint32_t>(i % kKernels);
      submitted.api = api_;
      append(submissions, RecordKind::operation_submitted, submitted);
      trace::OperationCompletedRecord completed{};
      completed.operation = submitted.operation;
      completed.queued = enter + 200;
      completed.submit = enter + 500 + jitter / 8;
      completed.start = enter + 1'500;
      completed.end = completed.start + 2'000 + jitter;
      completed.queue = 1;
      append(completions, RecordKind::operation_completed, completed);
      if (i % 100'000 == 0) {
        trace::ClockReadingRecord reading{};
        reading.device = 1;
        reading.domain = static_cast<std::uint32_t>(ClockDomain::monotonic);
        reading.host_before_ns = enter - 200;
        reading.device_ticks = enter - 100;
        reading.host_after_ns = enter;
        append(readings, RecordKind::clock_reading, reading);
      }
    }
    put(RecordKind::operation_submitted, submissions);
    put(RecordKind::operation_completed, completions);
    if (!readings.empty()) put(RecordKind::clock_reading, readings);
    flush();
  }

  trace::CompactWriter writer_;
  trace::BlockEncoder encoder_;
  trace::CompactBatch batch_;
  std::uint32_t strings_ = 0, api_ = 0;
  std::uint64_t noise_ = 1;
};

struct Cost {
  double wall_s = 0, cpu_s = 0;
  long peak_kib = 0;
};

/// Runs `work` in a child, so that its peak memory is nobody else's.
Cost cost_of(const std::function<bool()>& work) {
  const Clock::time_point start = Clock::now();
  const pid_t child = ::fork();
  if (child < 0) fail("cannot fork");
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, 0, &usage) != child || status != 0) fail("a measured run failed");
  const auto cpu = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
  return {seconds_since(start), cpu(usage.ru_utime) + cpu(usage.ru_stime), usage.ru_maxrss};
}

/// The floor: the same document for that many launches, each number by std::to_chars and everything else copied, with nothing read, linked
/// or decided. CPU seconds, the best of three rounds.
class Floor {
 public:
  explicit Floor(const std::string& path) : path_(path), buffer_(kCapacity) {}

  double seconds(std::uint64_t launches) {
    double best = 1e9;
    for (int round = 0; round < 3; ++round) best = std::min(best, cost_of([&] { return write(launches); }).cpu_s);
    std::filesystem::remove(path_);
    return best;
  }

 private:
  static constexpr std::size_t kCapacity = std::size_t{1} << 17, kLongestLaunch = 1'024;

  bool write(std::uint64_t launches) {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return false;
    bool is_written = true;
    at_ = buffer_.data();
    for (std::uint64_t i = 0; i < launches && is_written; ++i) {
      launch(i);
      const auto used = static_cast<std::size_t>(at_ - buffer_.data());
      if (used + kLongestLaunch < kCapacity && i + 1 != launches) continue;
      is_written = ::write(file, buffer_.data(), used) == static_cast<ssize_t>(used);
      at_ = buffer_.data();
    }
    ::close(file);
    return is_written;
  }

  void launch(std::uint64_t i) {
    const std::uint64_t enter = 1'000'000 + i * 5'000;
    text(R"({"ph":"X","cat":"xpu_runtime","name":"clEnqueueNDRangeKernel","pid":4242,"tid":4242,"ts":)");
    microseconds(enter);
    text(R"(,"dur":)");
    microseconds(700 + i % 256);
    text(R"(,"args":{"correlation":)");
    number(i);
    text(R"(}},
{"ph":"s","id":)");
    number(i);
    text(R"(,"cat":"ac2g","name":"ac2g","pid":4242,"tid":4242,"ts":)");
    microseconds(enter);
    text(R"(},
{"ph":"X","cat":"kernel","name":"kernel_number_7","pid":0,"tid":1,"ts":)");
    microseconds(enter + 1'500);
    text(R"(,"dur":)");
    microseconds(2'000 + i % 1'024);
    text(R"(,"args":{"correlation":)");
    number(i);
    text(R"(,"device":0,"stream":1,"context":1,"grid":[16,1,1],"block":[64,1,1],"queued":)");
    microseconds(enter + 200);
    text(R"(,"submitted":)");
    microseconds(enter + 600);
    text(R"(}},
{"ph":"f","bp":"e","id":)");
    number(i);
    text(R"(,"cat":"ac2g","name":"ac2g","pid":0,"tid":1,"ts":)");
    microseconds(enter + 1'500);
    text("},\n");
  }

  void text(std::string_view piece) {
    std::memcpy(at_, piece.data(), piece.size());
    at_ += piece.size();
  }
  void number(std::uint64_t value) { at_ = std::to_chars(at_, at_ + 24, value).ptr; }
  void microseconds(std::uint64_t ns) {
    number(ns / 1'000);
    const auto rest = static_cast<unsigned>(ns % 1'000);
    *at_++ = '.';
    *at_++ = static_cast<char>('0' + rest / 100);
    *at_++ = static_cast<char>('0' + rest / 10 % 10);
    *at_++ = static_cast<char>('0' + rest % 10);
  }

  std::string path_;
  std::vector<char> buffer_;
  char* at_ = nullptr;
};

class NullSink final : public profiler::Sink {};

struct Measured {
  Cost read, link, plain, compressed, perfetto, report;
  std::uint64_t file_bytes = 0, json_bytes = 0, gzip_bytes = 0, perfetto_bytes = 0, slices = 0, flows = 0;
};

Measured measure(const std::string& folder, std::uint64_t launches) {
  const std::string recording_path = folder + "/bench.xpu", json = folder + "/bench.json", gzip = folder + "/bench.json.gz",
                    perfetto = folder + "/bench.pftrace";
  cost_of([&] {
    SyntheticRecording(recording_path).write(launches);
    return true;
  });
  const auto with_recording = [&](const std::function<bool(const trace::Recording&)>& work) {
    return cost_of([&] {
      const Result<trace::Recording> recording = trace::Recording::open(recording_path);
      if (!recording) std::fprintf(stderr, "%s\n", recording.error().message.c_str());
      return recording && work(*recording);
    });
  };

  Measured measured;
  measured.read = with_recording([](const trace::Recording& recording) {
    std::uint64_t records = 0;
    const Result<> read = recording.for_each_batch([&](std::size_t, std::span<const std::byte> batch) {
      trace::for_each_record(batch, [&](const trace::RecordHeader&) { ++records; });
    });
    return read && records != 0;
  });
  measured.link = with_recording([](const trace::Recording& recording) {
    const profiler::RecordingSource source(recording);
    profiler::Session session(source);
    NullSink sink;
    session.add_sink(sink);
    return session.run().has_value();
  });
  const auto export_to = [&](const std::string& path) {
    return with_recording([&](const trace::Recording& recording) {
      profiler::ExportOptions options;
      options.path = path;
      const auto summary = path == perfetto ? profiler::export_perfetto(recording, options) : profiler::export_chrome(recording, options);
      return summary && summary->kernels == launches && summary->slices == 2 * launches && summary->flows == launches;
    });
  };
  measured.plain = export_to(json);
  // The best of three rounds, as the floor's.
  for (int round = 1; round < 3; ++round) {
    const Cost again = export_to(json);
    if (again.cpu_s < measured.plain.cpu_s) measured.plain = again;
  }
  measured.compressed = export_to(gzip);
  measured.perfetto = export_to(perfetto);
  measured.report = with_recording([&](const trace::Recording& recording) {
    const auto report = profiler::make_report(recording, {});
    return report && report->conservation.unexplained == 0 && report->conservation.recorded == launches;
  });
  measured.slices = 2 * launches;
  measured.flows = launches;
  measured.file_bytes = std::filesystem::file_size(recording_path);
  measured.json_bytes = std::filesystem::file_size(json);
  measured.gzip_bytes = std::filesystem::file_size(gzip);
  measured.perfetto_bytes = std::filesystem::file_size(perfetto);
  for (const std::string& path : {recording_path, json, gzip, perfetto}) std::filesystem::remove(path);
  return measured;
}

void print(const char* what, const Cost& cost, const Cost& empty, std::uint64_t launches) {
  const double per_launch = static_cast<double>(cost.peak_kib - empty.peak_kib) * 1'024 / static_cast<double>(launches);
  std::printf("%-24s %8.3f s %8.3f s CPU %8.1f MiB %8.1f bytes per launch\n", what, cost.wall_s, cost.cpu_s,
              static_cast<double>(cost.peak_kib) / 1'024, per_launch);
}

}  // namespace

int run(std::uint64_t launches, const std::string& folder, double most_floors) {
  std::string pattern = folder + "/xpu_export_bench_XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) fail("cannot make a folder in " + folder);
  const Measured empty = measure(pattern, 0), full = measure(pattern, launches);
  const double floor_s = Floor(pattern + "/floor.json").seconds(launches);
  std::filesystem::remove_all(pattern);

  std::printf("%llu launches; peak memory above an export of an empty recording (%.1f MiB)\n", static_cast<unsigned long long>(launches),
              static_cast<double>(empty.plain.peak_kib) / 1'024);
  print("read", full.read, empty.read, launches);
  print("read and link", full.link, empty.link, launches);
  print("export to .json", full.plain, empty.plain, launches);
  print("export to .json.gz", full.compressed, empty.compressed, launches);
  print("export to .pftrace", full.perfetto, empty.perfetto, launches);
  print("report", full.report, empty.report, launches);
  const auto per_launch = [&](std::uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(launches); };
  std::printf("bytes per launch: recording %.1f, .json %.1f, .json.gz %.1f, .pftrace %.1f\n", per_launch(full.file_bytes),
              per_launch(full.json_bytes), per_launch(full.gzip_bytes), per_launch(full.perfetto_bytes));
  const double floors = full.plain.cpu_s / floor_s;
  std::printf("floor: %.0f ns per launch to format and write the same document; loading, linking and exporting takes %.2f floors\n",
              floor_s * 1e9 / static_cast<double>(launches), floors);
  if (most_floors > 0 && floors > most_floors) fail("more than " + std::to_string(most_floors) + " floors");
  return 0;
}

}  // namespace xpu

int main(int argc, char** argv) {
  const std::uint64_t launches = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  if (launches == 0) {
    std::fprintf(stderr, "usage: export_bench [LAUNCHES [FOLDER [MOST_FLOORS]]]\n");
    return 2;
  }
  return xpu::run(launches, argc > 2 ? argv[2] : std::filesystem::temp_directory_path().string(),
                  argc > 3 ? std::strtod(argv[3], nullptr) : 0);
}
