#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "workload.hpp"

// Programs that end, or fork, with work in flight.

namespace xpu::runtime_programs {
namespace {

/// Never destroyed: work in flight refers to it.
Counts& counts() {
  static auto& instance = *new Counts;
  return instance;
}

/// COUNT rounds on each of two streams, behind a function that runs for as long as it is told, and that has begun when this returns. (On a
/// device that is simulated nothing begins before somebody waits.)
void begin_work(std::uint64_t rounds, unsigned milliseconds) {
  constexpr int kStreams = 2;
  static std::atomic<int> begun{0};
  for (int stream = 0; stream < kStreams; ++stream) {
    auto& worker = *new Worker(counts());
    const auto occupy = [milliseconds] {
      ++begun;
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    };
    worker.stream().run({.name = "occupies"}, occupy).value();
    ++counts().functions;
    for (std::uint64_t round = 0; round < rounds; ++round) worker.round();
  }
  const bool is_simulated = std::string_view(Device::get(0).value().driver()) == "sim";
  while (!is_simulated && begun < kStreams) std::this_thread::yield();
}

constexpr unsigned kShort = 50, kLong = 60'000;

int return_with_work(const Options& options) {
  begin_work(options.count, kShort);
  counts().print("returns");
  return 0;
}

int return_with_endless_work(const Options& options) {
  begin_work(options.count, kLong);
  counts().print("returns");
  return 0;
}

int exit_now(const Options& options) {
  begin_work(options.count, kLong);
  counts().print("exits");
  _exit(7);
}

int exit_quickly(const Options& options) {
  begin_work(options.count, kLong);
  counts().print("exits");
  std::quick_exit(7);
}

int abort_with_work(const Options& options) {
  begin_work(options.count, kLong);
  counts().print("aborts");
  std::abort();
}

int exit_from_thread(const Options& options) {
  std::thread([&] {
    begin_work(options.count, kShort);
    counts().print("exits");
    std::exit(7);
  }).join();
  return 0;
}

int exit_in_function(const Options& options) {
  Worker& worker = *new Worker(counts());
  for (std::uint64_t round = 0; round < options.count; ++round) worker.round();
  worker.finish();
  ++counts().functions;
  counts().print("exits");
  static std::atomic<bool> has_returned{false};
  static const std::thread::id caller = std::this_thread::get_id();
  const auto exits = [] {
    // Inline, it runs within the call that submits it. Elsewhere the submission is over first.
    while (!has_returned && std::this_thread::get_id() != caller) std::this_thread::yield();
    std::exit(7);
  };
  static_cast<void>(worker.stream().run({.name = "exits"}, exits));
  has_returned = true;
  while (true) pause();  // a second exit() beside the first one is nobody's business here
}

int use_in_destructor(const Options& options) {
  struct UsesLate {
    std::uint64_t rounds;
    Stream stream = Stream::from_pool().value();
    ~UsesLate() {
      // Registered after the runtime's own handler, so it still works here; what follows from it may not.
      if (stream.run({.name = "late"}, [] {})) ++counts().functions;
      counts().print("destructor");
    }
  };
  Device::get(0).value().native().value();
  static UsesLate late{options.count};
  Worker worker(counts());
  for (std::uint64_t round = 0; round < options.count; ++round) worker.round();
  worker.finish();
  return 0;
}

/// 0 when the child was refused everything at once.
int try_in_child(const Worker& parents) {
  alarm(20);
  const bool was_taken = parents.stream().run({}, [] {}) || parents.stream().synchronize() || Stream::from_pool() || Buffer::allocate(64);
  std::printf("child %s\n", was_taken ? "was served" : "was refused");
  std::fflush(stdout);
  return was_taken ? 1 : 0;
}

int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 5;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int fork_after_use(const Options& options) {
  Worker worker(counts());
  for (std::uint64_t round = 0; round < options.count; ++round) worker.round();
  const pid_t child = fork();
  if (child == 0) std::exit(try_in_child(worker));
  const int code = wait_for(child);
  for (std::uint64_t round = 0; round < options.count; ++round) worker.round();
  worker.finish();
  counts().print("parent");
  return code;
}

int fork_before_use(const Options& options) {
  if (Device::count().value() == 0) return 4;
  const pid_t child = fork();
  {
    Worker worker(counts());
    for (std::uint64_t round = 0; round < options.count; ++round) worker.round();
    worker.finish();
  }
  const int code = child == 0 ? 0 : wait_for(child);
  counts().print(child == 0 ? "child" : "parent");
  return code;
}

/// Two threads, until somebody kills it. After every 1000 accepted operations one line "submitted N".
int forever(const Options&) {
  const auto work = [] {
    Worker worker(counts());
    for (std::uint64_t round = 1;; ++round) {
      worker.round();
      if (round % 100 == 0) worker.finish();
      if (round % 170 != 0) continue;
      char line[48];
      const int length = std::snprintf(line, sizeof line, "submitted %llu\n", static_cast<unsigned long long>(counts().total()));
      if (write(STDOUT_FILENO, line, static_cast<std::size_t>(length)) != length) _exit(4);  // nobody reads any more
    }
  };
  std::thread other(work);
  work();
  return 0;
}

}  // namespace

const Mode kEndModes[] = {
    {"return", "from main with work in flight that ends soon", return_with_work},
    {"return_endless", "from main with work in flight that does not end", return_with_endless_work},
    {"_exit", "with work in flight", exit_now},
    {"quick_exit", "with work in flight", exit_quickly},
    {"abort", "with work in flight", abort_with_work},
    {"exit_from_thread", "exit() from a thread that is not the first", exit_from_thread},
    {"exit_in_function", "exit() from within a function of a stream", exit_in_function},
    {"destructor", "a static object uses a stream when it is destroyed", use_in_destructor},
    {"fork_after_use", "the child is refused and ends by exit()", fork_after_use},
    {"fork_before_use", "both use the device", fork_before_use},
    {"forever", "until it is killed", forever},
    {nullptr, nullptr, nullptr},
};

}  // namespace xpu::runtime_programs
