#include "xpu/trace/view/api_ids.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "xpu/api/opencl.hpp"
#include "xpu/trace/view/records.hpp"

namespace xpu::trace::view {
namespace {

std::string read_text(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whoever appends a function to the list appends it here as well; a line that is there is never changed.
TEST(ApiIdsTest, PublishedIdsNeverChange) {
  std::istringstream golden(read_text(GOLDEN_API_IDS));
  std::string group_name, name;
  std::uint32_t id = 0;
  std::set<std::pair<ApiGroup, std::uint32_t>> pinned;
  while (golden >> group_name >> id >> name) {
    const ApiGroup group = group_name == "opencl" ? ApiGroup::opencl : ApiGroup::xpu;
    const char* found = nullptr;
    ASSERT_EQ(api_name(group, id, &found), ResultCode::success) << name;
    EXPECT_EQ(found, name);
    const ApiIdentity api = identify_api(name);
    EXPECT_EQ(api.group, group);
    EXPECT_EQ(api.id, id);
    pinned.emplace(group, id);
  }
  EXPECT_EQ(pinned.size(), api_functions(ApiGroup::opencl).size() + api_functions(ApiGroup::xpu).size());
  EXPECT_GE(pinned.size(), 197u + 16u);
}

TEST(ApiIdsTest, EveryEntryPointOfOpenclHasAnIdAndTheClassOfItsTreatment) {
  for (const auto entries : {api::opencl::entry_points(), api::opencl::extension_entry_points()}) {
    for (const api::opencl::EntryPoint& entry : entries) {
      const ApiIdentity api = identify_api(entry.name);
      EXPECT_EQ(api.group, ApiGroup::opencl) << entry.name;
      EXPECT_NE(api.id, kUnknownApiId) << entry.name;
      EXPECT_EQ(api.kind, ViewKind::driver_api);
      const ApiClass expected = entry.treatment == api::opencl::Treatment::command ? ApiClass::gpu_operation_core
                                : entry.treatment == api::opencl::Treatment::wait  ? ApiClass::host_operation_synchronization
                                                                                   : ApiClass::reserved;
      EXPECT_EQ(api.api_class, expected) << entry.name;
    }
  }
}

TEST(ApiIdsTest, EveryCallThatTheRuntimePublishesHasAnId) {
  const std::string source = read_text(RUNTIME_API_NAMES);
  const std::regex interned(R"re(probe::intern\("([^"]+)"\))re");
  std::size_t count = 0;
  for (std::sregex_iterator match(source.begin(), source.end(), interned), end; match != end; ++match, ++count) {
    const ApiIdentity api = identify_api((*match)[1].str());
    EXPECT_EQ(api.group, ApiGroup::xpu) << (*match)[1];
    EXPECT_NE(api.id, kUnknownApiId) << (*match)[1];
    EXPECT_EQ(api.kind, ViewKind::runtime_api);
  }
  EXPECT_EQ(count, api_functions(ApiGroup::xpu).size());
}

TEST(ApiIdsTest, NamesWithoutAnIdKeepTheirGroup) {
  const auto group_of = [](std::string_view name) {
    EXPECT_EQ(identify_api(name).id, kUnknownApiId) << name;
    return identify_api(name).group;
  };
  EXPECT_EQ(group_of("clEnqueueSomethingNew"), ApiGroup::opencl);
  EXPECT_EQ(group_of("zeCommandListAppendLaunchKernel"), ApiGroup::level_zero);
  EXPECT_EQ(group_of("zesDeviceGet"), ApiGroup::level_zero);
  EXPECT_EQ(group_of("urEnqueueKernelLaunch"), ApiGroup::sycl);
  EXPECT_EQ(group_of("clock"), ApiGroup::xpu);
  EXPECT_EQ(group_of(""), ApiGroup::xpu);
  EXPECT_EQ(identify_api("zeInit").kind, ViewKind::driver_api);
  EXPECT_EQ(identify_api("urInit").kind, ViewKind::runtime_api);
}

TEST(ApiIdsTest, NamesOfNoIdAreRefused) {
  const char* const before = "before";
  const char* name = before;
  EXPECT_EQ(api_name(ApiGroup::opencl, 0, &name), ResultCode::bad_argument);
  EXPECT_EQ(api_name(ApiGroup::opencl, 198, &name), ResultCode::bad_argument);
  EXPECT_EQ(api_name(ApiGroup::opencl, kUnknownApiId, &name), ResultCode::bad_argument);
  EXPECT_EQ(api_name(ApiGroup::reserved, 1, &name), ResultCode::bad_argument);
  EXPECT_EQ(api_name(ApiGroup::all, 1, &name), ResultCode::bad_argument);
  EXPECT_EQ(api_name(ApiGroup::level_zero, 1, &name), ResultCode::not_implemented);
  EXPECT_EQ(api_name(ApiGroup::sycl, 17, &name), ResultCode::not_implemented);
  EXPECT_EQ(api_name(ApiGroup::opencl, 1, nullptr), ResultCode::bad_argument);
  EXPECT_EQ(name, before);
  EXPECT_EQ(api_name(ApiGroup::hybrid_sycl_opencl, 1, &name), ResultCode::success);
  EXPECT_STREQ(name, "clGetPlatformIDs");
}

}  // namespace
}  // namespace xpu::trace::view
