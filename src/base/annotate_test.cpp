#include "xpu/annotate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/probe.hpp"

extern "C" void annotate_everything_from_c(void* queue);

namespace xpu {
namespace {

struct Seen {
  probe::AnnotationType type;
  std::uint64_t range;
  std::string text;
  double value;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> g_seen;
std::uint64_t g_last_time_ns = 0;

void note(const probe::Annotation& annotation) {
  g_seen.push_back({annotation.type, annotation.range, std::string(annotation.text), annotation.value});
  EXPECT_GE(annotation.time_ns, g_last_time_ns);
  g_last_time_ns = annotation.time_ns;
}

struct Communicated {
  std::string name;
  std::uint64_t communicator, send_bytes, receive_bytes;
  bool operator==(const Communicated&) const = default;
};
std::vector<Communicated> g_communicated;

void note_communication(const probe::Communication& communication) {
  EXPECT_LE(communication.begin_ns, communication.end_ns);
  EXPECT_NE(communication.begin_ns, 0u);
  g_communicated.push_back(
      {std::string(communication.name), communication.communicator, communication.send_bytes, communication.receive_bytes});
}

constinit probe::Subscriber g_table = {.abi = probe::kAbi, .wanted = {0}, .annotate = note, .communicate = note_communication};

class AnnotateTest : public testing::Test {
 protected:
  void SetUp() override {
    g_seen.clear();
    g_communicated.clear();
    g_table.wanted = probe::kAnnotations;
    ASSERT_TRUE(probe::subscribe(&g_table));
    // The weak reference is null in this program until something pulls the definition in, as it is where libxpu.so is not linked.
    ASSERT_NE(xpu_annotate_publish, nullptr);
  }
  void TearDown() override { probe::unsubscribe(); }
};

TEST_F(AnnotateTest, EveryFunctionReachesTheSubscriberFromC) {
  int queue = 0;
  annotate_everything_from_c(&queue);
  using probe::AnnotationType;
  const std::vector<Seen> expected = {
      {AnnotationType::name_thread, 0, "worker", 0}, {AnnotationType::name_queue, reinterpret_cast<std::uintptr_t>(&queue), "copies", 0},
      {AnnotationType::begin, 0, "load", 0},         {AnnotationType::mark, 0, "half", 0},
      {AnnotationType::counter, 0, "bytes", 1.5},    {AnnotationType::end, 0, "", 0},
  };
  EXPECT_EQ(g_seen, expected);
  EXPECT_EQ(g_communicated, (std::vector<Communicated>{{"allreduce", 7, 4'096, 8'192}}));
}

TEST_F(AnnotateTest, CommunicationsNestAndOnlyTheDeepestAreNotTold) {
  for (std::uint64_t depth = 1; depth <= 6; ++depth) xpu_annotate_begin_communication(nullptr, depth, 10 * depth);
  for (std::uint64_t depth = 6; depth >= 1; --depth) xpu_annotate_end_communication(100 * depth);
  EXPECT_EQ(g_communicated, (std::vector<Communicated>{{"", 3, 30, 300}, {"", 2, 20, 200}, {"", 1, 10, 100}}));
}

TEST_F(AnnotateTest, ACommunicationOfWhichNobodyKnowsTheBeginningOrTheEndIsNotTold) {
  xpu_annotate_end_communication(1);  // of none
  xpu_annotate_begin_communication("wanted", 1, 0);
  g_table.wanted = probe::kOperations;
  xpu_annotate_begin_communication("unwanted", 2, 0);
  g_table.wanted = probe::kAnnotations;
  xpu_annotate_end_communication(0);
  EXPECT_TRUE(g_communicated.empty()) << "this was the unwanted one's end";
  xpu_annotate_end_communication(0);
  EXPECT_EQ(g_communicated, (std::vector<Communicated>{{"wanted", 1, 0, 0}}));
  xpu_annotate_begin_communication("ends unseen", 3, 0);
  g_table.wanted = probe::kOperations;
  xpu_annotate_end_communication(0);
  g_table.wanted = probe::kAnnotations;
  xpu_annotate_end_communication(0);
  EXPECT_EQ(g_communicated.size(), 1u);
}

TEST_F(AnnotateTest, ANullTextIsAnEmptyOne) {
  xpu_annotate_mark(nullptr);
  ASSERT_EQ(g_seen.size(), 1u);
  EXPECT_EQ(g_seen[0].text, "");
}

TEST_F(AnnotateTest, IsSilentWhenNobodyWantsAnnotations) {
  g_table.wanted = probe::kOperations;
  xpu_annotate_mark("unseen");
  EXPECT_TRUE(g_seen.empty());
}

TEST_F(AnnotateTest, AnUnknownTypeIsIgnored) {
  xpu_annotate_publish(8, 0, "from a newer header", 0);
  EXPECT_TRUE(g_seen.empty());
}

}  // namespace
}  // namespace xpu
