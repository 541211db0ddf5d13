#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "trace/view/device_clock.hpp"
#include "xpu/trace/records.hpp"
#include "xpu/trace/view/api_ids.hpp"
#include "xpu/trace/view/view_builder.hpp"

namespace xpu::trace::view {

/// The record behind a header that is known to be whole, or null when it is not of this length at least.
template <typename Record>
const Record* view_record_cast(const RecordHeader& header) noexcept {
  return header.size < sizeof(Record) ? nullptr : reinterpret_cast<const Record*>(&header);
}

/// Definitions by id. Those whose object has ended are kept, because its commands may come later than its end, until many have: then
/// those of them go that nobody asked for since the last time. One owner at a time.
template <typename Record>
class DefinitionMap {
 public:
  static constexpr std::size_t kMaxIdle = 65'536;

  void put(std::uint32_t id, const Record& record) {
    Entry& entry = entries_[id];
    entry.record = record;
    entry.is_used = true;
  }
  const Record* find(std::uint32_t id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return nullptr;
    found->second.is_used = true;
    return &found->second.record;
  }
  void end(std::uint32_t id) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.has_ended) return;
    found->second.has_ended = true;
    if (++idle_ >= sweep_at_) sweep([](const Entry& entry) { return entry.has_ended; });
  }
  /// For definitions that never end: as if all had.
  void limit() {
    idle_ = entries_.size();
    if (idle_ >= sweep_at_) sweep([](const Entry&) { return true; });
  }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    Record record{};
    bool has_ended = false;
    bool is_used = false;
  };
  template <typename MayGo>
  void sweep(MayGo may_go) {
    idle_ = 0;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (may_go(entry->second) && !std::exchange(entry->second.is_used, false)) {
        entry = entries_.erase(entry);
        continue;
      }
      if (may_go(entry->second)) ++idle_;
      ++entry;
    }
    sweep_at_ = std::max(kMaxIdle, 2 * idle_);
  }

  std::unordered_map<std::uint32_t, Entry> entries_;
  std::size_t idle_ = 0, sweep_at_ = kMaxIdle;
};

/// What the ids in records stand for, in one process. One owner at a time.
class ViewDefinitions {
 public:
  struct Device {
    DeviceRecord record{};
    bool is_described = false;
    char pci_address[16] = {};
    DeviceClock clock;
  };

  ViewDefinitions(TextSource source, ClockDomain host_clock) : source_(source), host_clock_(host_clock) {}

  /// Takes records that describe something, and ignores others.
  void add(const RecordHeader& header);

  /// Null when the text is not known (yet), and for 0.
  const char* text(std::uint32_t id) const;
  /// The same with its length, for bytes that may contain 0; empty when not known.
  std::string_view text_bytes(std::uint32_t id) const;
  /// Of the function with this name; what is not known (yet) has no id.
  ApiIdentity api(std::uint32_t name_id);
  Device* device(std::uint32_t id);  ///< Null: neither described nor read.

  std::uint32_t process = 0;
  DefinitionMap<ThreadRecord> threads;
  DefinitionMap<ContextRecord> contexts;
  DefinitionMap<QueueRecord> queues;
  DefinitionMap<KernelRecord> kernels;
  DefinitionMap<GeometryRecord> geometries;

 private:
  struct Text {
    std::string pieces;
    const std::string* whole = nullptr;
  };

  void add_text(const StringRecord& record);
  void add_device(const DeviceRecord& record);
  void add_end(const ObjectEndRecord& record);
  Device& device_entry(std::uint32_t id);

  TextSource source_;
  ClockDomain host_clock_;
  std::unordered_map<std::uint32_t, Text> texts_;
  std::unordered_set<std::string> unique_texts_;
  std::unordered_map<std::uint32_t, ApiIdentity> apis_;
  std::unordered_map<std::uint32_t, Device> devices_;
};

}  // namespace xpu::trace::view
