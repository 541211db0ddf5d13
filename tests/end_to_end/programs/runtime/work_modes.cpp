#include <cstdio>
#include <deque>
#include <stdexcept>
#include <thread>

#include "workload.hpp"

// Programs that do work and end well.

namespace xpu::runtime_programs {
namespace {

void count_item(const WorkGroup&, std::uint32_t* number) { std::atomic_ref(*number).fetch_add(1, std::memory_order_relaxed); }

/// Four threads with two streams each; every round on one stream waits for the other's last.
int work(const Options& options) {
  constexpr int kThreads = 4;
  Counts counts;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      Worker first(counts), second(counts);
      Event event;
      for (std::uint64_t round = 0; round < options.count; ++round) {
        Worker& worker = round % 2 == 0 ? first : second;
        worker.round();
        event.record(worker.stream()).value();
        event.wait((round % 2 == 0 ? second : first).stream()).value();
        if (round % 100 == 99) worker.finish();
      }
      first.finish();
      second.finish();
    });
  }
  for (std::thread& thread : threads) thread.join();
  synchronize().value();
  counts.print("work");
  return 0;
}

/// All threads on one stream.
int shared_stream(const Options& options) {
  constexpr int kThreads = 4;
  Counts counts;
  const Stream stream = Stream::default_stream().value();
  const Kernel kernel = Kernel::from_function<&count_item>("shared", {.short_and_independent = true}, "number").value();
  std::uint32_t number = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (std::uint64_t round = 0; round < options.count; ++round) {
        stream.launch(kernel, items(1), &number).value();
        ++counts.launches;
        if (round % 16 != 15) continue;
        stream.run_blocking({.name = "awaited"}, [] {}).value();
        ++counts.functions;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream.synchronize().value();
  counts.print("shared_stream");
  return number == counts.launches ? 0 : 1;
}

/// COUNT launches of each of the kernels NAME..., one after the other on one stream.
int kernels(const Options& options) {
  Counts counts;
  const Stream stream = Stream::from_pool().value();
  std::uint32_t number = 0;
  for (const std::string& name : options.names) {
    const Kernel kernel = Kernel::from_function<&count_item>(name.c_str(), {.short_and_independent = true}, "number").value();
    for (std::uint64_t index = 0; index < options.count; ++index) {
      stream.launch(kernel, items(1), &number).value();
      ++counts.launches;
    }
  }
  if (const Result<> synchronized = stream.synchronize(); !synchronized) std::printf("error: %s\n", synchronized.error().message.c_str());
  counts.print("kernels");
  return 0;
}

/// Every tenth function of COUNT fails, in turn by an error and an exception; each failure is seen by one wait.
int failures(const Options& options) {
  Counts counts;
  const Stream stream = Stream::from_pool().value();
  std::uint64_t failed = 0;
  for (std::uint64_t index = 0; index < options.count; ++index) {
    const auto function = [index]() -> Result<> {
      if (index % 20 == 9) return Error{ErrorCode::internal, "on purpose"};
      if (index % 20 == 19) throw std::runtime_error("on purpose");
      return {};
    };
    stream.run({.name = index % 10 == 9 ? "fails" : "works"}, function).value();
    ++counts.functions;
    if (index % 10 == 9 && !stream.synchronize()) ++failed;
  }
  stream.synchronize().value();
  std::printf("failed %llu\n", static_cast<unsigned long long>(failed));
  counts.print("failures");
  return 0;
}

/// Buffers of all kinds: COUNT of 4096 bytes each are alive at once.
int memory(const Options& options) {
  std::deque<Buffer> buffers;
  for (std::uint64_t index = 0; index < options.count; ++index) {
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::host, MemoryKind::shared}) {
      buffers.push_back(Buffer::allocate(4096, kind).value());
    }
  }
  Counts counts;
  Worker worker(counts);
  worker.round();
  worker.finish();
  counts.print("memory");
  return 0;
}

/// Counts devices and does nothing.
int count_devices(const Options&) {
  std::printf("%d devices\n", Device::count().value());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // long enough to be looked at
  return 0;
}

/// Opens a device and submits nothing.
int open_device(const Options&) {
  Stream::from_pool().value();
  return 0;
}

}  // namespace

const Mode kWorkModes[] = {
    {"work", "COUNT rounds on each of four threads, with two streams each", work},
    {"shared_stream", "COUNT launches by each of four threads, on one stream", shared_stream},
    {"kernels", "COUNT launches of each kernel NAME...", kernels},
    {"failures", "COUNT functions, of which every tenth fails", failures},
    {"memory", "three times COUNT buffers", memory},
    {"count_devices", "nothing is opened", count_devices},
    {"open_device", "nothing is submitted", open_device},
    {nullptr, nullptr, nullptr},
};

}  // namespace xpu::runtime_programs
