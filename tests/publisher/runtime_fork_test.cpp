#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>

#include "publisher/runtime_support.hpp"

namespace xpu::publisher_tests {
namespace {

/// What a child of a process that uses the runtime sees; everything must fail at once, and nobody must be told.
int use_everything(const Stream& stream, const Kernel& kernel, std::optional<Buffer>& buffer, std::optional<Event>& event) {
  std::uint32_t number = 0;
  int accepted = 0;
  const auto count = [&](const auto& result) { accepted += result ? 1 : 0; };
  count(stream.launch(kernel, items(1), &number));
  count(stream.fill(&number, 1u, 1));
  count(stream.copy(&number, &number + 1, 0));
  count(stream.run({}, [] {}));
  count(stream.run_blocking({}, [] {}));
  count(stream.query());
  count(stream.synchronize());
  count(event->record(stream));
  count(event->wait(stream));
  count(event->synchronize());
  count(event->query());
  count(Buffer::allocate(64));
  count(Stream::from_pool());
  count(Kernel::registered("tiny"));
  count(synchronize());
  buffer.reset();
  event.reset();
  return accepted;
}

TEST_F(RuntimeTest, AForkedChildPublishesNothing) {
  const Stream stream = fresh_stream();
  const Kernel kernel = tiny_kernel();
  std::optional<Buffer> buffer = Buffer::allocate(64).value();
  std::optional<Event> event(std::in_place);
  event->record(stream).value();
  stream.launch(kernel, items(1), &number_).value();
  stream.synchronize().value();
  finished();

  const auto told = [&] {
    return std::array<std::size_t, 7>{subscriber_.operations().size(), subscriber_.calls().size(),         subscriber_.calls_begun().size(),
                                      subscriber_.waits().size(),      subscriber_.memory_events().size(), subscriber_.readings().size(),
                                      subscriber_.object_events()};
  };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a child that hangs is killed
    const auto before = told();
    const int accepted = use_everything(stream, kernel, buffer, event);
    probe::republish_all();
    _exit(accepted != 0 ? 10 + accepted : before == told() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: something was published; more than 10: as many calls more were accepted";

  stream.launch(kernel, items(1), &number_).value();
  stream.synchronize().value();
  EXPECT_EQ(finished().back().submission->queue_sequence, 2u) << "and the parent goes on";
}

}  // namespace
}  // namespace xpu::publisher_tests
