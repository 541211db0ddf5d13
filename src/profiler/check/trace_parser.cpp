#include "profiler/check/trace_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "profiler/check/decimal_time.hpp"

namespace xpu::profiler {
namespace {

using Type = TraceValue::Type;
using Json = nlohmann::json;

constexpr std::size_t kDeepestValue = 3;

/// Follows the text's structure by depth alone; the library calls the members without `_` and stops when one returns false.
class Handler {
 public:
  explicit Handler(const TraceHandlers& handlers) : handlers_(handlers) {}

  bool null() { return scalar(Type::null, "null"); }
  bool boolean(bool value) { return scalar(Type::boolean, value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return number(fmt::format_int(value).c_str(), value); }
  bool number_unsigned(std::uint64_t value) {
    const std::optional<std::int64_t> integer =
        value <= INT64_MAX ? std::optional(static_cast<std::int64_t>(value)) : std::optional<std::int64_t>();
    return number(fmt::format_int(value).c_str(), integer);
  }
  bool number_float(double /*value*/, const std::string& text) { return number(text, std::nullopt); }
  bool string(const std::string& text) { return scalar(Type::text, text); }
  bool binary(const Json::binary_t& /*bytes*/) { return true; }  // JSON has none

  bool start_object(std::size_t /*size*/) { return start(Type::object); }
  bool start_array(std::size_t /*size*/) { return start(Type::array); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(const std::string& text) {
    if (!in_events()) {
      if (depth_ <= kDeepestValue) set_key(depth_ - 1, text);
    } else if (depth_ == event_depth() && event_.is_object) {
      slot_ = slot_of_event(text);
    } else if (in_args_ && depth_ == event_depth() + 1) {
      slot_ = slot_of_args(text);
    }
    return true;
  }
  template <typename Exception>
  bool parse_error(std::size_t byte, const std::string& /*token*/, const Exception& exception) {
    std::string_view reason = exception.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
    if (const std::size_t at = reason.find("column "); at != std::string_view::npos) {
      if (const std::size_t colon = reason.find(": ", at); colon != std::string_view::npos) reason.remove_prefix(colon + 2);
    } else if (const std::size_t bracket = reason.find("] "); bracket != std::string_view::npos) {
      reason.remove_prefix(bracket + 2);
    }
    constexpr std::size_t kLongestReason = 200;
    parsed_.problem = fmt::format("byte {}: {}", byte, reason.substr(0, kLongestReason));
    return false;
  }

  ParsedTrace take() { return std::move(parsed_); }

 private:
  static constexpr std::size_t kRootDepth = 1;

  bool in_events() const { return events_depth_ != 0; }
  std::size_t event_depth() const { return events_depth_ + 1; }

  void set_key(std::size_t level, std::string_view text) {
    path_[level] = text;
    path_length_ = level + 1;
  }

  TraceValue* slot_of_event(std::string_view key) {
    if (key == "ph") return &event_.phase;
    if (key == "name") return &event_.name;
    if (key == "cat") return &event_.category;
    if (key == "pid") return &event_.pid;
    if (key == "tid") return &event_.tid;
    if (key == "ts") return &event_.time;
    if (key == "dur") return &event_.duration;
    if (key == "id") return &event_.id;
    if (key == "bp") return &event_.binding_point;
    if (key == "args") return &event_.args;
    return nullptr;
  }
  TraceValue* slot_of_args(std::string_view key) {
    TraceEvent::Args& args = event_.details;
    if (key == "correlation") return &args.correlation;
    if (key == "device") return &args.device;
    if (key == "clock error ns") return &args.clock_error_ns;
    if (key == "name") return &args.name;
    if (key == "labels") return &args.labels;
    if (key == "sort_index") return &args.sort_index;
    return nullptr;
  }

  bool number(std::string_view text, std::optional<std::int64_t> integer) {
    if (TraceValue* value = place_for(Type::number)) {
      value->text = text;
      value->integer = integer;
      value->thousandths = thousandths(text);
      hand_over(*value);
    }
    return true;
  }
  bool scalar(Type type, std::string_view text) {
    if (TraceValue* value = place_for(type)) {
      value->text = text;
      hand_over(*value);
    }
    return true;
  }

  /// Where the value that comes now belongs, or null when no rule looks at it.
  TraceValue* place_for(Type type) {
    TraceValue* value = nullptr;
    if (in_events()) {
      if (depth_ == events_depth_) {
        finish_event();  // an element that is no object
      } else if (depth_ == event_depth() && event_.is_object) {
        value = std::exchange(slot_, nullptr);
      } else if (in_args_ && depth_ == event_depth() + 1) {
        event_.details.has_number = event_.details.has_number || type == Type::number;
        value = std::exchange(slot_, nullptr);
      }
    } else if (depth_ >= kRootDepth && depth_ <= kDeepestValue) {
      if (is_array_[depth_ - 1]) count_element();
      value = &document_value_;
    }
    if (value == nullptr) return nullptr;
    value->clear();
    value->type = type;
    return value;
  }
  void hand_over(const TraceValue& value) {
    if (&value == &document_value_ && handlers_.value) handlers_.value(std::span(path_).first(path_length_), value);
  }
  void count_element() { set_key(depth_ - 1, fmt::format_int(elements_[depth_ - 1]++).c_str()); }

  bool start(Type type) {
    const bool begins_events = !in_events() && type == Type::array &&
                               (depth_ == 0 || (depth_ == kRootDepth && !is_array_[0] && path_length_ == 1 && path_[0] == "traceEvents"));
    if (begins_events) {
      parsed_.has_events = true;
      events_depth_ = depth_ + 1;
    } else if (in_events() && depth_ == events_depth_) {
      event_.clear();
      event_.is_object = type == Type::object;
    } else if (in_events() && depth_ == event_depth()) {
      in_args_ = event_.is_object && slot_ == &event_.args && type == Type::object;
      place_for(type);
    } else if (in_events()) {
      place_for(type);
    } else if (depth_ >= kRootDepth && depth_ < kDeepestValue && is_array_[depth_ - 1]) {
      count_element();
    }
    if (depth_ < kDeepestValue) {
      is_array_[depth_] = type == Type::array;
      elements_[depth_] = 0;
    }
    ++depth_;
    return true;
  }

  bool end() {
    --depth_;
    if (in_events()) {
      if (depth_ + 1 == events_depth_) {
        events_depth_ = 0;
      } else if (depth_ == events_depth_) {
        finish_event();
      } else if (depth_ == event_depth()) {
        in_args_ = false;
      }
    }
    if (!in_events()) path_length_ = std::min(path_length_, depth_);
    return true;
  }

  void finish_event() {
    event_.index = parsed_.events++;
    if (handlers_.event) handlers_.event(event_);
    event_.clear();
    slot_ = nullptr;
  }

  const TraceHandlers& handlers_;
  ParsedTrace parsed_;
  TraceEvent event_;
  TraceValue document_value_;
  TraceValue* slot_ = nullptr;  // of the key that was read last
  std::size_t depth_ = 0;       // open objects and arrays
  std::size_t events_depth_ = 0;
  bool in_args_ = false;
  std::array<std::string, kDeepestValue> path_;
  std::size_t path_length_ = 0;
  std::array<bool, kDeepestValue> is_array_{};
  std::array<std::uint64_t, kDeepestValue> elements_{};
};

}  // namespace

ParsedTrace parse_trace(std::istream& input, const TraceHandlers& handlers) {
  Handler handler(handlers);
  static_cast<void>(Json::sax_parse(input, &handler));
  return handler.take();
}

}  // namespace xpu::profiler
