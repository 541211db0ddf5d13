#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/expect.hpp"
#include "tests/fuzz/input_files.hpp"
#include "tests/fuzz/pieces.hpp"
#include "tests/fuzz/repair.hpp"
#include "tests/support/recording_builder.hpp"
#include "xpu/trace/clock_map.hpp"
#include "xpu/trace/conservation.hpp"
#include "xpu/trace/recording/layout.hpp"

namespace {

using namespace xpu;

// One folder for all inputs of a run; in memory where there is such a place, because making files is what takes the time.
const std::string& folder() {
  static const std::string path = [] {
    std::error_code error;
    if (std::filesystem::exists("/dev/shm", error)) ::setenv("TMPDIR", "/dev/shm", 0);
    static const test_support::TemporaryFolder temporary;
    std::filesystem::create_directory(temporary / "a.xpu.live");
    return temporary.path();
  }();
  return path;
}

void lay_out(std::span<const std::byte> input, bool repaired) {
  for (const char* name : fuzz::kInputFiles) ::unlink((folder() + "/" + name).c_str());
  fuzz::for_each_file(input, [&](std::size_t which, std::span<const std::byte> contents) {
    const std::string path = folder() + "/" + fuzz::kInputFiles[which];
    const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    XPU_FUZZ_EXPECT(fd >= 0);
    if (which >= fuzz::kFirstSegment) {
      fuzz::write_pieces(fd, contents, trace::kSegmentHeaderBytes, trace::kChunkBytes);
    } else {
      std::vector<std::byte> bytes(contents.begin(), contents.end());
      if (repaired) fuzz::ChecksumRepair(bytes).run();
      XPU_FUZZ_EXPECT(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    }
    ::close(fd);
  });
}

void map_clocks(const trace::Recording& recording) {
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<trace::ClockPoint>> points;
  std::vector<std::uint64_t> stamps;
  (void)recording.for_each_batch([&](std::size_t process, std::span<const std::byte> records) {
    trace::for_each_record(records, [&](const trace::RecordHeader& header) {
      if (header.kind == static_cast<std::uint16_t>(trace::RecordKind::clock_reading)) {
        const auto& reading = reinterpret_cast<const trace::ClockReadingRecord&>(header);
        points[{process, reading.device}].push_back(
            {reading.host_before_ns, reading.host_after_ns, reading.device_ticks, reading.error_ps});
      }
      if (header.kind == static_cast<std::uint16_t>(trace::RecordKind::operation_completed) && stamps.size() < 100) {
        stamps.push_back(reinterpret_cast<const trace::OperationCompletedRecord&>(header).start);
      }
    });
  });
  for (const auto& [device, readings] : points) {
    for (const std::uint32_t bits : {64u, 32u}) {
      const trace::ClockMap map(readings, {1'000, 12, bits});
      for (const std::uint64_t stamp : stamps) map.to_host(stamp, stamp);
    }
  }
}

void expect_balanced(const trace::Conservation& books) {
  XPU_FUZZ_EXPECT(books.pending.size() <= 1'000);
  XPU_FUZZ_EXPECT(books.total.unexplained ==
                  static_cast<std::int64_t>(books.total.submitted - books.total.recorded - books.total.lost - books.total.pending));
  for (const trace::LossSummary& loss : books.losses) XPU_FUZZ_EXPECT(trace::loss_cause_name(loss.cause) != nullptr);
}

/// As if the records were those of a session, which saw a part of the program: all at once, and one after the other.
void check_as_a_part(const trace::Recording& recording) {
  const trace::ReadBatches read_batches = [&](std::span<const trace::RecordKind> kinds, const trace::Recording::Visitor& visit) {
    return recording.for_each_batch(kinds, visit);
  };
  const auto of_part = trace::check_conservation_of_part(recording.processes(), read_batches);
  XPU_FUZZ_EXPECT(of_part.has_value());
  expect_balanced(*of_part);

  std::vector<trace::RunningBooks> books(recording.processes().size());
  (void)recording.for_each_batch([&](std::size_t process, std::span<const std::byte> records) {
    trace::for_each_record(records, [&](const trace::RecordHeader& header) {
      switch (static_cast<trace::RecordKind>(header.kind)) {
        case trace::RecordKind::queue: books[process].add(reinterpret_cast<const trace::QueueRecord&>(header)); break;
        case trace::RecordKind::operation_submitted:
          books[process].add(reinterpret_cast<const trace::OperationSubmittedRecord&>(header));
          break;
        case trace::RecordKind::operation_completed:
          books[process].add_recorded(reinterpret_cast<const trace::OperationCompletedRecord&>(header).queue, header.flags);
          break;
        case trace::RecordKind::loss: books[process].add(reinterpret_cast<const trace::LossRecord&>(header)); break;
        default: break;
      }
    });
  });
  for (std::size_t process = 0; process < books.size(); ++process) {
    std::vector<trace::PendingOperation> pending(of_part->pending);
    expect_balanced(std::move(books[process]).close(recording.processes()[process], std::move(pending)));
  }
}

void read_recording(const std::string& path) {
  const auto recording = trace::Recording::open(path);
  if (!recording) return;
  const auto visit = [&](std::size_t process, std::span<const std::byte> records) {
    XPU_FUZZ_EXPECT(process < recording->processes().size());
    fuzz::expect_whole_records(records);
  };
  XPU_FUZZ_EXPECT(recording->for_each_batch(visit).has_value());
  const trace::RecordKind kinds[] = {trace::RecordKind::loss, trace::RecordKind::string};
  XPU_FUZZ_EXPECT(recording->for_each_batch(kinds, visit).has_value());
  XPU_FUZZ_EXPECT(recording->damage().find('\n') == std::string::npos);

  const auto books = trace::check_conservation(*recording);
  XPU_FUZZ_EXPECT(books.has_value());
  expect_balanced(*books);
  check_as_a_part(*recording);
  map_clocks(*recording);
}

}  // namespace

/// Input: a finished file, the files of a live folder, or both; read as they are and with right checksums.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const bool repaired : {false, true}) {
    lay_out(fuzz::bytes_of(data, size), repaired);
    read_recording(folder() + "/a");
    read_recording(folder() + "/a.xpu.live");
    (void)trace::newest_recording(folder());
  }
  return 0;
}
