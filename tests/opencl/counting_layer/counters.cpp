#include "counting_layer/counters.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "counting_layer/counts_file.hpp"

namespace xpu::counting_layer {
namespace {

constexpr std::array<const char*, static_cast<std::size_t>(Entry::count)> kNames = {
#define XPU_COUNTED_ENTRY(name) #name,
#include "counting_layer/submitting_entries.inc"
};
static_assert(kNames.size() <= CountsFile::kEntries);

// Everything here lives for ever: calls arrive until the process is gone.
CountsFile memory_only;
std::atomic<CountsFile*> counts{&memory_only};
std::string& json_path = *new std::string;
std::array<std::atomic<cl_command_queue>, CountsFile::kQueues> handles;
std::atomic<std::uint32_t> created{0};

/// Maps `path` if it can be created; the disk blocks are allocated first, because a write to a sparse page of a full disk is a signal.
CountsFile* map_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (posix_fallocate(descriptor, 0, sizeof(CountsFile)) == 0) {
    memory = mmap(nullptr, sizeof(CountsFile), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  ::close(descriptor);
  return memory == MAP_FAILED ? nullptr : static_cast<CountsFile*>(memory);
}

std::size_t slot_of(std::uint32_t number) noexcept { return number < CountsFile::kQueues ? number : CountsFile::kQueues - 1; }

struct LastQueue {
  cl_command_queue queue = nullptr;
  std::uint32_t created = 0;  // how many queues there were when it was looked up
  std::size_t slot = 0;
};
thread_local LastQueue last_queue;

std::size_t find_or_add(cl_command_queue queue) noexcept {
  LastQueue& last = last_queue;
  const std::uint32_t count = created.load(std::memory_order_acquire);
  if (last.queue == queue && last.created == count) return last.slot;
  for (std::uint32_t number = count; number > 0; --number) {
    const std::size_t slot = slot_of(number - 1);
    if (handles[slot].load(std::memory_order_acquire) != queue) continue;
    last = {queue, count, slot};
    return slot;
  }
  return add_queue(queue);  // made by an extension function, which this layer does not wrap
}

}  // namespace

void open_counts() {
  const char* prefix = std::getenv("XPU_TEST_COUNTS");
  if (prefix == nullptr || *prefix == '\0') return;
  CountsFile* file = nullptr;
  std::string path;
  for (int attempt = 1; attempt <= 100 && file == nullptr; ++attempt) {
    path = std::string(prefix) + "." + std::to_string(getpid()) + (attempt == 1 ? "" : "." + std::to_string(attempt));
    file = map_file(path + ".counts");
  }
  if (file == nullptr) {
    std::fprintf(stderr, "counting layer: no file %s.%d.counts\n", prefix, static_cast<int>(getpid()));
    return;
  }
  file->process = static_cast<std::uint32_t>(getpid());
  for (std::size_t i = 0; i < kNames.size(); ++i) std::strncpy(file->entries[i].name.data(), kNames[i], file->entries[i].name.size() - 1);
  file->created.store(created.load(std::memory_order_relaxed), std::memory_order_relaxed);
  file->magic = CountsFile::kMagic;
  json_path = path + ".json";
  counts.store(file, std::memory_order_release);
}

std::size_t add_queue(cl_command_queue queue) noexcept {
  // Two threads may want the same slot; the loser takes the next. The last slot is everybody's.
  std::uint32_t number = created.load(std::memory_order_relaxed);
  for (;; ++number) {
    cl_command_queue empty = nullptr;
    std::atomic<cl_command_queue>& handle = handles[slot_of(number)];
    if (handle.compare_exchange_strong(empty, queue, std::memory_order_acq_rel)) break;
    if (slot_of(number) != CountsFile::kQueues - 1) continue;
    handle.store(queue, std::memory_order_release);
    break;
  }
  std::uint32_t seen = created.load(std::memory_order_relaxed);
  while (seen < number + 1 && !created.compare_exchange_weak(seen, number + 1, std::memory_order_acq_rel)) {
  }
  counts.load(std::memory_order_acquire)->created.store(created.load(std::memory_order_relaxed), std::memory_order_release);
  return slot_of(number);
}

void count(Entry entry, cl_command_queue queue, bool success) noexcept {
  const std::size_t slot = find_or_add(queue);
  CountsFile* file = counts.load(std::memory_order_acquire);
  EntryCounts& of_entry = file->entries[static_cast<std::size_t>(entry)];
  QueueCounts& of_queue = file->queues[slot];
  (success ? of_queue.submitted : of_queue.refused).fetch_add(1, std::memory_order_relaxed);
  (success ? of_entry.submitted : of_entry.refused).fetch_add(1, std::memory_order_relaxed);
}

void write_json() {
  if (json_path.empty()) return;
  std::FILE* file = std::fopen(json_path.c_str(), "we");
  if (file == nullptr) return;
  const std::string text = to_json(*counts.load(std::memory_order_acquire));
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

}  // namespace xpu::counting_layer
