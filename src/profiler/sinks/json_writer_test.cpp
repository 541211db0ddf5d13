#include "profiler/sinks/json_writer.hpp"
#include "xpu/base/text.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "xpu/base/text.hpp"

namespace xpu::profiler {
namespace {

using Json = nlohmann::json;

template <typename Fill>
std::string written(Fill&& fill) {
  std::string text;
  {
    JsonWriter out([&](std::string_view piece) { text += piece; });
    fill(out);
  }
  return text;
}

TEST(JsonWriterTest, EscapesWhatReadersChokeOn) {
  EXPECT_EQ(json_string("plain"), R"("plain")");
  EXPECT_EQ(json_string("\"\\/\n\r\t"), R"("\"\\/\n\r\t")");
  EXPECT_EQ(json_string(std::string_view("\0\x1b\x7f", 3)), "\"\\u0000\\u001b\\u007f\"");
  EXPECT_EQ(json_string("µ→😀"), "\"µ→😀\"");
}

TEST(JsonWriterTest, ReplacesEachByteThatIsNotUtf8) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(json_string("a\xff"
                        "b"),
            "\"a" + bad + "b\"");
  EXPECT_EQ(json_string("\xc0\x80"), '"' + bad + bad + '"') << "an overlong form";
  EXPECT_EQ(json_string("\xed\xa0\x80"), '"' + bad + bad + bad + '"') << "a surrogate";
  EXPECT_EQ(json_string("\xf4\x90\x80\x80"), '"' + bad + bad + bad + bad + '"') << "beyond U+10FFFF";
  EXPECT_EQ(json_string("\xe2\x82"), '"' + bad + bad + '"') << "cut off";
}

TEST(JsonWriterTest, GivesEveryTextBackThroughAnotherReader) {
  for (std::uint32_t seed = 1; seed <= 5'000; ++seed) {
    std::mt19937 random(seed);
    std::string text(random() % 24, '\0');
    for (char& character : text) character = static_cast<char>(random() % 4 == 0 ? 0x80 + random() % 128 : random() % 128);
    const Json parsed = Json::parse(json_string(text), nullptr, false);
    ASSERT_TRUE(parsed.is_string()) << "seed " << seed;
    // What another implementation makes of the same bytes: dumping with replacement, then reading.
    std::string expected;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t length = std::max<std::size_t>(utf8_length(rest), 1);
      const std::string piece(rest.substr(0, length));
      const bool accepted = !Json::parse('"' + (length > 1 ? piece : std::string("x")) + '"', nullptr, false).is_discarded();
      EXPECT_TRUE(accepted) << "seed " << seed;
      const bool lone = length == 1 && static_cast<unsigned char>(piece[0]) >= 0x80;
      expected += lone ? "\xef\xbf\xbd" : piece;
      rest.remove_prefix(length);
    }
    EXPECT_EQ(parsed.get<std::string>(), expected) << "seed " << seed;
  }
}

TEST(JsonWriterTest, WritesTimesAsMicrosecondsWithThreeDecimals) {
  const auto microseconds = [](std::int64_t ns) { return written([&](JsonWriter& out) { out.microseconds(ns); }); };
  EXPECT_EQ(microseconds(0), "0.000");
  EXPECT_EQ(microseconds(7), "0.007");
  EXPECT_EQ(microseconds(12'345), "12.345");
  EXPECT_EQ(microseconds(-1), "-0.001");
  EXPECT_EQ(microseconds(INT64_MAX), "9223372036854775.807");
  EXPECT_EQ(microseconds(INT64_MIN), "-9223372036854775.808");
}

TEST(JsonWriterTest, WritesNumbersThatReadBackAsThemselves) {
  const auto real = [](double value) { return written([&](JsonWriter& out) { out.value(value); }); };
  EXPECT_EQ(real(0.5), "0.5");
  EXPECT_EQ(Json::parse(real(0.1 + 0.2)).get<double>(), 0.1 + 0.2);
  EXPECT_EQ(real(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(real(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(written([](JsonWriter& out) { out.value(UINT64_MAX); }), "18446744073709551615");
  EXPECT_EQ(written([](JsonWriter& out) { out.value(std::optional<int>()); }), "null");
}

TEST(JsonWriterTest, WritesIntegersOfEveryLength) {
  std::vector<std::uint64_t> numbers = {0, 1, UINT64_MAX};
  for (std::uint64_t power = 10; power < UINT64_MAX / 10; power *= 10)
    numbers.insert(numbers.end(), {power - 1, power, power + 1, power * 5});
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) numbers.push_back(random() >> random() % 64);
  for (const std::uint64_t number : numbers) {
    ASSERT_EQ(written([&](JsonWriter& out) { out.number(number); }), std::to_string(number));
    const auto negative = static_cast<std::int64_t>(std::uint64_t{0} - number);
    ASSERT_EQ(written([&](JsonWriter& out) { out.number(negative); }), std::to_string(negative));
    char decimals[8];
    std::snprintf(decimals, sizeof decimals, ".%03u", static_cast<unsigned>(number % 1'000));
    ASSERT_EQ(written([&](JsonWriter& out) { out.thousandths(number); }), std::to_string(number / 1'000) + decimals);
  }
  EXPECT_EQ(written([](JsonWriter& out) { out.number(std::int8_t{-128}); }), "-128");
  EXPECT_EQ(written([](JsonWriter& out) { out.number(INT32_MIN); }), "-2147483648");
}

TEST(JsonWriterTest, AppendsManyPiecesAsItWouldOneByOne) {
  const auto pieces = [](JsonWriter& out, std::string_view text) {
    out.append("{\"a\":", 5u, text, JsonWriter::Microseconds{-12'345}, ",", JsonWriter::Thousandths{7}, std::int16_t{-3}, "}");
  };
  EXPECT_EQ(written([&](JsonWriter& out) { pieces(out, ","); }), "{\"a\":5,-12.345,0.007-3}");
  // Wherever the end of the buffer falls, and with a text that does not fit into it.
  std::string expected;
  const std::string longer_than_the_buffer(1'000'000, 'x');
  const std::string text = written([&](JsonWriter& out) {
    for (std::size_t i = 0; i < 20'000; ++i) {
      const std::string_view part = i == 10'000 ? longer_than_the_buffer : std::string_view(longer_than_the_buffer).substr(0, i % 97);
      pieces(out, part);
      expected.append("{\"a\":5").append(part).append("-12.345,0.007-3}");
    }
  });
  EXPECT_TRUE(text == expected);
}

TEST(JsonWriterTest, PutsABlankBehindTheColonOfAKey) {
  EXPECT_EQ(written([](JsonWriter& out) {
              out.begin_object();
              out.member("rank", 3);
              out.end_object();
            }),
            R"({"rank": 3})");
}

TEST(JsonWriterTest, SplitsLongOutputIntoPieces) {
  std::size_t pieces = 0, bytes = 0;
  {
    JsonWriter out([&](std::string_view piece) {
      ++pieces;
      bytes += piece.size();
    });
    const std::string longer_than_the_buffer(1'000'000, 'x');
    out.raw("begin");
    out.raw(longer_than_the_buffer);
    for (int i = 0; i < 100'000; ++i) out.number(7);
  }
  EXPECT_GT(pieces, 2u);
  EXPECT_EQ(bytes, 5u + 1'000'000u + 100'000u);
}

Json random_value(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 7 : 5)) {
    case 0: return nullptr;
    case 1: return random() % 2 == 0;
    case 2: return static_cast<std::int64_t>(std::uint64_t{random()} << 32 | random());
    case 3: return static_cast<double>(random()) / 7;
    case 4: return std::string(random() % 5, static_cast<char>(random() % 128));
    case 5: {
      Json array = Json::array();
      for (std::uint32_t i = random() % 4; i > 0; --i) array.push_back(random_value(random, depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (std::uint32_t i = random() % 4; i > 0; --i) object["key \"" + std::to_string(i)] = random_value(random, depth - 1);
      return object;
    }
  }
}

void write_value(JsonWriter& out, const Json& value) {
  switch (value.type()) {
    case Json::value_t::boolean: out.value(value.get<bool>()); break;
    case Json::value_t::number_integer: out.value(value.get<std::int64_t>()); break;
    case Json::value_t::number_float: out.value(value.get<double>()); break;
    case Json::value_t::string: out.value(value.get<std::string>()); break;
    case Json::value_t::array:
      out.begin_array();
      for (const Json& item : value) write_value(out, item);
      out.end_array();
      break;
    case Json::value_t::object:
      out.begin_object();
      for (const auto& [name, member] : value.items()) {
        out.key(name);
        write_value(out, member);
      }
      out.end_object();
      break;
    default: out.null();
  }
}

TEST(JsonWriterTest, WritesAnyDocumentSoThatAnotherReaderSeesTheSame) {
  for (std::uint32_t seed = 1; seed <= 5'000; ++seed) {
    std::mt19937 random(seed);
    const Json value = random_value(random, 4);
    const std::string text = written([&](JsonWriter& out) { write_value(out, value); });
    const Json parsed = Json::parse(text, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << "seed " << seed << ": " << text;
    ASSERT_EQ(parsed, value) << "seed " << seed << ": " << text;
  }
}

}  // namespace
}  // namespace xpu::profiler
