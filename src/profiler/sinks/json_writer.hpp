#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "profiler/sinks/decimal.hpp"
#include "profiler/sinks/json_text.hpp"

namespace xpu::profiler {

/// Writes JSON as a stream through one buffer. One owner at a time.
///
/// Two levels, freely mixed: `begin_object`, `key`, `value` … know where commas belong; `raw`, `number`, `microseconds` and `append`, which
/// takes any of their arguments at once, append text as it is, for the events of a trace, which are put together from pieces prepared
/// beforehand (formatting a name again for each of a million events costs more than all the rest).
class JsonWriter {
 public:
  using Flush = std::function<void(std::string_view)>;

  explicit JsonWriter(Flush flush) : flush_(std::move(flush)), buffer_(std::make_unique_for_overwrite<char[]>(kCapacity)) {}
  ~JsonWriter() { flush(); }
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  /// Hands everything over; also done by the destructor.
  void flush() {
    if (used_ != 0) flush_({buffer_.get(), used_});
    used_ = 0;
  }

  void raw(std::string_view text) {
    if (text.size() > kCapacity - used_) {
      flush();
      if (text.size() > kCapacity) {
        flush_(text);
        return;
      }
    }
    std::memcpy(buffer_.get() + used_, text.data(), text.size());
    used_ += text.size();
  }

  void number(std::integral auto value) { append(value); }

  /// The shortest text that reads back as the same number; null for what JSON has no number for.
  void real(double value) {
    if (!std::isfinite(value)) return raw("null");
    char* const at = room(kLongestNumber);
    advance(std::to_chars(at, at + kLongestNumber, value).ptr);
  }

  /// Nanoseconds as microseconds with three decimals: "12.345".
  struct Microseconds {
    std::int64_t ns;
  };
  void microseconds(std::int64_t ns) { append(Microseconds{ns}); }
  /// value / 1000, exactly.
  struct Thousandths {
    std::uint64_t value;
  };
  void thousandths(std::uint64_t value) { append(Thousandths{value}); }

  /// Texts, integers, `Microseconds` and `Thousandths`, one after the other: room is made once for all of them.
  template <typename... Pieces>
  [[gnu::always_inline]] void append(const Pieces&... pieces) {
    const std::size_t longest = (longest_of(pieces) + ...);
    if (longest > kCapacity - used_) [[unlikely]] {
      flush();
      if (longest > kCapacity) {
        (append_alone(pieces), ...);
        return;
      }
    }
    char* at = buffer_.get() + used_;
    ((at = put(at, pieces)), ...);
    advance(at);
  }

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name) {
    separate();
    raw(json_string(name));
    raw(": ");
    after_key_ = true;
  }
  void value(std::string_view text) {
    separate();
    raw(json_string(text));
  }
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(bool truth) {
    separate();
    raw(truth ? "true" : "false");
  }
  template <typename Number>
    requires(std::integral<Number> && !std::same_as<Number, bool>)
  void value(Number number_value) {
    separate();
    number(number_value);
  }
  void value(double number_value) {
    separate();
    real(number_value);
  }
  /// A value that is JSON already.
  void prepared_value(std::string_view json) {
    separate();
    raw(json);
  }
  void null() {
    separate();
    raw("null");
  }
  template <typename Value>
  void value(const std::optional<Value>& optional_value) {
    if (optional_value) {
      value(*optional_value);
    } else {
      null();
    }
  }
  template <typename Value>
  void member(std::string_view name, const Value& member_value) {
    key(name);
    value(member_value);
  }

 private:
  static constexpr std::size_t kCapacity = std::size_t{1} << 17;
  static constexpr std::size_t kLongestNumber = 32;

  static std::size_t longest_of(std::string_view text) { return text.size(); }
  static std::size_t longest_of(std::integral auto) { return kLongestNumber; }
  static std::size_t longest_of(Microseconds) { return kLongestNumber; }
  static std::size_t longest_of(Thousandths) { return kLongestNumber; }

  [[gnu::always_inline]] static char* put(char* at, std::string_view text) {
    std::memcpy(at, text.data(), text.size());
    return at + text.size();
  }
  [[gnu::always_inline]] static char* put(char* at, std::integral auto value) {
    auto magnitude = static_cast<std::uint64_t>(value);
    if (value < 0) {
      *at++ = '-';
      magnitude = std::uint64_t{0} - magnitude;
    }
    return put_decimal(at, magnitude);
  }
  [[gnu::always_inline]] static char* put(char* at, Microseconds time) {
    auto magnitude = static_cast<std::uint64_t>(time.ns);
    if (time.ns < 0) {
      *at++ = '-';
      magnitude = std::uint64_t{0} - magnitude;
    }
    return put(at, Thousandths{magnitude});
  }
  [[gnu::always_inline]] static char* put(char* at, Thousandths number) { return put_thousandths(at, number.value); }

  void append_alone(std::string_view text) { raw(text); }
  void append_alone(const auto& number) { append(number); }

  char* room(std::size_t bytes) {
    if (bytes > kCapacity - used_) flush();
    return buffer_.get() + used_;
  }
  void advance(const char* end) { used_ = static_cast<std::size_t>(end - buffer_.get()); }

  void separate() {
    if (after_key_) {
      after_key_ = false;
      return;
    }
    if (needs_comma_) raw(", ");
    needs_comma_ = true;
  }
  void open(char bracket) {
    separate();
    raw({&bracket, 1});
    needs_comma_ = false;
  }
  void close(char bracket) {
    raw({&bracket, 1});
    needs_comma_ = true;
  }

  Flush flush_;
  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
  bool needs_comma_ = false, after_key_ = false;
};

}  // namespace xpu::profiler
