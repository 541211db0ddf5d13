#include "profiler/session/flight_ring.hpp"

#include <optional>

#include "base/probe.hpp"
#include "profiler/link/record_cast.hpp"

namespace xpu::profiler {
namespace {

using trace::RecordKind;

/// Small enough that the oldest can be dropped without much of what is younger.
constexpr std::size_t kSliceBytes = std::size_t{256} << 10;

std::optional<RecordKind> kind_of_ended(std::uint32_t object_kind) {
  switch (static_cast<probe::ObjectKind>(object_kind)) {
    case probe::ObjectKind::context: return RecordKind::context;
    case probe::ObjectKind::queue: return RecordKind::queue;
    case probe::ObjectKind::module: return RecordKind::module;
    case probe::ObjectKind::kernel: return RecordKind::kernel;
    default: return std::nullopt;
  }
}

}  // namespace

void FlightRing::append(std::vector<std::byte>& to, const trace::RecordHeader& header) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  to.insert(to.end(), bytes, bytes + header.size);
}

void FlightRing::add(std::span<const ActivityBuffer> taken, std::uint64_t now_ns) {
  pending_.begin_batch(now_ns);
  Draft draft;
  for (const ActivityBuffer& buffer : taken) {
    trace::for_each_record(buffer.records(), [&](const trace::RecordHeader& header) {
      if (draft.events.size() >= kSliceBytes) close(draft, now_ns);
      add(header, draft);
    });
  }
  close(draft, now_ns);
  while (!slices_.empty() && slices_.front().taken_ns + kept_ns_ < now_ns) drop_oldest();
  while (counts_.kept_bytes > max_bytes_) {
    counts_.dropped_for_room_bytes += slices_.front().events.records().size();
    drop_oldest();
  }
}

void FlightRing::add(const trace::RecordHeader& header, Draft& draft) {
  if (keep_if_description(header, draft)) return;
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::operation_submitted:
      if (const auto* record = record_cast<trace::OperationSubmittedRecord>(header)) {
        ++draft.submissions;
        ++counts_.submitted;
        pending_.add(*record, next_slice_);
      }
      break;
    case RecordKind::operation_completed:
      if (const auto* record = record_cast<trace::OperationCompletedRecord>(header)) {
        ++counts_.ended;
        const std::optional<PendingOperations::Pending> ended = pending_.remove(*record);
        const std::uint64_t first_slice = slices_.empty() ? next_slice_ : slices_.front().number;
        // It ran for longer than is kept; without its submission its end would say nothing.
        if (ended && ended->slice < first_slice) append(draft.events, ended->submission.header);
      }
      break;
    case RecordKind::loss:
      if (const auto* record = record_cast<trace::LossRecord>(header)) {
        counts_.lost += record->count;
        if ((header.flags & trace::kFlagCompletionLost) != 0) pending_.remove_lost(*record);
      }
      break;
    case RecordKind::clock_reading:
      if (const auto* record = record_cast<trace::ClockReadingRecord>(header)) draft.readings.push_back(*record);
      break;
    default: break;
  }
  append(draft.events, header);
}

/// Texts and the process are left out: who reads the ring asks the capture for all of them.
bool FlightRing::keep_if_description(const trace::RecordHeader& header, Draft& draft) {
  struct Described {
    trace::RecordHeader header;
    std::uint32_t id;
  };
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::string:
    case RecordKind::process: return true;
    case RecordKind::thread:
    case RecordKind::context:
    case RecordKind::queue:
    case RecordKind::module:
    case RecordKind::kernel:
    case RecordKind::geometry:
      if (header.size >= sizeof(Described)) keep({header.kind, reinterpret_cast<const Described&>(header).id, 0}, header);
      return true;
    case RecordKind::device:
      if (const auto* record = record_cast<trace::DeviceRecord>(header)) {
        // It is described again when its clock becomes known; the two may come in any order.
        const auto* known = find<trace::DeviceRecord>(RecordKind::device, record->device);
        if (known == nullptr || record->clock_domain != 0 || known->clock_domain == 0) keep({header.kind, record->device, 0}, header);
      }
      return true;
    case RecordKind::fact:
      if (const auto* record = record_cast<trace::FactRecord>(header)) keep({header.kind, record->subject, record->key}, header);
      return true;
    case RecordKind::object_end:
      if (const auto* record = record_cast<trace::ObjectEndRecord>(header)) {
        if (const std::optional<RecordKind> kind = kind_of_ended(record->kind))
          draft.ended.push_back({static_cast<std::uint16_t>(*kind), record->id, 0});
      }
      return true;
    case RecordKind::annotation: {
      // Names of queues and threads are said once.
      const auto* record = record_cast<trace::AnnotationRecord>(header);
      if (record == nullptr) return true;
      const auto type = static_cast<probe::AnnotationType>(header.flags);
      if (type != probe::AnnotationType::name_queue && type != probe::AnnotationType::name_thread) return false;
      keep({header.kind, type == probe::AnnotationType::name_queue ? record->range : record->thread, header.flags}, header);
      return true;
    }
    default: return false;
  }
}

void FlightRing::keep(const Key& key, const trace::RecordHeader& header) {
  std::vector<std::byte>& bytes = descriptions_[key];
  counts_.description_bytes -= bytes.size();
  bytes.clear();
  append(bytes, header);
  counts_.description_bytes += bytes.size();
}

void FlightRing::close(Draft& draft, std::uint64_t now_ns) {
  if (draft.events.empty() && draft.ended.empty()) return;
  draft.events.shrink_to_fit();
  counts_.kept_bytes += draft.events.size();
  slices_.push_back({next_slice_++, now_ns, draft.submissions, ActivityBuffer(std::move(draft.events)), std::move(draft.readings),
                     std::move(draft.ended)});
  draft = Draft{};
}

void FlightRing::drop_oldest() {
  Slice slice = std::move(slices_.front());
  slices_.pop_front();
  counts_.kept_bytes -= slice.events.records().size();
  counts_.dropped_bytes += slice.events.records().size();
  counts_.dropped += slice.submissions;
  // One reading before everything that is kept, so that the clock of a device is known from the first command on.
  for (const trace::ClockReadingRecord& reading : slice.readings) {
    trace::ClockReadingRecord kept = reading;
    kept.header.size = sizeof kept;
    keep({kept.header.kind, kept.device, 0}, kept.header);
  }
  slice.ended.insert(slice.ended.end(), still_pending_.begin(), still_pending_.end());
  still_pending_.clear();
  for (const Key& key : slice.ended) {
    const auto found = descriptions_.find(key);
    if (found == descriptions_.end()) continue;
    // Kernels and queues may be released while a command runs: their names are wanted for as long.
    const auto kind = static_cast<RecordKind>(std::get<0>(key));
    const auto id = static_cast<std::uint32_t>(std::get<1>(key));
    const bool is_pending =
        (kind == RecordKind::kernel && pending_.refers_to_kernel(id)) || (kind == RecordKind::queue && pending_.refers_to_queue(id));
    if (is_pending) {
      still_pending_.push_back(key);
      continue;
    }
    if (kind == RecordKind::queue) pending_.forget_queue(id);
    counts_.description_bytes -= found->second.size();
    descriptions_.erase(found);
  }
}

std::vector<ActivityBuffer> FlightRing::contents() const {
  std::vector<ActivityBuffer> buffers;
  buffers.reserve(slices_.size() + 2);
  std::vector<std::byte> descriptions;
  for (const auto& [key, bytes] : descriptions_) descriptions.insert(descriptions.end(), bytes.begin(), bytes.end());
  buffers.emplace_back(std::move(descriptions));
  std::vector<std::byte> submissions;
  const std::uint64_t first_slice = slices_.empty() ? next_slice_ : slices_.front().number;
  pending_.for_each([&](const PendingOperations::Pending& pending) {
    if (pending.slice < first_slice) append(submissions, pending.submission.header);
  });
  buffers.emplace_back(std::move(submissions));
  for (const Slice& slice : slices_) buffers.push_back(slice.events);
  return buffers;
}

}  // namespace xpu::profiler
