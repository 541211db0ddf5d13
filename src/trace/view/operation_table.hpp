#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <unordered_map>

#include "xpu/trace/records.hpp"

namespace xpu::trace::view {

/// What is known of an operation that is not over.
struct OpenOperation {
  enum State : std::uint16_t {
    kSubmitted = 1u << 0,
    kCompleted = 1u << 1,  ///< Or lost: nothing more comes.
    kLost = 1u << 2,
    kRefused = 1u << 3,  ///< By the driver: there is no command.
    kHasCopy = 1u << 4,
    kHasExternalIds = 1u << 5,
    kExternalIdsWritten = 1u << 6,
    kReady = 1u << 7,  ///< In the list of those to hand over.
    kHasGraphNode = 1u << 8,
  };

  std::uint64_t operation = 0;
  std::uint64_t enter_ns = 0;
  std::uint64_t queued = 0, submit = 0, start = 0, end = 0;
  std::uint32_t queue = 0, completed_queue = 0;
  std::uint32_t what = 0, geometry = 0, writer = 0, api = 0;
  std::uint32_t submitted_flags = 0, completed_flags = 0;  ///< RecordFlag.
  std::int32_t status = 0;
  std::uint32_t correlation = 0;    ///< 0 = not given yet.
  std::uint32_t pending_calls = 0;  ///< Calls of this operation that are not handed over.
  std::uint16_t state = 0;

  bool has(State bit) const noexcept { return (state & bit) != 0; }
  void set(State bit) noexcept { state = static_cast<std::uint16_t>(state | bit); }
};

/// The operations that are not over, by id and by age. References stay valid until `erase`. One owner at a time.
class OperationTable {
 public:
  OpenOperation* find(std::uint64_t operation) noexcept {
    const auto found = by_id_.find(operation);
    return found == by_id_.end() ? nullptr : &*found->second;
  }
  /// Of an operation that is not there.
  OpenOperation& create(std::uint64_t operation) {
    if (spare_.empty()) spare_.emplace_back();
    const auto entry = spare_.begin();
    by_id_.emplace(operation, entry);
    *entry = OpenOperation{};
    entry->operation = operation;
    by_age_.splice(by_age_.end(), spare_, entry);
    return *entry;
  }
  void erase(const OpenOperation& operation) noexcept {
    const auto found = by_id_.find(operation.operation);
    if (found == by_id_.end()) return;
    // A few are used again; what a burst left over is given back.
    constexpr std::size_t kMaxSpare = 4'096;
    if (spare_.size() < kMaxSpare) {
      spare_.splice(spare_.begin(), by_age_, found->second);
    } else {
      by_age_.erase(found->second);
    }
    by_id_.erase(found);
  }
  OpenOperation& oldest() noexcept { return by_age_.front(); }
  std::size_t size() const noexcept { return by_id_.size(); }

 private:
  std::list<OpenOperation> by_age_, spare_;
  std::unordered_map<std::uint64_t, std::list<OpenOperation>::iterator> by_id_;
};

/// The newest submitting calls of one thread, for the waits of blocking calls, which do not name their operation. A thread writes the wait
/// behind the submission; in a compacted file several thousand others may lie between. One owner at a time.
class RecentCalls {
 public:
  struct Call {
    std::uint64_t enter_ns, operation;
    std::uint32_t api;
  };

  void add(const Call& call) {
    constexpr std::size_t kRemembered = 8'192;
    if (calls_.size() == kRemembered) calls_.pop_front();
    calls_.push_back(call);
  }
  /// The newest operation that this function submitted between two times; 0 when there is none.
  std::uint64_t find(std::uint32_t api, std::uint64_t from_ns, std::uint64_t to_ns) const noexcept {
    // Nearly in the order of time: a call inside another one is written before it.
    constexpr int kMaxInner = 16;
    auto call = std::partition_point(calls_.begin(), calls_.end(), [&](const Call& earlier) { return earlier.enter_ns <= to_ns; });
    for (int tries = 0; tries < kMaxInner && call != calls_.begin(); ++tries) {
      --call;
      if (call->api == api && call->enter_ns >= from_ns && call->enter_ns <= to_ns) return call->operation;
    }
    return 0;
  }

 private:
  std::deque<Call> calls_;
};

/// The newest operations that are over: what comes for one of them is a duplicate, or late, and not a new operation. One owner at a time.
class FinishedOperations {
 public:
  struct Fate {
    std::uint32_t correlation;
    bool is_linked;
  };

  void add(std::uint64_t operation, Fate fate) {
    constexpr std::size_t kRemembered = 65'536;
    if (!fates_.insert_or_assign(operation, fate).second) return;
    order_.push_back(operation);
    if (order_.size() <= kRemembered) return;
    fates_.erase(order_.front());
    order_.pop_front();
  }
  const Fate* find(std::uint64_t operation) const noexcept {
    const auto found = fates_.find(operation);
    return found == fates_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::uint64_t, Fate> fates_;
  std::deque<std::uint64_t> order_;
};

}  // namespace xpu::trace::view
