#pragma once

#include <regex.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/probe.hpp"

namespace xpu::trace {

/// A set of object ids that grows without a lock for those who ask. Never destroyed.
class IdSet {
 public:
  constexpr IdSet() noexcept = default;

  bool contains(probe::Id id) const noexcept {
    const std::size_t block = id / kBlockIds;
    if (block >= kBlocks) return false;
    const std::atomic<std::uint64_t>* bits = blocks_[block].load(std::memory_order_acquire);
    return bits != nullptr && (bits[id % kBlockIds / 64].load(std::memory_order_relaxed) >> id % 64 & 1) != 0;
  }
  /// What finds no room is not in it.
  void set(probe::Id id, bool is_in) noexcept;

 private:
  static constexpr std::size_t kBlockIds = 32'768;  // 4 KiB of bits
  static constexpr std::size_t kBlocks = 1024;

  std::atomic<std::atomic<std::uint64_t>*> blocks_[kBlocks] = {};
};

/// Which operations one reader of records wants; nothing in it: all.
struct WantedOperations {
  std::shared_ptr<const regex_t> kernels;  ///< Searched in the names that drivers give them. Commands that are no kernels are wanted.
  std::vector<probe::Id> queues;           ///< Their commands alone.

  bool wants_all() const noexcept { return kernels == nullptr && queues.empty(); }
};

/// POSIX extended. Null when it is none.
std::shared_ptr<const regex_t> compile_expression(const char* expression);

/// Which operations somebody wants (`--kernels`, captures): what no reader wants is not recorded. Names are matched once per kernel object;
/// a launch looks bits up, without a lock. It knows of a queue and of a kernel each whether some reader wants it, so it lets through what
/// only wants of different readers put together allow: whoever reads looks again. Kernels that were never named are wanted. Never
/// destroyed.
class OperationFilter {
 public:
  constexpr OperationFilter() noexcept = default;

  /// One reader with this expression; empty wants everything. False when it is not an expression; then everything is wanted.
  bool set_expression(const char* expression) noexcept;
  /// Behind it all living kernels and queues have to be told again; until then they may be wanted, or not, as before.
  void set_readers(std::vector<WantedOperations> readers) noexcept;

  // With `set_…` one at a time.
  void kernel_created(probe::Id kernel, std::string_view name) noexcept;
  void queue_created(probe::Id queue) noexcept;

  /// Any thread, at any time.
  bool is_wanted(const probe::Operation& operation) const noexcept {
    if (!is_active_.load(std::memory_order_relaxed)) [[likely]]
      return true;
    if (unwanted_queues_.contains(operation.queue)) return false;
    static_assert(static_cast<int>(probe::Command::ndrange_kernel) == 1 && static_cast<int>(probe::Command::native_kernel) == 3);
    const bool is_kernel = static_cast<std::uint8_t>(operation.command) - 1u <= 2u;
    return !is_kernel || !unwanted_kernels_.contains(operation.kernel);
  }
  bool is_active() const noexcept { return is_active_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_active_{false};
  std::vector<WantedOperations>* readers_ = nullptr;  // null: everything is wanted
  IdSet unwanted_kernels_, unwanted_queues_;
};

}  // namespace xpu::trace
