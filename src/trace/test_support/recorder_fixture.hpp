#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trace/segment.hpp"
#include "trace/writer.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/recording/recorder.hpp"
#include "xpu/trace/recording/recording.hpp"

/// What the tests of the recorder share: a folder with a recorder's options, the program's side, and a look at what was recorded.
namespace xpu::trace::test_support {

namespace fs = std::filesystem;

inline constexpr std::uint64_t kMaxLive = std::uint64_t{1} << 28;

inline mode_t mode_of(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

inline std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const fs::path& path, const std::string& contents) { std::ofstream(path, std::ios::binary) << contents; }

inline std::vector<fs::path> files_like(const std::string& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".seg")) found.push_back(entry.path());
  }
  return found;
}
inline std::vector<fs::path> spares_in(const std::string& folder) { return files_like(folder, "spare-"); }
inline std::vector<fs::path> claimed_in(const std::string& folder, pid_t pid = ::getpid()) {
  return files_like(folder, std::to_string(pid) + "-");
}

// The writing side: this process (or a child) with a segment of its own and writers that follow the layout's rules.
class Program {
 public:
  explicit Program(const std::string& live_path) {
    Result<Segment*> claimed = Segment::claim(live_path, kMaxLive, 1'000);
    EXPECT_TRUE(claimed) << claimed.error().message;
    segment_ = claimed ? *claimed : nullptr;
  }
  Segment& segment() const { return *segment_; }
  std::unique_ptr<Writer> writer(std::uint32_t id) const {
    segment_->header().writer_count.fetch_add(1);
    return std::make_unique<Writer>(*segment_, id, 0, [](Writer&) {});
  }

 private:
  Segment* segment_ = nullptr;  // never freed, as in a program
};

// One launch: both of its records, or nothing.
inline bool launch(Writer& writer, std::uint64_t number) {
  OperationSubmittedRecord submitted{};
  submitted.header = {static_cast<std::uint16_t>(RecordKind::operation_submitted), sizeof submitted, 1u << kCommandShift};
  submitted.operation = make_operation(writer.id(), number);
  submitted.enter_ns = now_ns();
  submitted.exit_ns = submitted.enter_ns + 300 + number % 50;
  submitted.queue = writer.id();
  submitted.queue_sequence = static_cast<std::uint32_t>(number);
  submitted.what = 1;
  submitted.thread = writer.id();
  OperationCompletedRecord completed{};
  completed.header = {static_cast<std::uint16_t>(RecordKind::operation_completed), sizeof completed, 0};
  completed.operation = submitted.operation;
  completed.queue = writer.id();
  completed.queued = submitted.enter_ns + 100;
  completed.submit = completed.queued + 200;
  completed.start = completed.submit + 150 + number % 30;
  completed.end = completed.start + 900 + number % 70;
  return writer.append(submitted) && writer.append(completed);
}

// Launches first, first + 1, …; returns how many found room.
inline std::uint64_t launch_many(Writer& writer, std::uint64_t count, std::uint64_t first = 1) {
  std::uint64_t written = 0;
  while (written < count && launch(writer, first + written)) ++written;
  return written;
}

// What a recording holds: how often each operation was submitted and completed, and how many records of each kind.
struct Seen {
  std::map<std::pair<std::size_t, std::uint64_t>, int> submitted, completed;
  std::map<std::uint16_t, std::uint64_t> kinds;
  std::uint64_t lost = 0;

  bool each_once() const {
    const auto once = [](const auto& entry) { return entry.second == 1; };
    return std::all_of(submitted.begin(), submitted.end(), once) && std::all_of(completed.begin(), completed.end(), once);
  }
};

inline Seen see(const Recording& recording) {
  Seen seen;
  EXPECT_TRUE(recording.for_each_batch([&](std::size_t process, std::span<const std::byte> records) {
    for_each_record(records, [&](const RecordHeader& header) {
      ++seen.kinds[header.kind];
      switch (static_cast<RecordKind>(header.kind)) {
        case RecordKind::operation_submitted:
          ++seen.submitted[{process, reinterpret_cast<const OperationSubmittedRecord&>(header).operation}];
          break;
        case RecordKind::operation_completed:
          ++seen.completed[{process, reinterpret_cast<const OperationCompletedRecord&>(header).operation}];
          break;
        case RecordKind::loss: seen.lost += reinterpret_cast<const LossRecord&>(header).count; break;
        default: break;
      }
    });
  }));
  return seen;
}

inline Seen see(const std::string& path) {
  const Result<Recording> recording = Recording::open(path);
  EXPECT_TRUE(recording) << recording.error().message;
  if (!recording) return {};
  EXPECT_EQ(recording->damage(), "");
  return see(*recording);
}

// Runs `act` in a child that then waits to be killed; returns its number once `act` is over.
template <typename Act>
pid_t run_and_wait(Act&& act) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    act();
    static_cast<void>(!::write(ready[1], "x", 1));
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  return child;
}

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    std::string pattern = (fs::temp_directory_path() / "xpu_recorder_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    options_.path = folder_ + "/a.xpu";
    options_.argv = {"./program", "--fast"};
    options_.max_live_bytes = kMaxLive;
  }
  ~RecorderTest() override { fs::remove_all(folder_); }

  std::string live() const { return options_.path + ".live"; }
  std::unique_ptr<Recorder> create() const {
    Result<std::unique_ptr<Recorder>> recorder = Recorder::create(options_);
    EXPECT_TRUE(recorder) << recorder.error().message;
    return recorder ? *std::move(recorder) : nullptr;
  }
  void expect_refused(ErrorCode code) const {
    const Result<std::unique_ptr<Recorder>> recorder = Recorder::create(options_);
    ASSERT_FALSE(recorder);
    EXPECT_EQ(recorder.error().code, code) << recorder.error().message;
    EXPECT_FALSE(recorder.error().message.empty());
  }
  // Until nothing is left to do, or a second has passed.
  static void poll_all(Recorder& recorder) {
    for (int round = 0; round < 1'000 && recorder.poll(); ++round) ::usleep(1'000);
  }
  static std::string finish(Recorder& recorder) {
    const Result<std::string> path = recorder.finish({true, 3, 0, 1'000, 20});
    EXPECT_TRUE(path) << path.error().message;
    return path ? *path : "";
  }

  std::string folder_;
  RecorderOptions options_;
};

}  // namespace xpu::trace::test_support
