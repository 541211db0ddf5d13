#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Reads what the Perfetto sink wrote, for tests: first any Protocol Buffers message, then a trace as Perfetto's own reader takes it.
namespace xpu::profiler::test_support {

/// A message whose fields may be of any type. Texts are views into the bytes that were parsed.
class ProtoMessage {
 public:
  /// Empty when the bytes are not a message.
  static std::optional<ProtoMessage> parse(std::string_view bytes);

  bool has(std::uint32_t field) const { return numbers_.contains(field) || texts_.contains(field); }
  /// The only value of the field; 0, "" or an empty message when there is none.
  std::uint64_t number(std::uint32_t field) const;
  std::vector<std::uint64_t> numbers(std::uint32_t field) const;
  std::string text(std::uint32_t field) const;
  double real(std::uint32_t field) const;
  ProtoMessage message(std::uint32_t field) const;
  std::vector<ProtoMessage> messages(std::uint32_t field) const;

 private:
  std::map<std::uint32_t, std::vector<std::uint64_t>> numbers_;  // varint and 64-bit
  std::map<std::uint32_t, std::vector<std::string_view>> texts_;
};

struct PerfettoTrack {
  std::uint64_t parent = 0;
  std::string name;  ///< Of the track, its process or its thread.
  std::uint64_t pid = 0, tid = 0;
  bool counter = false;
};

/// A slice of a thread or the device, an instant or a value of a counter. Values of arguments as text.
struct PerfettoEvent {
  std::string track, category, name;
  std::uint64_t pid = 0;  ///< Of its track or context.
  std::int64_t start_ns = 0;
  std::uint64_t duration_ns = 0;
  double value = 0;
  std::map<std::string, std::string> arguments;
  std::uint64_t event_id = 0;            ///< Of a command.
  std::string device;                    ///< Of a command.
  std::uint64_t submitted_event_id = 0;  ///< Of a call; 0: none.
  std::vector<std::uint64_t> flow_ids;   ///< Of a slice.
  std::string kernel_name;               ///< Of a kernel, as the driver knows it.
  std::vector<std::uint64_t> grid, workgroup;
};

struct PerfettoTrace {
  std::vector<PerfettoEvent> slices, commands, instants, counters;
  std::map<std::uint64_t, PerfettoTrack> tracks;
  std::vector<std::string> devices;
  /// What a reader would complain about: numbers without a text, ends without a beginning, tracks without a description.
  std::vector<std::string> problems;

  std::vector<PerfettoEvent> of_category(std::string_view category) const;
};

/// Sorts by time, keeping the order of equal ones, and pairs ends with the innermost open slice of their track, as Perfetto does.
PerfettoTrace read_perfetto(std::string_view bytes);

}  // namespace xpu::profiler::test_support
