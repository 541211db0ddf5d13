#include "null_driver/call_counts.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "null_driver/timeline.hpp"

namespace xpu::null_driver {
namespace {

constexpr std::array<const char*, static_cast<std::size_t>(Entry::count)> kNames = {
#define XPU_CL_ENTRY(name) #name,
#include "core_entries.inc"
#define XPU_CL_ENTRY(name) #name,
#include "null_driver/extension_entries.inc"
    "clCreateCommandQueueWithPropertiesKHR",
};

std::array<std::atomic<std::uint64_t>, kNames.size()> counts;
std::atomic<std::uint64_t> live_events{0};
std::atomic<std::uint64_t> peak_live_events{0};
std::atomic<std::uint64_t> created_events{0};
thread_local std::uint64_t calls_of_this_thread = 0;
const pid_t loading_process = getpid();

std::string path_of_this_process() {
  std::string path = settings.calls_path;
  const std::string pid = std::to_string(getpid());
  const std::size_t placeholder = path.find("%p");
  if (placeholder != std::string::npos) return path.replace(placeholder, 2, pid);
  return getpid() == loading_process ? path : path + "." + pid;
}

}  // namespace

void count_call(Entry entry) noexcept {
  counts[static_cast<std::size_t>(entry)].fetch_add(1, std::memory_order_relaxed);
  ++calls_of_this_thread;
}

void count_event_created() noexcept {
  created_events.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t live = live_events.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t peak = peak_live_events.load(std::memory_order_relaxed);
  while (live > peak && !peak_live_events.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

void count_event_destroyed() noexcept { live_events.fetch_sub(1, std::memory_order_relaxed); }

std::uint64_t call_count(bool this_thread_only) noexcept {
  if (this_thread_only) return calls_of_this_thread;
  std::uint64_t sum = 0;
  for (const auto& count : counts) sum += count.load(std::memory_order_relaxed);
  return sum;
}

void write_call_counts() {
  if (settings.calls_path == nullptr) return;
  std::FILE* file = std::fopen(path_of_this_process().c_str(), "we");
  if (file == nullptr) return;
  std::fprintf(file, "{\"process\": %d, \"calls\": {", static_cast<int>(getpid()));
  const char* separator = "";
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::uint64_t count = counts[i].load(std::memory_order_relaxed);
    if (count == 0) continue;
    std::fprintf(file, "%s\"%s\": %" PRIu64, separator, kNames[i], count);
    separator = ", ";
  }
  std::fprintf(file, "}, \"total\": %" PRIu64 ", \"events\": {\"created\": %" PRIu64 ", \"live\": %" PRIu64 ", \"peak\": %" PRIu64 "}",
               call_count(false), created_events.load(), live_events.load(), peak_live_events.load());
  if (step_host_time() == ClockParameters::kNoStep) {
    std::fprintf(file, ", \"step_at_host_ns\": null}\n");
  } else {
    std::fprintf(file, ", \"step_at_host_ns\": %" PRIu64 "}\n", step_host_time());
  }
  std::fclose(file);
}

void reset_counts_in_child() {
  for (auto& count : counts) count.store(0, std::memory_order_relaxed);
  created_events.store(0, std::memory_order_relaxed);
  calls_of_this_thread = 0;
}

}  // namespace xpu::null_driver
