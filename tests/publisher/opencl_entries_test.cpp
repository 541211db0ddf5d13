#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "programs/entries/registry.hpp"
#include "publisher/scripted_subscriber.hpp"
#include "xpu/api/opencl.hpp"

/// One test per traced row of the table of entry points: the entry is called once, and the subscriber must have been told.
namespace xpu::publisher_tests {
namespace {

using api::opencl::EntryPoint;
using api::opencl::Treatment;
using opencl_programs::entries::EntryCall;
using opencl_programs::entries::find_call;
using opencl_programs::entries::Fixture;
using opencl_programs::entries::kUnsupported;

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class OpenClEntryTest : public testing::TestWithParam<EntryPoint> {};

TEST_P(OpenClEntryTest, IsTraced) {
  const EntryPoint& entry = GetParam();
  const EntryCall* call = find_call(entry.name);
  ASSERT_NE(call, nullptr) << "nobody wrote a call for " << entry.name;
  ScriptedSubscriber& subscriber = ScriptedSubscriber::get();
  subscriber.forget_events();
  const std::size_t object_events = subscriber.object_events();

  Fixture fixture;
  const cl_int code = call->call(fixture);
  if (code == kUnsupported) GTEST_SKIP() << "the null driver has no such feature";
  ASSERT_EQ(code, CL_SUCCESS);
  if (fixture.submissions() != 0) {
    ASSERT_EQ(clFinish(fixture.queue()), CL_SUCCESS);
  }
  ASSERT_TRUE(subscriber.wait_for_completions());

  std::vector<std::string> calls;
  for (const SeenCall& seen : subscriber.calls()) calls.push_back(seen.api);
  switch (entry.treatment) {
    case Treatment::command: {
      std::size_t timed = 0;
      for (const SeenOperation& operation : subscriber.operations()) {
        if (operation.api == entry.name && operation.completion && operation.completion->status == probe::CompletionStatus::ok) ++timed;
      }
      EXPECT_GE(timed, 1u);
      EXPECT_TRUE(contains(subscriber.calls_begun(), entry.name)) << "a hang in the driver must have a name";
      break;
    }
    case Treatment::wait: EXPECT_TRUE(contains(subscriber.waits(), entry.name)); break;
    case Treatment::object:
      EXPECT_TRUE(contains(calls, entry.name));
      if (entry.name.find("Device") != std::string_view::npos) break;  // the end of a sub-device has a test of its own
      EXPECT_GT(subscriber.object_events() + subscriber.memory_events().size(), object_events);
      break;
    case Treatment::answer: EXPECT_TRUE(contains(calls, entry.name)); break;
    case Treatment::call:
      EXPECT_TRUE(contains(calls, entry.name));
      EXPECT_TRUE(contains(subscriber.calls_begun(), entry.name));
      break;
    case Treatment::passed: FAIL() << "no test for rows that are passed through";
  }
  EXPECT_EQ(subscriber.operations().size(), fixture.submissions()) << "every accepted command once, and no other";
}

std::vector<EntryPoint> traced_core_entries() {
  std::vector<EntryPoint> result;
  for (const EntryPoint& entry : api::opencl::entry_points()) {
    if (entry.treatment != Treatment::passed && entry.since.find('.') != std::string_view::npos) result.push_back(entry);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Core, OpenClEntryTest, testing::ValuesIn(traced_core_entries()),
                         [](const testing::TestParamInfo<EntryPoint>& row) { return std::string(row.param.name); });

TEST(OpenClEntriesTest, BrokeNoRuleOfPublishers) {
  for (const std::string& problem : ScriptedSubscriber::get().problems()) ADD_FAILURE() << problem;
}

}  // namespace
}  // namespace xpu::publisher_tests
