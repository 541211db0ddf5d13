#include "profiler/test_support/perfetto_reader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace xpu::profiler::test_support {
namespace {

using std::to_string;

bool take_varint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

std::optional<ProtoMessage> ProtoMessage::parse(std::string_view bytes) {
  ProtoMessage message;
  while (!bytes.empty()) {
    std::uint64_t key = 0, value = 0;
    if (!take_varint(bytes, key)) return std::nullopt;
    const auto field = static_cast<std::uint32_t>(key >> 3);
    switch (key & 7) {
      case 0:
        if (!take_varint(bytes, value)) return std::nullopt;
        message.numbers_[field].push_back(value);
        break;
      case 1:
        if (bytes.size() < 8) return std::nullopt;
        std::memcpy(&value, bytes.data(), 8);
        bytes.remove_prefix(8);
        message.numbers_[field].push_back(value);
        break;
      case 2:
        if (!take_varint(bytes, value) || value > bytes.size()) return std::nullopt;
        message.texts_[field].push_back(bytes.substr(0, value));
        bytes.remove_prefix(value);
        break;
      default: return std::nullopt;
    }
  }
  return message;
}

std::uint64_t ProtoMessage::number(std::uint32_t field) const {
  const auto found = numbers_.find(field);
  return found == numbers_.end() ? 0 : found->second.back();
}
std::vector<std::uint64_t> ProtoMessage::numbers(std::uint32_t field) const {
  const auto found = numbers_.find(field);
  return found == numbers_.end() ? std::vector<std::uint64_t>() : found->second;
}
std::string ProtoMessage::text(std::uint32_t field) const {
  const auto found = texts_.find(field);
  return found == texts_.end() ? "" : std::string(found->second.back());
}
double ProtoMessage::real(std::uint32_t field) const { return std::bit_cast<double>(number(field)); }
ProtoMessage ProtoMessage::message(std::uint32_t field) const {
  const std::vector<ProtoMessage> all = messages(field);
  return all.empty() ? ProtoMessage() : all.back();
}
std::vector<ProtoMessage> ProtoMessage::messages(std::uint32_t field) const {
  std::vector<ProtoMessage> all;
  const auto found = texts_.find(field);
  if (found == texts_.end()) return all;
  for (const std::string_view bytes : found->second) all.push_back(parse(bytes).value_or(ProtoMessage()));
  return all;
}

std::vector<PerfettoEvent> PerfettoTrace::of_category(std::string_view category) const {
  std::vector<PerfettoEvent> found;
  for (const auto* events : {&slices, &commands, &instants}) {
    for (const PerfettoEvent& event : *events) {
      if (event.category == category) found.push_back(event);
    }
  }
  return found;
}

namespace {

// The numbers are written out here once more: a test that took the writer's would not see a wrong one.
class Reader {
 public:
  PerfettoTrace read(std::string_view bytes);

 private:
  /// What a number stands for must have been said before it is used, in the order of the file; slices are paired in the order of time.
  struct Timed {
    PerfettoEvent event;
    std::uint64_t track = 0, type = kRenderStage;
  };
  static constexpr std::uint64_t kRenderStage = 0, kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;

  void complain(std::string problem) { trace_.problems.push_back(std::move(problem)); }
  void take_clock(const ProtoMessage& snapshot);
  void take_interned(const ProtoMessage& data);
  void take_track(const ProtoMessage& descriptor);
  void take_track_event(std::int64_t ns, const ProtoMessage& event);
  void take_render_stage(std::int64_t ns, const ProtoMessage& stage);
  void place(Timed& timed);
  std::int64_t time_of(const ProtoMessage& packet);
  const ProtoMessage& interned(std::uint32_t field, std::uint64_t id);
  std::string value_of(const ProtoMessage& annotation);
  std::string interned_text(std::uint32_t field, std::uint64_t id) { return interned(field, id).text(2); }

  PerfettoTrace trace_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, ProtoMessage> interned_;
  std::map<std::uint64_t, std::int64_t> clocks_;
  std::uint64_t default_clock_ = 0;
  std::vector<Timed> timed_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;  // by track: index of the slice
};

void Reader::take_clock(const ProtoMessage& snapshot) {
  for (const ProtoMessage& clock : snapshot.messages(1)) clocks_[clock.number(1)] = static_cast<std::int64_t>(clock.number(2));
  if (snapshot.number(2) != 3) complain("the trace's clock is not the monotonic one");
}

std::int64_t Reader::time_of(const ProtoMessage& packet) {
  const std::uint64_t clock = packet.has(58) ? packet.number(58) : default_clock_;
  if (!clocks_.contains(clock)) complain("clock " + to_string(clock) + " is not known");
  return static_cast<std::int64_t>(packet.number(8)) - clocks_[clock] + clocks_[3];
}

void Reader::take_interned(const ProtoMessage& data) {
  for (const std::uint32_t field : {1u, 2u, 3u, 23u, 24u, 29u, 1000u, 1001u}) {
    for (const ProtoMessage& entry : data.messages(field)) {
      if (!interned_.try_emplace({field, entry.number(1)}, entry).second)
        complain("number " + to_string(entry.number(1)) + " of field " + to_string(field) + " is given twice");
    }
  }
}

const ProtoMessage& Reader::interned(std::uint32_t field, std::uint64_t id) {
  const auto [entry, missing] = interned_.try_emplace({field, id});
  if (missing) complain("number " + to_string(id) + " of field " + to_string(field) + " stands for nothing");
  return entry->second;
}

void Reader::take_track(const ProtoMessage& descriptor) {
  PerfettoTrack track;
  track.parent = descriptor.number(5);
  track.counter = descriptor.has(8);
  track.name = descriptor.text(2);
  if (track.parent != 0 && !trace_.tracks.contains(track.parent)) complain("track " + track.name + " comes before its parent");
  if (descriptor.has(3)) {
    track.pid = descriptor.message(3).number(1);
    track.name = descriptor.message(3).text(6);
  } else if (descriptor.has(4)) {
    track.pid = descriptor.message(4).number(1);
    track.tid = descriptor.message(4).number(2);
    track.name = descriptor.message(4).text(5);
  } else if (track.parent != 0) {
    track.pid = trace_.tracks[track.parent].pid;
  }
  if (!trace_.tracks.emplace(descriptor.number(1), track).second) complain("track " + track.name + " is described twice");
}

std::string Reader::value_of(const ProtoMessage& annotation) {
  if (annotation.has(17)) return interned_text(29, annotation.number(17));
  if (annotation.has(2)) return annotation.number(2) == 0 ? "false" : "true";
  if (annotation.has(3)) return to_string(annotation.number(3));
  if (annotation.has(4)) return to_string(static_cast<std::int64_t>(annotation.number(4)));
  if (annotation.has(5)) return to_string(annotation.real(5));
  if (annotation.has(6)) return annotation.text(6);
  std::string list;
  for (const ProtoMessage& item : annotation.messages(12)) list += (list.empty() ? "" : ",") + value_of(item);
  return '[' + list + ']';
}

void Reader::take_track_event(std::int64_t ns, const ProtoMessage& message) {
  Timed timed;
  timed.track = message.number(11);
  timed.type = message.number(9);
  if (!trace_.tracks.contains(timed.track)) complain("track " + to_string(timed.track) + " is not described");
  const PerfettoTrack& track = trace_.tracks[timed.track];
  PerfettoEvent& event = timed.event;
  event.track = track.name;
  event.pid = track.pid;
  event.start_ns = ns;
  if (timed.type == kCounter) {
    if (!track.counter) complain("a value on " + track.name + ", which is no counter");
    event.name = track.name;
    event.value = message.has(44) ? message.real(44) : static_cast<double>(message.number(30));
  } else if (timed.type != kEnd) {
    event.category = interned_text(1, message.number(3));
    event.name = message.has(23) ? message.text(23) : interned_text(2, message.number(10));
    for (const ProtoMessage& annotation : message.messages(4)) {
      event.arguments[annotation.has(10) ? annotation.text(10) : interned_text(3, annotation.number(1))] = value_of(annotation);
    }
    event.flow_ids = message.numbers(47);
    event.submitted_event_id = message.message(3000).number(1);
  }
  timed_.push_back(std::move(timed));
}

void Reader::place(Timed& timed) {
  switch (timed.type) {
    case kRenderStage: trace_.commands.push_back(std::move(timed.event)); return;
    case kInstant: trace_.instants.push_back(std::move(timed.event)); return;
    case kCounter: trace_.counters.push_back(std::move(timed.event)); return;
    case kBegin:
      open_[timed.track].push_back(trace_.slices.size());
      trace_.slices.push_back(std::move(timed.event));
      return;
    case kEnd: {
      std::vector<std::size_t>& open = open_[timed.track];
      if (open.empty()) return complain("an end without a beginning on " + timed.event.track);
      PerfettoEvent& slice = trace_.slices[open.back()];
      slice.duration_ns = static_cast<std::uint64_t>(timed.event.start_ns - slice.start_ns);
      open.pop_back();
      return;
    }
    default: complain("an event of type " + to_string(timed.type));
  }
}

void Reader::take_render_stage(std::int64_t ns, const ProtoMessage& stage) {
  Timed timed;
  PerfettoEvent& event = timed.event;
  event.event_id = stage.number(1);
  const std::uint64_t device = stage.number(11);
  if (device < trace_.devices.size()) event.device = trace_.devices[device];
  event.start_ns = ns;
  event.duration_ns = stage.number(2);
  event.track = interned_text(24, stage.number(13));
  event.name = interned_text(24, stage.number(14));
  event.category = interned(24, stage.number(14)).text(3);
  event.pid = interned(23, stage.number(5)).number(2);
  if (stage.has(19)) event.kernel_name = interned_text(1000, stage.number(19));
  if (stage.number(10) != event.event_id) complain("the submission of " + event.name + " is not its event");
  const ProtoMessage launch = stage.message(21);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    if (launch.message(1).has(i)) event.grid.push_back(launch.message(1).number(i));
    if (launch.message(2).has(i)) event.workgroup.push_back(launch.message(2).number(i));
  }
  std::vector<ProtoMessage> arguments = launch.messages(3);
  if (stage.has(19)) {
    for (const ProtoMessage& argument : interned(1000, stage.number(19)).messages(5)) arguments.push_back(argument);
  }
  for (const ProtoMessage& argument : arguments) {
    event.arguments[interned_text(1001, argument.number(1))] = argument.has(7)   ? interned_text(29, argument.number(7))
                                                               : argument.has(5) ? to_string(argument.real(5))
                                                               : argument.has(3) ? to_string(static_cast<std::int64_t>(argument.number(3)))
                                                                                 : to_string(argument.number(4));
  }
  timed_.push_back(std::move(timed));
}

PerfettoTrace Reader::read(std::string_view bytes) {
  const std::optional<ProtoMessage> file = ProtoMessage::parse(bytes);
  if (!file) {
    complain("not a message");
    return trace_;
  }
  bool first = true;
  for (const ProtoMessage& packet : file->messages(1)) {
    if (packet.number(10) != 1) complain("a packet of sequence " + to_string(packet.number(10)));
    if (packet.number(13) != (first ? 1u : 2u)) complain("a packet with flags " + to_string(packet.number(13)));
    first = false;
    if (packet.has(59)) default_clock_ = packet.message(59).number(58);
    if (packet.has(6)) take_clock(packet.message(6));
    if (packet.has(12)) take_interned(packet.message(12));
    if (packet.has(60)) take_track(packet.message(60));
    if (packet.has(128)) trace_.devices.clear();  // the last list counts
    for (const ProtoMessage& gpu : packet.message(128).messages(1)) trace_.devices.push_back(gpu.text(1));
    if (packet.has(11)) take_track_event(time_of(packet), packet.message(11));
    if (packet.has(53)) take_render_stage(time_of(packet), packet.message(53));
  }
  std::stable_sort(timed_.begin(), timed_.end(), [](const Timed& a, const Timed& b) { return a.event.start_ns < b.event.start_ns; });
  for (Timed& timed : timed_) place(timed);
  for (const auto& [uuid, open] : open_) {
    if (!open.empty()) complain("a slice on " + trace_.tracks[uuid].name + " has no end");
  }
  return std::move(trace_);
}

}  // namespace

PerfettoTrace read_perfetto(std::string_view bytes) { return Reader().read(bytes); }

}  // namespace xpu::profiler::test_support
