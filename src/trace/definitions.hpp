#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/probe.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace {

/// Of the record of a text that is no longer than `kMaxStringBytes`: its size, a multiple of 8, and the record itself.
std::size_t string_record_bytes(std::string_view text) noexcept;
void fill_string_record(std::byte* place, probe::Id id, std::string_view text, bool continues) noexcept;
/// All records of a text of any length, behind what is there already.
void append_string_records(std::vector<std::byte>& records, probe::Id id, std::string_view text);

/// The record of this process. Empty without memory.
std::vector<std::byte> encode_process(std::uint64_t pid, std::uint64_t start_ns) noexcept;

/// The record that defines an object, built from the publisher's description: kinds 4 to 8. Empty for kinds that have none, or without
/// memory.
std::vector<std::byte> encode_object(probe::ObjectKind kind, probe::Id id, const void* description) noexcept;
ObjectEndRecord encode_object_end(probe::ObjectKind kind, probe::Id id, std::uint64_t time_ns) noexcept;

/// The defining records of all living objects, kept so that they can be written again: into a forked child's own segment, and after a time
/// in which no chunk was free. (The publishers could be asked instead, but a record is often published under a publisher's own lock.)
/// Thread-safe; the lock is held through a fork, so that the child finds the list whole.
class Definitions {
 public:
  void put(probe::ObjectKind kind, probe::Id id, std::span<const std::byte> record) noexcept;
  /// `keep_until_written`: the defining record was lost, so it stays, with its end behind it, until the next `forget_ended`.
  void end(probe::ObjectKind kind, probe::Id id, const ObjectEndRecord& record, bool keep_until_written) noexcept;
  /// Drops what `end` kept and the newest `snapshot` held: that has been written.
  void forget_ended() noexcept;
  /// Sequence numbers of a queue up to this one have been used.
  void note_sequence(probe::Id queue, std::uint32_t sequence) noexcept;
  /// In a forked child: what has been used so far was the parent's, so queues are written with it as `published_before`.
  void begin_child() noexcept;
  /// When nobody listens any more: publishers will publish all that lives again to the next who does.
  void clear() noexcept;
  /// The defining record of a living object; empty when there is none, or no memory.
  std::vector<std::byte> find(probe::ObjectKind kind, probe::Id id) noexcept;
  /// Copies of all records, one after the other.
  std::vector<std::byte> snapshot() noexcept;
  /// The same for whoever only looks: it changes nothing for `forget_ended`.
  std::vector<std::byte> copy() noexcept;

  void lock_for_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void unlock_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

 private:
  struct Definition {
    std::vector<std::byte> records;
    bool ended = false;
    bool in_snapshot = false;    // and ended before it was taken
    std::uint32_t sequence = 0;  // of queues
  };
  static std::uint64_t key(probe::ObjectKind kind, probe::Id id) noexcept { return static_cast<std::uint64_t>(kind) << 32 | id; }

  base::Mutex mutex_;
  std::unordered_map<std::uint64_t, Definition> objects_ XPU_GUARDED_BY(mutex_);
};

/// The process's. Never destroyed: static destructors release objects too.
Definitions& definitions() noexcept;

}  // namespace xpu::trace
