#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace xpu::profiler {

/// Writes Protocol Buffers messages as a stream through one buffer, field by field. One owner at a time.
///
/// Messages nest as calls do:
///
///     out.message(kPacket, [&] { out.number(kTimestamp, ns); });
///
/// For the packets of which a trace has millions there is the same with `begin` and `end`, and with several numbers at a time: room is then
/// made once for all of them and, where fields and values are constants, nothing is left of writing them but the bytes.
///
/// The buffer is handed over by `flush_when_full` and grows to what is written between two calls of that.
class ProtoWriter {
  static constexpr std::size_t kFlushAt = std::size_t{1} << 17;

 public:
  using Flush = std::function<void(std::string_view)>;

  /// `capacity`: of the buffer at first, in bytes.
  explicit ProtoWriter(Flush flush, std::size_t capacity = 2 * kFlushAt) : flush_(std::move(flush)) { reserve(capacity); }
  ProtoWriter(const ProtoWriter&) = delete;
  ProtoWriter& operator=(const ProtoWriter&) = delete;

  /// Hands everything over; not to be called inside a message. What was not flushed is dropped by the destructor.
  void flush() {
    if (at_ != begin_.get()) flush_({reinterpret_cast<const char*>(begin_.get()), used()});
    at_ = begin_.get();
  }
  /// The same when it is worth it; to be called again and again, between messages that are no part of another one.
  void flush_when_full() {
    if (used() >= kFlushAt) [[unlikely]]
      flush();
  }

  /// Of type uint32, uint64, int32, int64, bool or an enumeration. A negative number takes ten bytes. More may follow: field, value, …
  [[gnu::always_inline]] void number(std::uint32_t field, std::integral auto value, std::integral auto... more) {
    at_ = put_numbers(room(longest_numbers(2 + sizeof...(more))), field, value, more...);
  }
  /// Of type double.
  void real(std::uint32_t field, double value) {
    static_assert(std::endian::native == std::endian::little && sizeof value == 8, "as it lies in memory");
    Byte* const at = put_key(room(kLongestKey + sizeof value), field, kFixed64);
    std::memcpy(at, &value, sizeof value);
    at_ = at + sizeof value;
  }
  /// Of type fixed64.
  void fixed(std::uint32_t field, std::uint64_t value) { real(field, std::bit_cast<double>(value)); }
  /// Of type string or bytes, as it is.
  void text(std::uint32_t field, std::string_view value) {
    at_ = put_varint(put_key(room(kLongestKey + kLongestVarint), field, kLengthDelimited), value.size());
    raw(value);
  }
  /// Fields that were written before.
  void raw(std::string_view fields) {
    if (fields.empty()) return;
    std::memcpy(room(fields.size()), fields.data(), fields.size());
    at_ += fields.size();
  }

  template <std::invocable WriteFields>
  void message(std::uint32_t field, WriteFields&& write_fields) {
    const Message message = begin(field);
    std::forward<WriteFields>(write_fields)();
    end(message);
  }
  /// A message of these numbers only: field, value, …
  [[gnu::always_inline]] void message(std::uint32_t field, std::uint32_t number_field, std::integral auto value,
                                      std::integral auto... more) {
    constexpr std::size_t kLongest = longest_numbers(2 + sizeof...(more));
    static_assert(kLongest < 0x80, "its length is one byte");
    Byte* const length = put_key(room(kLongestKey + 1 + kLongest), field, kLengthDelimited);
    at_ = put_numbers(length + 1, number_field, value, more...);
    *length = static_cast<Byte>(at_ - length - 1);
  }

  /// A message that is being written: where its fields begin.
  struct Message {
    std::size_t fields_at;
  };
  /// What is written from here to `end` are the fields of a message. The first ones may be numbers given here: field, value, …
  [[nodiscard, gnu::always_inline]] Message begin(std::uint32_t field, std::integral auto... numbers) {
    // Nearly every message is shorter than 128 bytes, so that its length is one byte; the others are moved.
    Byte* const at = put_key(room(kLongestKey + 1 + longest_numbers(sizeof...(numbers))), field, kLengthDelimited) + 1;
    at_ = put_numbers(at, numbers...);
    return {static_cast<std::size_t>(at - begin_.get())};
  }
  [[gnu::always_inline]] void end(Message message) {
    const std::size_t size = used() - message.fields_at;
    if (size < 0x80) [[likely]] {
      begin_[message.fields_at - 1] = static_cast<Byte>(size);
    } else {
      move_behind_length(message);
    }
  }

 private:
  // A type of its own, unlike char, which a compiler must take for an alias of the members: it would load them again after every byte.
  using Byte = char8_t;

  static constexpr std::size_t kLongestKey = 5, kLongestVarint = 10;
  enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

  /// Of so many fields and values.
  static constexpr std::size_t longest_numbers(std::size_t fields_and_values) {
    return fields_and_values / 2 * (kLongestKey + kLongestVarint);
  }
  [[gnu::always_inline]] static Byte* put_numbers(Byte* at) { return at; }
  [[gnu::always_inline]] static Byte* put_numbers(Byte* at, std::uint32_t field, std::integral auto value, std::integral auto... more) {
    // Negative ones are extended to 64 bits, whatever the field's width.
    const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    return put_numbers(put_varint(put_key(at, field, kVarint), bits), more...);
  }
  [[gnu::always_inline]] static Byte* put_varint(Byte* at, std::uint64_t value) {
    while (value >= 0x80) {
      *at++ = static_cast<Byte>((value & 0x7f) | 0x80);
      value >>= 7;
    }
    *at++ = static_cast<Byte>(value);
    return at;
  }
  /// Without a loop, which would not be folded for a field that is a constant.
  [[gnu::always_inline]] static Byte* put_key(Byte* at, std::uint32_t field, WireType type) {
    const std::uint32_t key = field << 3 | type;
    if (key < 0x80) {
      *at++ = static_cast<Byte>(key);
      return at;
    }
    *at++ = static_cast<Byte>((key & 0x7f) | 0x80);
    if (key < 0x4000) {
      *at++ = static_cast<Byte>(key >> 7);
      return at;
    }
    *at++ = static_cast<Byte>((key >> 7 & 0x7f) | 0x80);
    return put_varint(at, key >> 14);
  }

  std::size_t used() const { return static_cast<std::size_t>(at_ - begin_.get()); }
  [[gnu::always_inline]] Byte* room(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) [[unlikely]]
      reserve(std::max(2 * static_cast<std::size_t>(end_ - begin_.get()), used() + bytes));
    return at_;
  }
  [[gnu::noinline]] void reserve(std::size_t capacity) {
    std::unique_ptr<Byte[]> larger = std::make_unique_for_overwrite<Byte[]>(capacity);
    const std::size_t count = used();
    if (count != 0) std::memcpy(larger.get(), begin_.get(), count);
    begin_ = std::move(larger);
    at_ = begin_.get() + count;
    end_ = begin_.get() + capacity;
  }
  /// A length of more than one byte: the fields make room for it.
  [[gnu::noinline]] void move_behind_length(Message message) {
    const std::size_t size = used() - message.fields_at;
    Byte length[kLongestVarint];
    const auto length_bytes = static_cast<std::size_t>(put_varint(length, size) - length);
    room(kLongestVarint);
    Byte* const at = begin_.get() + message.fields_at - 1;
    std::memmove(at + length_bytes, at + 1, size);
    std::memcpy(at, length, length_bytes);
    at_ = at + length_bytes + size;
  }

  Flush flush_;
  std::unique_ptr<Byte[]> begin_;
  Byte *at_ = nullptr, *end_ = nullptr;
};

}  // namespace xpu::profiler
