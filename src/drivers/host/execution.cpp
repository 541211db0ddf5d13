#include "drivers/host/execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "drivers/host/worker_pool.hpp"
#include "hal/work_groups.hpp"

namespace xpu::drivers::host {

constinit thread_local const UserCode* UserCode::innermost_ __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr std::uint64_t kGroupsPerProcessor = 4;
// A size of the driver's choice keeps DeviceProperties::max_work_group_size, too: WorkGroups makes groups up to four times as large as
// wanted.
constexpr unsigned kWantedItemsShift = kMostGroupItemsShift - 2;
constexpr std::size_t kLeastBytesPerThread = std::size_t{256} << 10;
constexpr std::align_val_t kLocalMemoryAlignment{64};

/// The local memory of a work-group: the thread's own, kept for the next launch, unless this thread is in the middle of a group already.
class LocalMemory {
 public:
  explicit LocalMemory(std::size_t bytes) noexcept {
    if (bytes == 0) return;
    Kept& kept = kept_of_thread();
    if (!kept.is_lent && kept.bytes < bytes) {
      kept.memory = allocate(bytes);
      kept.bytes = kept.memory == nullptr ? 0 : bytes;
    }
    if (!kept.is_lent && kept.memory != nullptr) {
      kept.is_lent = is_borrowed_ = true;
      memory_ = kept.memory.get();
    } else {
      own_ = allocate(bytes);
      memory_ = own_.get();
    }
  }
  ~LocalMemory() {
    if (is_borrowed_) kept_of_thread().is_lent = false;
  }
  LocalMemory(const LocalMemory&) = delete;
  LocalMemory& operator=(const LocalMemory&) = delete;

  /// Null when there is none to be had, or none was asked for.
  std::byte* get() const noexcept { return memory_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { ::operator delete(memory, kLocalMemoryAlignment); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  struct Kept {
    Memory memory;
    std::size_t bytes = 0;
    bool is_lent = false;
  };
  static Kept& kept_of_thread() noexcept {
    thread_local Kept kept;
    return kept;
  }
  static Memory allocate(std::size_t bytes) noexcept {
    return Memory(static_cast<std::byte*>(::operator new(bytes, kLocalMemoryAlignment, std::nothrow)));
  }

  std::byte* memory_ = nullptr;
  bool is_borrowed_ = false;
  Memory own_;
};

/// The first failure among the threads that run one kernel.
class FirstFailure {
 public:
  bool has_failed() const noexcept { return is_taken_.load(std::memory_order_relaxed); }
  void set(Error error) noexcept {
    if (!is_taken_.exchange(true, std::memory_order_relaxed)) error_ = std::move(error);
  }
  /// Once all threads are done.
  Result<> take() noexcept { return error_.has_value() ? Result<>(std::move(*error_)) : Result<>(); }

 private:
  std::atomic<bool> is_taken_{false};
  std::optional<Error> error_;
};

Error let_out(const std::string& what) {
  try {
    throw;
  } catch (const std::exception& exception) {
    return {ErrorCode::internal, fmt::format("{} let an exception out: {}", what, exception.what())};
  } catch (...) {
    return {ErrorCode::internal, fmt::format("{} let an exception out that is no std::exception", what)};
  }
}

[[gnu::noinline]] Result<> run_groups_spread(const QueueState& queue, const KernelRun& run, const hal::WorkGroups& groups,
                                             std::uint32_t local_bytes, WorkerPool& helpers) noexcept {
  FirstFailure failure;
  helpers.spread(groups.count(), 1, [&](std::uint64_t first, std::uint64_t last) noexcept {
    if (failure.has_failed()) return;
    const LocalMemory local(local_bytes);
    if (local_bytes != 0 && local.get() == nullptr) {
      failure.set({ErrorCode::out_of_host_memory, fmt::format("no {} bytes of local memory for a work-group", local_bytes)});
      return;
    }
    const UserCode guard(queue);
    try {
      groups.run(run.kernel.function(), run.arguments, first, last, local.get(), local_bytes);
    } catch (...) {
      failure.set(let_out("the kernel " + run.kernel.info().name));
    }
  });
  return failure.take();
}

[[gnu::noinline]] Result<> run_groups_with_local(const QueueState& queue, const KernelRun& run, const hal::WorkGroups& groups,
                                                 std::uint32_t local_bytes) noexcept {
  const LocalMemory local(local_bytes);
  if (local.get() == nullptr) {
    return Error{ErrorCode::out_of_host_memory, fmt::format("no {} bytes of local memory for a work-group", local_bytes)};
  }
  const UserCode guard(queue);
  try {
    groups.run(run.kernel.function(), run.arguments, 0, groups.count(), local.get(), local_bytes);
  } catch (...) {
    return let_out("the kernel " + run.kernel.info().name);
  }
  return {};
}

/// The same number for every executor, so that a kernel sees the same groups.
std::uint64_t wanted_groups(const hal::Geometry& geometry, std::uint32_t processors) noexcept {
  const std::uint64_t items = geometry.global[0] * geometry.global[1] * geometry.global[2];
  return std::max(processors * kGroupsPerProcessor, (items >> kWantedItemsShift) + 1);
}

/// `pattern_bytes` divides 4096, and `begin` is a multiple of it from where the fill began.
void fill_part(std::byte* begin, std::size_t bytes, std::span<const std::byte> pattern) noexcept {
  constexpr std::size_t kSeedBytes = 4096;
  const std::size_t seed = std::min(bytes, kSeedBytes);
  std::memcpy(begin, pattern.data(), std::min(pattern.size(), seed));
  for (std::size_t done = pattern.size(); done < seed; done *= 2) std::memcpy(begin + done, begin, std::min(done, seed - done));
  for (std::size_t done = seed; done < bytes; done += kSeedBytes) std::memcpy(begin + done, begin, std::min(kSeedBytes, bytes - done));
}

}  // namespace

Result<> run_kernel(const QueueState& queue, const KernelRun& run, std::uint32_t processors, WorkerPool* helpers) noexcept {
  const KernelFacts& facts = run.kernel.info().facts;
  const hal::WorkGroups groups(run.geometry, facts, run.geometry.local[0] != 0 ? 1 : wanted_groups(run.geometry, processors));
  const std::uint32_t local_bytes = facts.local_memory_bytes + run.local_memory_bytes;
  if (helpers != nullptr && groups.count() > 1) return run_groups_spread(queue, run, groups, local_bytes, *helpers);
  if (local_bytes != 0) return run_groups_with_local(queue, run, groups, local_bytes);
  const UserCode guard(queue);
  try {
    if (groups.count() == 1) {
      run.kernel.function()(run.arguments, &groups.prototype());  // what a short launch mostly is, without a copy of the group
    } else {
      groups.run(run.kernel.function(), run.arguments, 0, groups.count(), nullptr, 0);
    }
  } catch (...) {
    return let_out("the kernel " + run.kernel.info().name);
  }
  return {};
}

void run_copy(void* destination, const void* source, std::size_t bytes, WorkerPool* helpers) noexcept {
  if (helpers == nullptr || bytes < 2 * kLeastBytesPerThread) {
    std::memcpy(destination, source, bytes);
    return;
  }
  helpers->spread(bytes, kLeastBytesPerThread, [&](std::uint64_t first, std::uint64_t last) noexcept {
    std::memcpy(static_cast<std::byte*>(destination) + first, static_cast<const std::byte*>(source) + first, last - first);
  });
}

void run_fill(void* destination, std::span<const std::byte> pattern, std::size_t bytes, WorkerPool* helpers) noexcept {
  auto* const begin = static_cast<std::byte*>(destination);
  const auto fill = [&](std::uint64_t first, std::uint64_t last) noexcept {
    if (pattern.size() == 1) {
      std::memset(begin + first, std::to_integer<int>(pattern[0]), last - first);
    } else {
      fill_part(begin + first, last - first, pattern);
    }
  };
  if (helpers == nullptr || bytes < 2 * kLeastBytesPerThread) return fill(0, bytes);
  // In units that every pattern divides, so that each part begins with a whole one.
  constexpr std::uint64_t kUnit = 4096;
  helpers->spread((bytes + kUnit - 1) / kUnit, kLeastBytesPerThread / kUnit, [&](std::uint64_t first, std::uint64_t last) noexcept {
    fill(first * kUnit, std::min<std::uint64_t>(last * kUnit, bytes));
  });
}

Result<> run_host_function(const QueueState& queue, const hal::HostFunction& function) noexcept {
  const UserCode guard(queue);
  Result<> outcome;
  try {
    outcome = function.call(function.user);
  } catch (...) {
    outcome = let_out("a host function");
  }
  if (function.drop != nullptr) function.drop(function.user);
  return outcome;
}

}  // namespace xpu::drivers::host
