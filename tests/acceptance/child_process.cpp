#include "tests/acceptance/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <ostream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace xpu::acceptance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kModeFlag = "--child-mode";
constexpr const char* kOwnProcessFlag = "--own-process";
/// As CTest and automake understand it.
constexpr int kSkippedExitCode = 77;
/// Of one test of this program; a child gets its limit from its parent.
constexpr unsigned kTestLimitSeconds = 100;

bool g_is_own_process = false;

std::map<std::string, int (*)(), std::less<>>& modes() {
  static std::map<std::string, int (*)(), std::less<>> all;
  return all;
}

std::vector<std::string> environment_with(const Variables& more) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool is_replaced = false;
    for (const auto& [name, value] : more) is_replaced = is_replaced || text.starts_with(name + "=");
    if (!is_replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : more) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe for a child process");
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close(read_end);
    close_write_end();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write_end() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

/// Reads until both are closed by everybody who could write; false at the limit.
bool read_both(const Pipe& output, const Pipe& complaints, Ended& ended, Clock::time_point limit) {
  std::array<pollfd, 2> ends{{{output.read_end, POLLIN, 0}, {complaints.read_end, POLLIN, 0}}};
  std::array<std::string*, 2> texts{&ended.output, &ended.complaints};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
    if (left <= 0) return false;
    if (poll(ends.data(), ends.size(), static_cast<int>(left)) < 0 && errno != EINTR) return false;
    for (std::size_t index = 0; index < ends.size(); ++index) {
      if (ends[index].fd < 0 || ends[index].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t count = read(ends[index].fd, buffer.data(), buffer.size());
      if (count > 0) {
        texts[index]->append(buffer.data(), static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        ends[index].fd = -1;
      }
    }
  }
  return true;
}

void store_status(Ended& ended, int status) {
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
}

/// Waits for the process, at the limit kills `victim` (a process, or a group when negative).
void wait_until(int process_id, int victim, Clock::time_point limit, Ended& ended) {
  int status = 0;
  while (true) {
    const int done = waitpid(process_id, &status, WNOHANG);
    if (done == process_id || (done < 0 && errno != EINTR)) break;
    if (Clock::now() > limit && !ended.was_killed_at_limit) {
      ended.was_killed_at_limit = true;
      kill(victim, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  store_status(ended, status);
}

Ended run_self(const std::vector<std::string>& arguments, const Variables& environment, int limit_s) {
  const auto begin = Clock::now();
  const auto limit = begin + std::chrono::seconds(limit_s);
  Pipe output, complaints;
  std::vector<std::string> texts{"acceptance"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment_with(environment);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, complaints.write_end, 2);
  // Whatever the test was started with: the child has its three and no others.
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  int process_id = 0;
  const int failed =
      posix_spawn(&process_id, "/proc/self/exe", &actions, &attributes, pointers_to(texts).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw std::runtime_error(std::string("the program cannot run itself: ") + std::strerror(failed));

  Ended ended;
  output.close_write_end();
  complaints.close_write_end();
  ended.was_killed_at_limit = !read_both(output, complaints, ended, limit);
  if (ended.was_killed_at_limit) kill(-process_id, SIGKILL);
  wait_until(process_id, -process_id, limit, ended);
  ended.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return ended;
}

/// Says which test takes too long, and ends the program.
class TestLimit final : public ::testing::EmptyTestEventListener {
 public:
  TestLimit() {
    struct sigaction action{};
    action.sa_handler = [](int) {
      constexpr std::string_view kBefore = "\nthis test hangs: ";
      static_cast<void>(!write(STDERR_FILENO, kBefore.data(), kBefore.size()));
      static_cast<void>(!write(STDERR_FILENO, name_, std::strlen(name_)));
      static_cast<void>(!write(STDERR_FILENO, "\n", 1));
      std::abort();
    };
    sigaction(SIGALRM, &action, nullptr);
  }
  void OnTestStart(const ::testing::TestInfo& info) override {
    std::snprintf(name_, sizeof name_, "%s.%s", info.test_suite_name(), info.name());
    alarm(kTestLimitSeconds);
  }
  void OnTestEnd(const ::testing::TestInfo&) override { alarm(0); }

 private:
  static inline char name_[256] = "";
};

/// Why the one test of this process was skipped; empty when it was not.
std::string skip_reason(const ::testing::UnitTest& tests) {
  for (int suite = 0; suite < tests.total_test_suite_count(); ++suite) {
    for (int test = 0; test < tests.GetTestSuite(suite)->total_test_count(); ++test) {
      const ::testing::TestResult& result = *tests.GetTestSuite(suite)->GetTestInfo(test)->result();
      for (int part = 0; part < result.total_part_count(); ++part) {
        if (result.GetTestPartResult(part).skipped()) return result.GetTestPartResult(part).message();
      }
    }
  }
  return "";
}

int run_tests() {
  ::testing::UnitTest::GetInstance()->listeners().Append(new TestLimit);
  const int failed = RUN_ALL_TESTS();
  const ::testing::UnitTest& tests = *::testing::UnitTest::GetInstance();
  if (failed != 0 || !g_is_own_process) return failed;
  if (tests.test_to_run_count() != 1) return 1;
  const std::string reason = skip_reason(tests);
  std::cerr << reason;
  return reason.empty() ? 0 : kSkippedExitCode;
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Ended& ended) {
  stream << "exit code " << ended.exit_code << ", signal " << ended.signal << ", after " << ended.seconds << " s";
  if (ended.was_killed_at_limit) stream << ", killed at its limit";
  return stream << "\nstandard output: " << ended.output << "\nstandard error: " << ended.complaints;
}

Mode::Mode(const char* name, int (*run)()) { modes()[name] = run; }

Ended run_mode(std::string_view mode, const Variables& environment, int limit_s) {
  return run_self({kModeFlag, std::string(mode)}, environment, limit_s);
}

bool is_own_process() { return g_is_own_process; }

void run_in_own_process(const char* full_name) {
  const Ended ended = run_self({kOwnProcessFlag, std::string("--gtest_filter=") + full_name}, {}, kChildLimitSeconds);
  if (ended.exit_code == kSkippedExitCode) GTEST_SKIP() << ended.complaints;
  EXPECT_EQ(ended.exit_code, 0) << ended;
}

namespace {
bool g_is_forked_child = false;
}

int fork_child() {
  std::cout.flush();
  std::fflush(nullptr);
  const int process_id = fork();
  if (process_id < 0) throw std::runtime_error("no process could be forked");
  if (process_id == 0) {
    alarm(kChildLimitSeconds);
    g_is_forked_child = true;
  }
  return process_id;
}

Ended wait_for_child(int process_id, int limit_s) {
  Ended ended;
  const auto begin = Clock::now();
  wait_until(process_id, process_id, begin + std::chrono::seconds(limit_s), ended);
  ended.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return ended;
}

int run_program(int argument_count, char** arguments) {
  if (argument_count == 3 && std::strcmp(arguments[1], kModeFlag) == 0) {
    const auto found = modes().find(arguments[2]);
    if (found == modes().end()) {
      std::cerr << "there is no mode " << arguments[2] << "\n";
      return 2;
    }
    return found->second();
  }
  ::testing::InitGoogleTest(&argument_count, arguments);
  g_is_own_process = argument_count > 1 && std::strcmp(arguments[1], kOwnProcessFlag) == 0;
  return run_tests();
}

}  // namespace xpu::acceptance

/// Asked by the leak checker of a sanitized build. The stacks of the parent's other threads are not in a forked child, so what they held
/// seems lost.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return xpu::acceptance::g_is_forked_child ? 1 : 0; }
