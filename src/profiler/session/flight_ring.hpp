#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "profiler/session/pending_operations.hpp"
#include "xpu/profiler/activity_api.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// The records of the last so many seconds, as copies, so that the tracer gets its memory back at once.
///
/// What happened goes into slices, of which the oldest are dropped. What describes is kept aside, the newest of each thing, until the
/// thing has ended and nothing that is kept can refer to it. What is pending stays, however long ago it was submitted. One owner at a time;
/// knows no clock.
class FlightRing {
 public:
  /// `max_bytes`: of slices.
  FlightRing(std::uint64_t kept_ns, std::uint64_t max_bytes) : kept_ns_(kept_ns), max_bytes_(max_bytes) {}

  struct Counts {
    std::uint64_t submitted = 0, ended = 0;  ///< Operations, ever.
    std::uint64_t lost = 0;                  ///< Records that found no room before they came here, ever.
    std::uint64_t dropped = 0;               ///< Submissions that were here, and were dropped because of their age or for want of room.
    std::uint64_t dropped_bytes = 0;
    std::uint64_t dropped_for_room_bytes = 0;  ///< Of these.
    std::uint64_t kept_bytes = 0;
    std::uint64_t description_bytes = 0;
  };

  /// What a capture handed over at this moment, which is the age of all of it. Also without any buffer: time goes by.
  void add(std::span<const ActivityBuffer> taken, std::uint64_t now_ns);
  /// All that is kept, with shared memory: what is added later does not change it.
  std::vector<ActivityBuffer> contents() const;

  const PendingOperations& pending() const noexcept { return pending_; }
  const Counts& counts() const noexcept { return counts_; }
  /// When the oldest slice was added; 0 = there is none.
  std::uint64_t oldest_ns() const noexcept { return slices_.empty() ? 0 : slices_.front().taken_ns; }

  /// The newest description of a thing, or null.
  template <typename Record>
  const Record* find(trace::RecordKind kind, std::uint64_t id, std::uint32_t detail = 0) const {
    const auto found = descriptions_.find({static_cast<std::uint16_t>(kind), id, detail});
    if (found == descriptions_.end() || found->second.size() < sizeof(Record)) return nullptr;
    return reinterpret_cast<const Record*>(found->second.data());
  }
  template <typename Visit>
  void for_each_queue(Visit&& visit) const {
    constexpr auto kQueue = static_cast<std::uint16_t>(trace::RecordKind::queue);
    for (auto entry = descriptions_.lower_bound({kQueue, 0, 0}); entry != descriptions_.end() && std::get<0>(entry->first) == kQueue;
         ++entry)
      visit(*reinterpret_cast<const trace::QueueRecord*>(entry->second.data()));
  }

 private:
  /// Kind, id, and what else tells two descriptions of it apart.
  using Key = std::tuple<std::uint16_t, std::uint64_t, std::uint32_t>;
  struct Slice {
    std::uint64_t number, taken_ns, submissions;
    ActivityBuffer events;
    std::vector<trace::ClockReadingRecord> readings;
    std::vector<Key> ended;  ///< Things that are not there any more.
  };
  /// A slice in the making.
  struct Draft {
    std::vector<std::byte> events;
    std::uint64_t submissions = 0;
    std::vector<trace::ClockReadingRecord> readings;
    std::vector<Key> ended;
  };

  void add(const trace::RecordHeader& header, Draft& draft);
  bool keep_if_description(const trace::RecordHeader& header, Draft& draft);
  void keep(const Key& key, const trace::RecordHeader& header);
  void close(Draft& draft, std::uint64_t now_ns);
  void drop_oldest();
  static void append(std::vector<std::byte>& to, const trace::RecordHeader& header);

  const std::uint64_t kept_ns_, max_bytes_;
  std::deque<Slice> slices_;
  std::uint64_t next_slice_ = 1;
  std::map<Key, std::vector<std::byte>> descriptions_;
  std::vector<Key> still_pending_;  ///< Ended, and nothing refers to it but what is pending.
  PendingOperations pending_;
  Counts counts_;
};

}  // namespace xpu::profiler
