#include "profiler/sinks/proto_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "profiler/test_support/perfetto_reader.hpp"

namespace xpu::profiler {
namespace {

using test_support::ProtoMessage;

/// What `write` wrote.
template <typename Write>
std::string proto_bytes(Write&& write) {
  std::string bytes;
  ProtoWriter out([&](std::string_view piece) { bytes += piece; });
  write(out);
  out.flush();
  return bytes;
}

TEST(ProtoWriterTest, WritesTheBytesOfTheSpecification) {
  EXPECT_EQ(proto_bytes([](ProtoWriter& out) { out.number(1, 150u); }), "\x08\x96\x01");
  EXPECT_EQ(proto_bytes([](ProtoWriter& out) { out.number(1, 0); }), std::string("\x08\x00", 2));
  EXPECT_EQ(proto_bytes([](ProtoWriter& out) { out.text(2, "testing"); }), "\x12\x07testing");
  EXPECT_EQ(proto_bytes([](ProtoWriter& out) { out.message(3, [&] { out.number(1, 150u); }); }), "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(proto_bytes([](ProtoWriter& out) { out.number(3000, true); }), "\xc0\xbb\x01\x01");
  EXPECT_EQ(proto_bytes([](ProtoWriter& out) { out.number(1, -1); }), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
      << "64 bits for int32 too";
  EXPECT_EQ(proto_bytes([](ProtoWriter& out) { out.real(1, 1.0); }), std::string("\x09\x00\x00\x00\x00\x00\x00\xf0\x3f", 9));
}

TEST(ProtoWriterTest, KeepsEveryNumber) {
  std::vector<std::uint64_t> numbers = {0, 1, 127, 128, 16'383, 16'384, std::numeric_limits<std::uint64_t>::max()};
  for (int bit = 0; bit < 64; ++bit) numbers.push_back(std::uint64_t{1} << bit);
  for (const std::uint64_t number : numbers) {
    const std::string bytes = proto_bytes([&](ProtoWriter& out) { out.number(7, number); });
    EXPECT_EQ(ProtoMessage::parse(bytes)->number(7), number);
  }
}

TEST(ProtoWriterTest, WritesTheSameWhetherNumbersComeOneByOneOrTogether) {
  const auto one_by_one = [](ProtoWriter& out) {
    out.message(3, [&] {
      out.number(1, -5);
      out.message(3000, [&] {
        out.number(2, 300u);
        out.number(16, std::uint64_t{1} << 40);
      });
      out.number(5, 6);
      out.number(300'000, 7);
    });
  };
  const auto together = [](ProtoWriter& out) {
    const ProtoWriter::Message message = out.begin(3, 1u, -5);
    out.message(3000, 2, 300u, 16u, std::uint64_t{1} << 40);
    out.number(5, 6, 300'000u, 7);
    out.end(message);
  };
  EXPECT_EQ(proto_bytes(together), proto_bytes(one_by_one));
  EXPECT_EQ(proto_bytes([&](ProtoWriter& out) { out.raw(proto_bytes(together)); }), proto_bytes(together));
}

TEST(ProtoWriterTest, GrowsWhateverIsWritten) {
  const std::string text(40, 'x');
  const auto write = [&](ProtoWriter& out) {
    for (std::uint32_t i = 1; i < 200; ++i) {
      const ProtoWriter::Message message = out.begin(1, i, i, 1'000 * i, UINT64_MAX);
      // Behind fields that leave no more room than they need.
      out.raw(text);
      out.real(2, i);
      out.raw(text);
      out.text(3, text);
      out.message(4, 5, i, 6u, i);
      out.raw(text);
      out.number(7, -1);
      out.end(message);
    }
  };
  for (std::size_t capacity = 1; capacity < 300; ++capacity) {
    std::string bytes;
    ProtoWriter out([&](std::string_view piece) { bytes += piece; }, capacity);
    write(out);
    out.flush();
    ASSERT_EQ(bytes, proto_bytes(write)) << "from a buffer of " << capacity;
  }
}

TEST(ProtoWriterTest, NestsMessagesOfEveryLength) {
  // Around the lengths at which the length itself grows.
  for (const std::size_t size :
       {0, 1, 120, 122, 123, 124, 125, 126, 127, 128, 129, 16'370, 16'380, 16'381, 16'382, 16'383, 16'384, 300'000}) {
    const std::string text(size, 'x');
    const std::string bytes = proto_bytes([&](ProtoWriter& out) {
      out.message(1, [&] {
        out.number(1, 5);
        out.message(2, [&] { out.message(3, [&] { out.text(4, text); }); });
        out.number(5, 6);
      });
    });
    const auto outer = ProtoMessage::parse(bytes);
    ASSERT_TRUE(outer) << size;
    const ProtoMessage message = outer->message(1);
    EXPECT_EQ(message.number(1), 5u);
    EXPECT_EQ(message.message(2).message(3).text(4), text);
    EXPECT_EQ(message.number(5), 6u) << size;
  }
}

TEST(ProtoWriterTest, HandsOverWholeMessagesAndKeepsNoMoreThanItsBuffer) {
  std::vector<std::string> pieces;
  ProtoWriter out([&](std::string_view piece) { pieces.emplace_back(piece); });
  std::size_t messages = 0;
  for (int i = 0; i < 20'000; ++i) {
    out.message(1, [&] { out.text(2, std::string(50, 'x')); });
    out.flush_when_full();
  }
  out.flush();
  for (const std::string& piece : pieces) {
    EXPECT_LE(piece.size(), std::size_t{1} << 18);
    const auto parsed = ProtoMessage::parse(piece);
    ASSERT_TRUE(parsed) << "a piece ends inside a message";
    messages += parsed->messages(1).size();
  }
  EXPECT_GT(pieces.size(), 5u);
  EXPECT_EQ(messages, 20'000u);
}

}  // namespace
}  // namespace xpu::profiler
