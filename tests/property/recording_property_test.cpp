#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/recording_builder.hpp"
#include "xpu/trace/conservation.hpp"

/// Whatever is recorded, in whatever form it lies on the disk: every record comes back once, and the books find what is missing.
namespace xpu::trace {
namespace {

using Random = std::mt19937_64;
using Contents = std::map<std::pair<std::size_t, std::string>, int>;  // process and bytes of a record -> how often

ProcessInfo some_process(Random& random, std::uint64_t number) {
  ProcessInfo info;
  info.pid = 1'000 + number;
  info.start_ns = random() >> 1;
  info.state = SegmentState::closed;
  info.writer_count = 1 + static_cast<std::uint32_t>(random() % 4);
  info.filtered = random() % 100;
  return info;
}

Contents contents_of(const std::string& path) {
  Contents contents;
  const Result<Recording> recording = Recording::open(path);
  if (!recording) {
    ADD_FAILURE() << to_string(recording.error());
    return contents;
  }
  EXPECT_TRUE(recording->for_each_batch([&](std::size_t process, std::span<const std::byte> records) {
    for_each_record(records, [&](const RecordHeader& header) {
      ++contents[{process, std::string(reinterpret_cast<const char*>(&header), header.size)}];
    });
  }));
  EXPECT_EQ(recording->damage(), "");
  return contents;
}

std::vector<std::byte> some_record(Random& random) {
  // Kinds of every sort: stored as columns, as they are, and not known to this version.
  constexpr std::pair<std::uint16_t, std::uint16_t> kinds[] = {{16, 64}, {17, 56}, {24, 48}, {26, 64},
                                                               {40, 48}, {16, 72}, {77, 40}, {20, 64}};
  const auto [kind, size] = kinds[random() % std::size(kinds)];
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = random() >> (random() % 64);  // of every magnitude
    std::memcpy(bytes.data() + at, &word, 8);
  }
  const RecordHeader header{kind, size, static_cast<std::uint32_t>(random())};
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

TEST(RecordingProperty, EveryRecordComesBackOnceFromEveryForm) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    test_support::RecordingBuilder builder;
    Contents expected;
    const std::size_t processes = 1 + random() % 3;
    for (std::size_t process = 0; process < processes; ++process) builder.add_process(some_process(random, process));
    const std::size_t records = random() % 4'000;
    for (std::size_t index = 0; index < records; ++index) {
      const std::size_t process = random() % processes;
      const std::vector<std::byte> record = some_record(random);
      ++expected[{process, std::string(reinterpret_cast<const char*>(record.data()), record.size())}];
      builder.add_bytes(process, static_cast<std::uint32_t>(1 + random() % 3), record);
    }
    const test_support::TemporaryFolder folder;
    ASSERT_TRUE(builder.write_file(folder / "a.xpu"));
    ASSERT_TRUE(contents_of(folder / "a.xpu") == expected);
    for (const std::size_t compacted : {std::size_t{0}, std::size_t{1}, random() % 10}) {
      const std::string path = folder / ("b" + std::to_string(compacted) + ".xpu.live");
      ASSERT_TRUE(builder.write_folder(path, compacted));
      ASSERT_TRUE(contents_of(path) == expected) << compacted << " chunks compacted";
    }
  }
}

TEST(RecordingProperty, TheBooksFindWhateverIsMissing) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    test_support::RecordingBuilder builder;
    QueueBooks expected;
    const std::size_t processes = 1 + random() % 2;
    for (std::size_t process = 0; process < processes; ++process) {
      builder.add_process(some_process(random, process));
      const std::uint32_t queues = 1 + static_cast<std::uint32_t>(random() % 3);
      std::uint64_t operations = 0;
      for (std::uint32_t queue = 1; queue <= queues; ++queue) {
        const auto before = static_cast<std::uint32_t>(random() % 1'000);
        builder.add(process, 1, test_support::queue_record(queue, before));
        const auto commands = static_cast<std::uint32_t>(random() % 200);
        for (std::uint32_t command = 1; command <= commands; ++command) {
          const auto writer = static_cast<std::uint32_t>(1 + random() % 3), harvester = static_cast<std::uint32_t>(1 + random() % 3);
          const std::uint64_t operation = make_operation(writer, ++operations);
          const auto submission = test_support::submission(operation, queue, before + command);
          const auto completion = test_support::completion(operation, queue);
          ++expected.submitted;
          switch (random() % 40) {
            case 0:  // still running
              builder.add(process, writer, submission);
              ++expected.pending;
              break;
            case 1:  // the submission went missing without a word
              builder.add(process, harvester, completion);
              ++expected.unexplained;
              break;
            case 2:  // dropped with a word
              builder.add(process, writer, test_support::loss(queue, 1, 1, 0, before + command));
              ++expected.lost;
              break;
            case 3: {  // its completion was
              builder.add(process, writer, submission);
              auto loss = test_support::loss(queue, 2, 1, kFlagCompletionLost);
              loss.first_operation = loss.last_operation = operation;
              builder.add(process, harvester, loss);
              ++expected.lost;
              break;
            }
            default:
              if (random() % 2 == 0)
                builder.add(process, harvester, completion);  // a fast device and a slow thread
              else
                builder.next_chunk(process, harvester);
              builder.add(process, writer, submission);
              builder.add(process, harvester, completion);  // a second time for half of them
              ++expected.recorded;
          }
        }
      }
    }
    const test_support::TemporaryFolder folder;
    ASSERT_TRUE(builder.write_file(folder / "a.xpu"));
    const Result<Recording> recording = Recording::open(folder / "a.xpu");
    ASSERT_TRUE(recording);
    const Result<Conservation> books = check_conservation(*recording);
    ASSERT_TRUE(books);
    EXPECT_EQ(books->total.submitted, expected.submitted);
    EXPECT_EQ(books->total.recorded, expected.recorded);
    EXPECT_EQ(books->total.lost, expected.lost);
    EXPECT_EQ(books->total.pending, expected.pending);
    EXPECT_EQ(books->total.unexplained, expected.unexplained);
    EXPECT_EQ(books->pending.size(), expected.pending);
    std::int64_t queue_by_queue = 0;
    for (const QueueBooks& queue : books->queues) queue_by_queue += queue.unexplained;
    EXPECT_EQ(queue_by_queue, expected.unexplained);
  }
}

}  // namespace
}  // namespace xpu::trace
