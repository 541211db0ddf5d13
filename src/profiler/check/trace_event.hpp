#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xpu::profiler {

/// A value as the file has it.
struct TraceValue {
  enum class Type : std::uint8_t { missing, null, boolean, number, text, array, object };

  Type type = Type::missing;
  std::string text;                     ///< Of a text, or the digits of a number.
  std::optional<std::int64_t> integer;  ///< Of a number without fraction that fits.
  /// Of a number: 1,000 times as much (decimal_time.hpp), microseconds as nanoseconds; empty when that does not fit.
  std::optional<std::int64_t> thousandths;

  bool is(Type other) const noexcept { return type == other; }
  bool present() const noexcept { return type != Type::missing; }
  /// Ready for the next event; keeps the text's memory.
  void clear() noexcept {
    type = Type::missing;
    text.clear();
    integer.reset();
    thousandths.reset();
  }
};

/// The parts of an event that some rule looks at. One is used for all events of a file.
struct TraceEvent {
  std::uint64_t index = 0;
  bool is_object = false;  ///< False: the list held something else here, and nothing below is set.
  TraceValue phase, name, category, pid, tid, time, duration, id, binding_point, args;
  struct Args {
    TraceValue correlation, device, clock_error_ns;  // of slices
    TraceValue name, labels, sort_index;             // of metadata
    bool has_number = false;                         // of a counter
  } details;

  void clear() noexcept {
    is_object = false;
    for (TraceValue* value : {&phase, &name, &category, &pid, &tid, &time, &duration, &id, &binding_point, &args, &details.correlation,
                              &details.device, &details.clock_error_ns, &details.name, &details.labels, &details.sort_index})
      value->clear();
    details.has_number = false;
  }

  /// The phase's letter, or 0.
  char letter() const noexcept { return phase.is(TraceValue::Type::text) && phase.text.size() == 1 ? phase.text[0] : '\0'; }
  std::optional<std::int64_t> end_ns() const noexcept {
    if (!time.thousandths || !duration.thousandths) return std::nullopt;
    return *time.thousandths + *duration.thousandths;
  }
  bool is_device_work() const noexcept {
    return category.text == "kernel" || category.text == "gpu_memcpy" || category.text == "gpu_memset";
  }
  bool is_call() const noexcept { return category.text.ends_with("_runtime") || category.text.ends_with("_driver"); }
};

}  // namespace xpu::profiler
