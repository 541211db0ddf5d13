#include "hal/command.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <thread>

namespace xpu::hal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

Result<CommandResult> shell(const std::string& script, milliseconds limit = seconds(60)) {
  return run_command({{"/bin/sh", "-c", script, "zero", "one two", "$HOME"}, {"PATH=/usr/bin:/bin", "COLOUR=blue"}}, limit);
}

TEST(Command, OutputIsBothStreamsAndTheStatusDecides) {
  const auto well = shell("echo out; echo err >&2");
  ASSERT_TRUE(well);
  EXPECT_TRUE(well->ended_well);
  EXPECT_EQ(well->output, "out\nerr\n");
  const auto badly = shell("echo complaint; exit 3");
  ASSERT_TRUE(badly);
  EXPECT_FALSE(badly->ended_well);
  EXPECT_EQ(badly->output, "complaint\n");
}

TEST(Command, ArgumentsAndEnvironmentArriveAsTheyAre) {
  const auto result = shell("printf '%s|' \"$@\"; printf %s \"$COLOUR\"");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "one two|$HOME|blue");
}

TEST(Command, InputIsEmpty) {
  const auto result = shell("wc -c");
  ASSERT_TRUE(result);
  EXPECT_THAT(result->output, HasSubstr("0"));
}

TEST(Command, ItIsKilledWithItsChildrenWhenItTakesTooLong) {
  // The child holds the pipe: only when it is gone as well does the output end.
  const auto result = shell("sleep 600 & sleep 600", milliseconds(200));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::timeout);
  EXPECT_EQ(result.error().message, "'/bin/sh' did not end within 200 ms and was killed");
}

TEST(Command, ItIsKilledEvenWhenItClosedItsOutput) {
  const auto result = shell("exec >&- 2>&-; sleep 600", milliseconds(200));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::timeout);
}

TEST(Command, AProgramThatIsNotThereIsNamed) {
  const auto result = run_command({{"/nowhere/compiler"}, {}}, seconds(60));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::unavailable);
  EXPECT_EQ(result.error().message, "cannot start '/nowhere/compiler': No such file or directory");
}

TEST(Command, EndlessOutputIsCutAndTheRestCounted) {
  const auto result = shell("head -c 1048586 /dev/zero");
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ended_well);
  EXPECT_THAT(result->output, HasSubstr("(10 more bytes)"));
  EXPECT_LT(result->output.size(), 1'048'576u + 100);
}

TEST(Command, AProgramThatIgnoresItsChildrenStillGetsTheOutput) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto result = shell("echo text");
  std::signal(SIGCHLD, before);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ended_well);
  EXPECT_EQ(result->output, "text\n");
}

TEST(FindProgram, LooksThroughThePathInItsOrder) {
  EXPECT_EQ(find_program("sh", "/nowhere:/bin:/usr/bin"), "/bin/sh");
  EXPECT_EQ(find_program("no_such_program", "/bin:/usr/bin"), "");
  EXPECT_EQ(find_program("", "/bin"), "");
  EXPECT_EQ(find_program("sh", ""), "");
}

TEST(FindProgram, APathIsTakenAsItIsAndAFolderIsNoProgram) {
  EXPECT_EQ(find_program("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(find_program("/bin", ""), "");
  EXPECT_EQ(find_program("/etc/passwd", ""), "");
}

TEST(FindProgram, RelativeFoldersOfThePathAreSkipped) { EXPECT_EQ(find_program("sh", "bin:.::/bin"), "/bin/sh"); }

}  // namespace
}  // namespace xpu::hal
