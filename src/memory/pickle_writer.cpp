#include "memory/pickle_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace xpu::memory {
namespace {

/// Longer ones hardly ever come again.
constexpr std::size_t kMostRememberedTextBytes = 256;

template <std::size_t kBytes>
std::array<unsigned char, kBytes> little_endian(std::uint64_t value) {
  std::array<unsigned char, kBytes> bytes{};
  for (std::size_t index = 0; index < kBytes; ++index) bytes[index] = static_cast<unsigned char>(value >> (8 * index));
  return bytes;
}

/// Of this writer alone.
std::string unfinished(const std::string& path) {
  static constinit std::atomic<unsigned> last{0};
  return fmt::format("{}.{}.{}.unfinished", path, getpid(), last.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace

PickleWriter::PickleWriter(std::string path) : path_(std::move(path)), unfinished_path_(unfinished(path_)) {
  file_ = std::fopen(unfinished_path_.c_str(), "wbe");
  if (file_ == nullptr) error_ = errno;
  buffer_.reserve(kBufferBytes);
  bytes("\x80\x02", 2);  // PROTO 2
}

PickleWriter::~PickleWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(unfinished_path_.c_str());
}

void PickleWriter::flush() {
  if (error_ == 0 && std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) error_ = errno == 0 ? EIO : errno;
  buffer_.clear();
}

void PickleWriter::text(std::string_view value) {
  if (const auto known = texts_.find(value); known != texts_.end()) return recall(known->second);
  opcode('X');  // BINUNICODE
  const auto size = little_endian<4>(value.size());
  bytes(size.data(), size.size());
  bytes(value.data(), value.size());
  if (value.size() <= kMostRememberedTextBytes) texts_.emplace(value, remember());
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0) return integer(static_cast<std::uint64_t>(value));
  opcode('\x8a');  // LONG1, in two's complement
  opcode(8);
  const auto amount = little_endian<8>(static_cast<std::uint64_t>(value));
  bytes(amount.data(), amount.size());
}

void PickleWriter::integer(std::uint64_t value) {
  if (value <= std::numeric_limits<std::int32_t>::max()) {
    opcode('J');  // BININT
    const auto amount = little_endian<4>(value);
    return bytes(amount.data(), amount.size());
  }
  opcode('\x8a');  // LONG1: a ninth byte, so that the highest bit is no sign
  opcode(9);
  const auto amount = little_endian<8>(value);
  bytes(amount.data(), amount.size());
  opcode(0);
}

void PickleWriter::boolean(bool value) { opcode(value ? '\x88' : '\x89'); }

void PickleWriter::begin_dict() { bytes("}(", 2); }  // EMPTY_DICT MARK
void PickleWriter::end_dict() { opcode('u'); }       // SETITEMS
void PickleWriter::begin_list() { bytes("](", 2); }  // EMPTY_LIST MARK
void PickleWriter::end_list() { opcode('e'); }       // APPENDS

void PickleWriter::pair(std::uint64_t first, std::uint64_t second) {
  integer(first);
  integer(second);
  opcode('\x86');  // TUPLE2
}

std::uint32_t PickleWriter::remember() {
  opcode('r');  // LONG_BINPUT
  const auto name = little_endian<4>(remembered_);
  bytes(name.data(), name.size());
  return remembered_++;
}

void PickleWriter::recall(std::uint32_t name) {
  if (name < 256) {
    opcode('h');  // BINGET
    return opcode(static_cast<char>(name));
  }
  opcode('j');  // LONG_BINGET
  const auto value = little_endian<4>(name);
  bytes(value.data(), value.size());
}

Result<> PickleWriter::finish() {
  opcode('.');  // STOP
  flush();
  if (file_ != nullptr) {
    if (std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0 && rename(unfinished_path_.c_str(), path_.c_str()) != 0) error_ = errno;
    if (error_ != 0) unlink(unfinished_path_.c_str());
  }
  if (error_ == 0) return {};
  return Error{ErrorCode::unavailable, fmt::format("cannot write {}: {}", path_, std::strerror(error_)), error_};
}

}  // namespace xpu::memory
