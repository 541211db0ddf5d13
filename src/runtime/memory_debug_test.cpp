#include "runtime/memory_debug.hpp"

#include <gtest/gtest.h>

namespace xpu::runtime {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_memory_debug(text);
  return parsed ? "" : to_string(parsed.error());
}

TEST(MemoryDebugTest, NothingIsOnWhereNothingIsSaid) {
  const MemoryDebug debug = parse_memory_debug("  ").value();
  EXPECT_EQ(debug.out_of_memory_snapshot, "");
  EXPECT_FALSE(debug.lists_live_blocks || debug.checks || debug.guards);
}

TEST(MemoryDebugTest, EachKeySetsWhatItSays) {
  const MemoryDebug debug = parse_memory_debug(" oom_snapshot: /a b/c:d.pickle ,live_blocks:True,checks:False, guards : True,").value();
  EXPECT_EQ(debug.out_of_memory_snapshot, "/a b/c:d.pickle") << "only the first colon separates";
  EXPECT_TRUE(debug.lists_live_blocks);
  EXPECT_FALSE(debug.checks);
  EXPECT_TRUE(debug.guards);
}

TEST(MemoryDebugTest, MistakesAreNamedWithWhatIsAllowed) {
  EXPECT_EQ(error_of("guard:True"), "invalid_argument: there is no key 'guard', there are oom_snapshot, live_blocks, checks and guards");
  EXPECT_EQ(error_of("checks:true"), "invalid_argument: checks is True or False, not 'true'");
  EXPECT_EQ(error_of("live_blocks"), "invalid_argument: live_blocks is True or False, not ''");
  EXPECT_EQ(error_of("oom_snapshot:"), "invalid_argument: oom_snapshot needs the path of a file");
  EXPECT_EQ(error_of(",checks:True"), "invalid_argument: there is no key '', there are oom_snapshot, live_blocks, checks and guards");
}

}  // namespace
}  // namespace xpu::runtime
