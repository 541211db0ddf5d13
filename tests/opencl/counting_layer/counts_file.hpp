#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

/// What the counting layer leaves behind: one mapped file per process, written in place, so that the counts survive any end of the process.
///
/// All numbers are little endian at fixed offsets; `xpu_test_counts FILE` prints the file as JSON.
namespace xpu::counting_layer {

struct EntryCounts {
  std::array<char, 48> name;             // of the entry point, padded with zeros; empty: unused
  std::atomic<std::uint64_t> submitted;  // calls that returned success
  std::atomic<std::uint64_t> refused;    // calls that returned an error
};

struct QueueCounts {
  std::atomic<std::uint64_t> submitted;
  std::atomic<std::uint64_t> refused;
};

struct CountsFile {
  static constexpr std::array<char, 8> kMagic = {'X', 'P', 'U', 'C', 'N', 'T', '0', '1'};
  static constexpr std::size_t kEntries = 64;
  static constexpr std::size_t kQueues = 1024;

  std::array<char, 8> magic;
  std::uint32_t process;               // id
  std::atomic<std::uint32_t> created;  // queues so far; those behind the last slot share it
  std::array<EntryCounts, kEntries> entries;
  std::array<QueueCounts, kQueues> queues;  // in the order in which they were created, or, if that was not seen, first used
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(EntryCounts) == 64 && sizeof(QueueCounts) == 16);
static_assert(sizeof(CountsFile) == 16 + 64 * CountsFile::kEntries + 16 * CountsFile::kQueues);

/// {"process", "submitted", "refused", "entries": {NAME: {"submitted", "refused"}}, "queues": [{"submitted", "refused"}]}; entry points
/// that were not called are left out.
inline std::string to_json(const CountsFile& file) {
  const auto pair = [](std::uint64_t submitted, std::uint64_t refused) {
    return "{\"submitted\": " + std::to_string(submitted) + ", \"refused\": " + std::to_string(refused) + "}";
  };
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;
  std::string entries;
  for (const EntryCounts& entry : file.entries) {
    const std::uint64_t good = entry.submitted.load(std::memory_order_relaxed);
    const std::uint64_t bad = entry.refused.load(std::memory_order_relaxed);
    if (good == 0 && bad == 0) continue;
    submitted += good;
    refused += bad;
    entries += (entries.empty() ? "\"" : ", \"") + std::string(entry.name.data(), strnlen(entry.name.data(), entry.name.size())) +
               "\": " + pair(good, bad);
  }
  std::string queues;
  const std::size_t count = std::min<std::size_t>(file.created.load(std::memory_order_acquire), CountsFile::kQueues);
  for (std::size_t i = 0; i < count; ++i) {
    queues += (i == 0 ? "" : ", ") +
              pair(file.queues[i].submitted.load(std::memory_order_relaxed), file.queues[i].refused.load(std::memory_order_relaxed));
  }
  return "{\"process\": " + std::to_string(file.process) + ", \"submitted\": " + std::to_string(submitted) +
         ", \"refused\": " + std::to_string(refused) + ", \"entries\": {" + entries + "}, \"queues\": [" + queues + "]}\n";
}

}  // namespace xpu::counting_layer
