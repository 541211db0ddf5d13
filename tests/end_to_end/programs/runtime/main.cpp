// xpu_test_runtime MODE [COUNT] [NAME...] | --list
// Uses libxpu and prints what was accepted, so that a recording can be compared with it.

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "workload.hpp"

namespace xpu::runtime_programs {
namespace {

void add_work(const WorkItem& item, std::uint32_t* numbers, std::uint32_t added) { numbers[item.global_id(0)] += added; }
XPU_KERNEL(add_work, "numbers", "added");

}  // namespace

void Counts::print(const char* who) const {
  std::printf("%s %d submitted %" PRIu64 " launches %" PRIu64 " copies %" PRIu64 " fills %" PRIu64 " functions %" PRIu64 "\n", who,
              static_cast<int>(getpid()), total(), launches.load(), copies.load(), fills.load(), functions.load());
  std::fflush(stdout);
}

Worker::Worker(Counts& counts)
    : counts_(counts),
      stream_(Stream::from_pool().value()),
      add_(Kernel::registered("add_work").value()),
      numbers_(Buffer::allocate(kItems * sizeof(std::uint32_t)).value()),
      input_(kItems, 5),
      output_(kItems) {}

void Worker::round() {
  auto* numbers = numbers_.as<std::uint32_t>();
  stream_.fill(numbers, 100, kItems).value();
  stream_.copy(numbers, input_.data(), numbers_.size_bytes() / 2).value();
  stream_.launch(add_, items(kItems), numbers, 1u).value();
  const OperationInfo info{.name = rounds_ % 2 == 0 ? "even round" : "odd round", .short_and_independent = rounds_ % 2 == 0};
  stream_.run(info, [this] { seen_by_functions_.fetch_add(1, std::memory_order_relaxed); }).value();
  stream_.launch(add_, items(kItems), numbers, 2u).value();
  stream_.copy(output_.data(), numbers, numbers_.size_bytes()).value();
  ++rounds_;
  ++counts_.fills;
  ++counts_.functions;
  counts_.copies += 2;
  counts_.launches += 2;
}

void Worker::finish() {
  stream_.synchronize().value();
  bool is_right = seen_by_functions_ == rounds_;
  for (std::uint32_t index = 0; rounds_ != 0 && index < kItems; ++index) is_right &= output_[index] == (index < kItems / 2 ? 8u : 103u);
  if (is_right) return;
  std::fprintf(stderr, "xpu_test_runtime: the device computed something wrong\n");
  _exit(1);
}

}  // namespace xpu::runtime_programs

int main(int argc, char** argv) try {
  using namespace xpu::runtime_programs;
  const bool list = argc == 2 && std::strcmp(argv[1], "--list") == 0;
  Options options;
  if (argc > 2) options.count = std::strtoull(argv[2], nullptr, 10);
  for (int index = 3; index < argc; ++index) options.names.emplace_back(argv[index]);
  for (const Mode* modes : {kWorkModes, kEndModes}) {
    for (; modes->name != nullptr; ++modes) {
      if (list) std::printf("%-20s %s\n", modes->name, modes->what);
      if (!list && argc > 1 && std::strcmp(argv[1], modes->name) == 0) return modes->run(options);
    }
  }
  if (list) return 0;
  std::fprintf(stderr, "usage: xpu_test_runtime MODE [COUNT] [NAME...] | --list\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "xpu_test_runtime: %s\n", error.what());
  return 3;
}
