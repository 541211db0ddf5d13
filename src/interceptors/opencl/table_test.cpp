#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "interceptors/opencl/layer_state.hpp"
#include "interceptors/opencl/wrappers.hpp"
#include "xpu/api/opencl.hpp"

namespace xpu::interceptors::opencl {
namespace {

constexpr std::size_t kEntries = sizeof(cl_icd_dispatch) / sizeof(void*);

using Slots = std::vector<const void*>;

/// A table whose every slot has an address of its own, as tables below us have.
cl_icd_dispatch full_table() {
  Slots slots;
  for (std::size_t index = 0; index < kEntries; ++index) slots.push_back(reinterpret_cast<const void*>(0x1000 + index));
  cl_icd_dispatch table;
  std::memcpy(&table, slots.data(), sizeof table);
  return table;
}

Slots slots_of(const cl_icd_dispatch& table) {
  Slots slots(kEntries);
  std::memcpy(slots.data(), &table, sizeof table);
  return slots;
}

TEST(TableTest, WrapsExactlyWhatTheTableOfEntryPointsCallsWrapped) {
  const cl_icd_dispatch below = full_table();
  cl_icd_dispatch table;
  build_table(below, false, table);
  for (std::size_t index = 0; index < kEntries; ++index) {
    const auto& entry = api::opencl::entry_points()[index];
    const bool is_wrapped = slots_of(table)[index] != slots_of(below)[index];
    EXPECT_EQ(is_wrapped, entry.treatment != api::opencl::Treatment::call && entry.treatment != api::opencl::Treatment::passed)
        << entry.name;
  }
}

TEST(TableTest, WrapsEveryCallToo) {
  const cl_icd_dispatch below = full_table();
  cl_icd_dispatch table;
  build_table(below, true, table);
  for (std::size_t index = 0; index < kEntries; ++index) {
    const auto& entry = api::opencl::entry_points()[index];
    const bool is_wrapped = slots_of(table)[index] != slots_of(below)[index];
    EXPECT_EQ(is_wrapped, entry.treatment != api::opencl::Treatment::passed) << entry.name;
  }
}

TEST(TableTest, KeepsNullEntriesNull) {
  const cl_icd_dispatch below{};
  cl_icd_dispatch table = full_table();
  build_table(below, true, table);
  for (const void* slot : slots_of(table)) EXPECT_EQ(slot, nullptr);
}

}  // namespace
}  // namespace xpu::interceptors::opencl
