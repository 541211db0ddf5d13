// Profiles that are asked for from outside: by a file, a signal, a socket.

#include "xpu/profiler/triggers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "profiler/test_support/test_publisher.hpp"

namespace xpu::profiler {
namespace {

using test_support::TestPublisher;
using testing::HasSubstr;
using testing::StartsWith;

class TriggersTest : public testing::Test {
 protected:
  TriggersTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "xpu_triggers_test_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    Profiler::Options options;
    options.folder = folder_;
    options.is_confined = true;
    profiler_ = std::make_unique<Profiler>(options);
  }
  ~TriggersTest() override {
    profiler_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<Triggers> start(TriggerOptions options) {
    options.period = std::chrono::milliseconds(5);
    Result<std::unique_ptr<Triggers>> started = Triggers::start(*profiler_, std::move(options), [this](const TriggerOutcome& outcome) {
      const std::lock_guard lock(mutex_);
      outcomes_.push_back(outcome);
      changed_.notify_all();
    });
    EXPECT_TRUE(started) << started.error().message;
    return started ? std::move(*started) : nullptr;
  }
  TriggerOutcome next_outcome() {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::seconds(20), [this] { return outcomes_.size() > seen_; });
    EXPECT_TRUE(came) << "nothing came of the request";
    return came ? outcomes_[seen_++] : TriggerOutcome{};
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + '/' + name) << text; }
  std::string read(const std::string& name) {
    std::ifstream file(folder_ + '/' + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string status() {
    for (int tries = 0; tries < 2'000; ++tries) {
      if (const std::string text = read("request.status"); !text.empty()) return text;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "";
  }
  /// The answer to a request, or what went wrong.
  std::string ask(const std::string& path, const std::string& text) {
    const int client = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    if (connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(client);
      return std::strerror(errno);
    }
    EXPECT_EQ(send(client, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    shutdown(client, SHUT_WR);
    std::string answer;
    char piece[512];
    for (ssize_t bytes; (bytes = recv(client, piece, sizeof piece, 0)) > 0;) answer.append(piece, static_cast<std::size_t>(bytes));
    close(client);
    return answer;
  }

  static constexpr const char* kShort = "ACTIVITIES_WARMUP_PERIOD_SECS=0\nACTIVITIES_DURATION_MSECS=20\n";
  std::string folder_;
  std::unique_ptr<Profiler> profiler_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TriggerOutcome> outcomes_;
  std::size_t seen_ = 0;
};

TEST_F(TriggersTest, AFileThatAppearsIsARequestAndItsStatusSaysWhatCameOfIt) {
  const auto triggers = start({.file = folder_ + "/request"});
  write("request", std::string(kShort) + "NO_SUCH_KEY=1\n");
  const TriggerOutcome outcome = next_outcome();
  EXPECT_EQ(outcome.source, "file");
  EXPECT_EQ(outcome.problem, "");
  ASSERT_EQ(outcome.warnings.size(), 1u);
  EXPECT_THAT(outcome.warnings[0], HasSubstr("NO_SUCH_KEY"));
  EXPECT_THAT(status(), StartsWith("planned\nwarning: "));
  TestPublisher::instance().run();
  const ProfileResult result = profiler_->wait();
  EXPECT_TRUE(result.is_written) << result.problem;
  EXPECT_THAT(result.path, StartsWith(folder_));
}

TEST_F(TriggersTest, AFileThatWasThereIsNoneAndAChangeOfItIsOne) {
  write("request", "not understood");
  const auto triggers = start({.file = folder_ + "/request"});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(outcomes_.empty());
  write("request", "still not understood");
  EXPECT_THAT(next_outcome().problem, HasSubstr("line 1"));
  EXPECT_THAT(status(), StartsWith("refused: "));
}

TEST_F(TriggersTest, ASignalIsARequestForWhatTheFileSays) {
  write("request", kShort);
  const auto triggers = start({.file = folder_ + "/request", .signal = SIGUSR2});
  kill(getpid(), SIGUSR2);
  const TriggerOutcome outcome = next_outcome();
  EXPECT_EQ(outcome.source, "signal");
  EXPECT_EQ(outcome.problem, "");
  EXPECT_TRUE(profiler_->wait().is_written);
}

TEST_F(TriggersTest, TheSignalIsPutBackAndIsNobodysWhoHasAHandler) {
  {
    const auto triggers = start({.signal = SIGUSR2});
  }
  struct sigaction now{};
  sigaction(SIGUSR2, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
  signal(SIGUSR2, [](int) {});
  const auto refused = Triggers::start(*profiler_, {.signal = SIGUSR2});
  signal(SIGUSR2, SIG_DFL);
  EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(refused.error().message, HasSubstr("has a handler already"));
  EXPECT_EQ(Triggers::start(*profiler_, {.signal = SIGKILL}).error().code, ErrorCode::invalid_argument);
}

TEST_F(TriggersTest, ASocketAnswersInOneLineAndIsForTheUserAlone) {
  const std::string path = folder_ + "/socket";
  {
    const auto triggers = start({.socket = path});
    struct stat place{};
    ASSERT_EQ(stat(path.c_str(), &place), 0);
    EXPECT_EQ(place.st_mode & 0777u, 0600u);
    EXPECT_EQ(ask(path, kShort), "planned\n");
    EXPECT_THAT(ask(path, "ACTIVITIES_LOG_FILE=/etc/passwd\n"), StartsWith("refused: "));
    EXPECT_THAT(ask(path, std::string(70'000, 'x')), HasSubstr("longer than 65536 bytes"));
    EXPECT_THAT(ask(path, "x"), StartsWith("refused: line 1"));
    EXPECT_TRUE(profiler_->wait().is_written);
    EXPECT_EQ(Triggers::start(*profiler_, {.socket = path}).error().code, ErrorCode::failed_precondition);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TriggersTest, AClientThatSaysNothingDoesNotStopTheOthers) {
  const std::string path = folder_ + "/socket";
  const auto triggers = start({.socket = path});
  const int silent = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(connect(silent, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(next_outcome().problem, HasSubstr("did not end in time"));
  EXPECT_EQ(ask(path, kShort), "planned\n");
  close(silent);
  EXPECT_TRUE(profiler_->wait().is_written);
}

TEST_F(TriggersTest, AForkedChildHasNoTriggers) {
  auto triggers = start({.signal = SIGUSR2, .socket = folder_ + "/socket"});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    raise(SIGUSR2);
    triggers.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(outcomes_.empty());
  EXPECT_EQ(ask(folder_ + "/socket", kShort), "planned\n");
  EXPECT_TRUE(profiler_->wait().is_written);
}

TEST_F(TriggersTest, WhatIsNotUnderstoodIsRefusedInASentence) {
  EXPECT_EQ(Triggers::start(*profiler_, {}).error().message, "there is no trigger: name a file, a signal or a socket");
  EXPECT_THAT(Triggers::start(*profiler_, {.socket = "/" + std::string(200, 's')}).error().message, HasSubstr("has at most 107 bytes"));
  EXPECT_EQ(Triggers::start(*profiler_, {.file = "f", .period = std::chrono::milliseconds(0)}).error().code, ErrorCode::invalid_argument);

  const Result<TriggerOptions> all = parse_triggers("file:/a/b,signal:SIGUSR1,socket:/c");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->file, "/a/b");
  EXPECT_EQ(all->signal, SIGUSR1);
  EXPECT_EQ(all->socket, "/c");
  EXPECT_EQ(parse_triggers("signal:12")->signal, 12);
  for (const char* wrong : {"file", "file:", "pipe:/x", "signal:NOPE", "signal:0", "signal:12x", "signal:999", "file:/a,file:/b"}) {
    const Result<TriggerOptions> refused = parse_triggers(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("allowed are file:PATH, signal:NAME and socket:PATH")) << wrong;
  }
}

}  // namespace
}  // namespace xpu::profiler
