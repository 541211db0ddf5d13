// The files are read by Python, whose format they have.
#include "memory/snapshot_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "memory/block_sizes.hpp"
#include "memory/pickle_writer.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SnapshotFileTest : public ::testing::Test {
 protected:
  SnapshotFileTest() {
    std::string pattern = ::testing::TempDir() + "snapshot_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~SnapshotFileTest() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/it's a snapshot.pickle"; }

  /// What Python prints for an expression in which `value` is what the file holds.
  std::string python(const std::string& expression) const {
    const std::string program = folder_ + "/program.py";
    std::ofstream(program) << "import pickle, sys\nvalue = pickle.load(open(sys.argv[1], 'rb'))\nprint(" << expression << ", end='')\n";
    const std::string command = "PYTHONUTF8=1 python3 '" + program + "' \"" + path() + "\" 2>&1";
    std::FILE* const pipe = popen(command.c_str(), "re");
    std::string printed;
    std::array<char, 4'096> block{};
    for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), pipe)) != 0;) printed.append(block.data(), count);
    EXPECT_EQ(pclose(pipe), 0) << printed;
    return printed;
  }
  std::vector<std::string> left_over() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }

  std::string folder_;
};

TEST_F(SnapshotFileTest, EveryKindOfValueIsReadAsItWasWritten) {
  PickleWriter pickle(path());
  pickle.begin_list();
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{2'147'483'647}, std::uint64_t{2'147'483'648}, std::uint64_t{1} << 63,
                                    std::numeric_limits<std::uint64_t>::max()}) {
    pickle.integer(value);
  }
  for (const std::int64_t value : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    pickle.integer(value);
  }
  pickle.boolean(true);
  pickle.boolean(false);
  for (int times = 0; times < 2; ++times) pickle.text("grün");
  pickle.text("");
  pickle.pair(1, 2);
  const std::uint32_t pair = pickle.remember();
  // Names of more than one byte.
  for (int index = 0; index < 300; ++index) pickle.text("text " + std::to_string(index));
  pickle.text("text 299");
  pickle.begin_dict();
  pickle.end_dict();
  pickle.begin_list();
  pickle.end_list();
  pickle.recall(pair);
  pickle.end_list();
  ASSERT_TRUE(pickle.finish());
  EXPECT_EQ(python("(value[:14], value[314:])"),
            "([0, 2147483647, 2147483648, 9223372036854775808, 18446744073709551615, -1, -9223372036854775808, 9223372036854775807, True, "
            "False, 'grün', 'grün', '', (1, 2)], ['text 299', {}, [], (1, 2)])");
  EXPECT_EQ(python("value[14:314] == [f'text {i}' for i in range(300)]"), "True");
}

TEST_F(SnapshotFileTest, WhatIsNotFinishedIsNotThere) {
  {
    PickleWriter pickle(path());
    pickle.text("something");
  }
  EXPECT_THAT(left_over(), IsEmpty());
}

TEST_F(SnapshotFileTest, WhatCannotBeWrittenIsAnErrorAndLeavesNothing) {
  for (const std::string& place : {folder_ + "/no such folder/file", std::string("/dev/full/file")}) {
    const Result<> written = write_snapshots({}, place);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    EXPECT_THAT(written.error().message, HasSubstr("cannot write " + place));
  }
  EXPECT_THAT(left_over(), IsEmpty());
}

class OneFrame final : public StackRecorder {
 public:
  StackId record() noexcept override { return 7; }
  std::vector<Frame> frames(StackId stack) const override { return {{"model.py", "forward", stack}}; }
};

TEST_F(SnapshotFileTest, HasTheKeysOfPyTorch) {
  FakeDeviceMemory memory(200 * kMiB, true);
  ScriptedProgress progress;
  const auto allocator = DeviceCachingAllocator::create(memory, progress, parse_config("roundup_power2_divisions:4").value(), 1).value();
  allocator
      ->start_history(
          {.skipped_actions = bit_of(TraceAction::snapshot), .stack_use = StackUse::alloc, .stacks = std::make_shared<OneFrame>()})
      .value();
  const auto pool = allocator->create_pool({.is_for_graphs = true});
  void* const block = allocator->allocate(1'000, progress.stream(9), *pool).value();
  EXPECT_FALSE(allocator->allocate(300 * kMiB, progress.stream(9)));
  ASSERT_TRUE(allocator->write_snapshot(path()));

  EXPECT_EQ(python("sorted(value)"), "['allocator_settings', 'device_traces', 'segments']");
  EXPECT_EQ(python("value['allocator_settings']"), "{'PYTORCH_ALLOC_CONF': 'roundup_power2_divisions:4', 'expandable_segments': True}");
  const std::string address = std::to_string(reinterpret_cast<std::uintptr_t>(block)), graph = std::to_string(pool->id().graph);
  const std::string frames = "[{'filename': 'model.py', 'line': 7, 'name': 'forward'}]";
  EXPECT_EQ(
      python("value['segments']"),
      "[{'device': 1, 'address': " + address +
          ", 'total_size': 2097152, 'allocated_size': 1024, 'active_size': 1024, 'requested_size': 1000, 'stream': 9, 'segment_type': "
          "'small', 'segment_pool_id': (" +
          graph + ", 0), 'is_expandable': True, 'frames': [], 'blocks': [{'address': " + address +
          ", 'size': 1024, 'requested_size': 1000, 'state': 'active_allocated', 'frames': " + frames +
          "}, {'address': " + std::to_string(reinterpret_cast<std::uintptr_t>(block) + 1'024) +
          ", 'size': 2096128, 'requested_size': 0, 'state': 'inactive', 'frames': []}]}]");
  EXPECT_EQ(python("[[(e['action'], e['size'], e.get('addr'), e.get('device_free'), e['stream'], e['mempool_id'], e.get('frames')) "
                   "for e in trace] for trace in value['device_traces']]"),
            "[[], [('segment_map', 2097152, " + address + ", None, 9, (" + graph + ", 0), None), ('alloc', 1000, " + address +
                ", None, 9, (" + graph + ", 0), " + frames + "), ('oom', 314572800, None, 207618048, 9, (0, 0), " + frames + ")]]");
  EXPECT_EQ(python("all(abs(e['time_us'] / 1e6 - __import__('time').time()) < 60 for e in value['device_traces'][1])"), "True");
}

TEST_F(SnapshotFileTest, SeveralAllocatorsHaveTheirDevicesAndOneHistoryByTimeForEach) {
  FakeDeviceMemory first_memory(200 * kMiB, true), second_memory(200 * kMiB, true), other_memory(200 * kMiB, true);
  ScriptedProgress progress;
  const auto first = DeviceCachingAllocator::create(first_memory, progress, {}, 0).value();
  const auto second = DeviceCachingAllocator::create(second_memory, progress, {}, 0).value();
  const auto other = DeviceCachingAllocator::create(other_memory, progress, {}, 2).value();
  const HistoryOptions only_blocks = {.skipped_actions = ~bit_of(TraceAction::alloc)};
  for (const auto* allocator : {&first, &second, &other}) (*allocator)->start_history(only_blocks).value();
  static_cast<void>(first->allocate(100, progress.stream(1)).value());
  static_cast<void>(second->allocate(200, progress.stream(1)).value());
  static_cast<void>(first->allocate(300, progress.stream(1)).value());
  static_cast<void>(other->allocate(400, progress.stream(1)).value());
  const DeviceCachingAllocator* const all[] = {first.get(), second.get(), other.get()};
  ASSERT_TRUE(DeviceCachingAllocator::write_snapshots(all, path()));
  EXPECT_EQ(python("[s['device'] for s in value['segments']]"), "[0, 0, 2]");
  EXPECT_EQ(python("[[e['size'] for e in trace] for trace in value['device_traces']]"), "[[100, 200, 300], [], [400]]");
  ASSERT_TRUE(DeviceCachingAllocator::write_snapshots({}, path()));
  EXPECT_EQ(python("(value['segments'], value['device_traces'])"), "([], [[]])") << "no memory is an answer as well";
}

TEST_F(SnapshotFileTest, ABlockThatWaitsForAStreamIsPendingByTheNameThatToolsKnow) {
  FakeDeviceMemory memory(200 * kMiB, true);
  ScriptedProgress progress;
  const auto allocator = DeviceCachingAllocator::create(memory, progress).value();
  void* const block = allocator->allocate(2 * kMiB, progress.stream(1)).value();
  EXPECT_TRUE(allocator->record_use(block, progress.stream(2)));
  EXPECT_TRUE(allocator->free(block));
  ASSERT_TRUE(allocator->write_snapshot(path()));
  EXPECT_EQ(python("[(s['active_size'], s['allocated_size'], [b['state'] for b in s['blocks']]) for s in value['segments']]"),
            "[(2097152, 0, ['active_pending_free'])]");
}

TEST_F(SnapshotFileTest, IsWrittenAtTheFirstOutOfMemoryAlone) {
  FakeDeviceMemory memory(200 * kMiB, true);
  ScriptedProgress progress;
  const auto allocator = DeviceCachingAllocator::create(memory, progress).value();
  allocator->write_snapshot_at_out_of_memory(path());
  void* const block = allocator->allocate(100 * kMiB, progress.stream(1)).value();
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_FALSE(allocator->allocate(150 * kMiB, progress.stream(1)));
  EXPECT_EQ(python("sum(s['allocated_size'] for s in value['segments'])"), std::to_string(100 * kMiB));
  EXPECT_TRUE(allocator->free(block));
  EXPECT_FALSE(allocator->allocate(250 * kMiB, progress.stream(1)));
  EXPECT_EQ(python("sum(s['allocated_size'] for s in value['segments'])"), std::to_string(100 * kMiB)) << "the first one is kept";
}

}  // namespace
}  // namespace xpu::memory
