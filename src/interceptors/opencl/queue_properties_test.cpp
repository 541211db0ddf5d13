#include "interceptors/opencl/queue_properties.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace xpu::interceptors::opencl {
namespace {

using List = std::vector<cl_queue_properties>;

List edited(const QueueProperties& properties) {
  List list;
  std::size_t index = 0;
  for (; properties.edited_list[index] != 0; index += 2) {
    list.push_back(properties.edited_list[index]);
    list.push_back(properties.edited_list[index + 1]);
  }
  list.push_back(0);
  return list;
}

List edited(const List& list) { return edited(edit_queue_properties(list.data())); }

TEST(QueuePropertiesTest, AddsProfilingWhereThereIsNoList) {
  const QueueProperties properties = edit_queue_properties(nullptr);
  EXPECT_TRUE(properties.is_edited);
  EXPECT_EQ(properties.program_entries, 0u);
  EXPECT_EQ(edited(properties), (List{CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}));
}

TEST(QueuePropertiesTest, AddsProfilingToAnEmptyListAndRemembersThatThereWasOne) {
  const List list{0};
  const QueueProperties properties = edit_queue_properties(list.data());
  EXPECT_EQ(properties.program_entries, 1u);
  EXPECT_EQ(edited(properties), (List{CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}));
}

TEST(QueuePropertiesTest, EditsInPlaceBecauseDriversRefuseASecondKey) {
  EXPECT_EQ(edited(List{CL_QUEUE_PROPERTIES, 0, 0}), (List{CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}));
  EXPECT_EQ(edited(List{CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0}),
            (List{CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE, 0}));
}

TEST(QueuePropertiesTest, KeepsOtherKeysAndTheirOrder) {
  const List priority{CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_HIGH_KHR, CL_QUEUE_PROPERTIES, 0, CL_QUEUE_THROTTLE_KHR, 1, 0};
  EXPECT_EQ(edited(priority), (List{CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_HIGH_KHR, CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
                                    CL_QUEUE_THROTTLE_KHR, 1, 0}));
}

TEST(QueuePropertiesTest, DoesNotTakeAValueForAKey) {
  const List value_like_key{CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PROPERTIES, 0};
  EXPECT_EQ(edited(value_like_key), (List{CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PROPERTIES, CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}));
}

TEST(QueuePropertiesTest, LeavesAQueueAloneThatProfilesAlready) {
  const List list{CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  const QueueProperties properties = edit_queue_properties(list.data());
  EXPECT_FALSE(properties.is_edited);
  EXPECT_EQ(properties.program_properties, cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE});
}

TEST(QueuePropertiesTest, LeavesAQueueOnTheDeviceAlone) {
  const List list{CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_SIZE, 4096, 0};
  EXPECT_FALSE(edit_queue_properties(list.data()).is_edited);
}

TEST(QueuePropertiesTest, KeepsTheListOfTheProgramExactly) {
  const List list{CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR, CL_QUEUE_PROPERTIES, 0, 0};
  const QueueProperties properties = edit_queue_properties(list.data());
  EXPECT_EQ(List(properties.program_list, properties.program_list + properties.program_entries), list);
}

TEST(QueuePropertiesTest, EditsTheLongestListThatFitsAndLeavesLongerOnesAlone) {
  List list;
  while (list.size() + 2 < QueueProperties::kMaxEntries) {
    list.push_back(CL_QUEUE_PRIORITY_KHR);
    list.push_back(1);
  }
  list.push_back(0);
  EXPECT_TRUE(edit_queue_properties(list.data()).is_edited);
  EXPECT_EQ(edited(list).size(), list.size() + 2);
  list.insert(list.begin(), {CL_QUEUE_PRIORITY_KHR, 1, CL_QUEUE_PRIORITY_KHR, 1});
  EXPECT_FALSE(edit_queue_properties(list.data()).is_edited);
}

}  // namespace
}  // namespace xpu::interceptors::opencl
