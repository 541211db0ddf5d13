#include "xpu/memory/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "xpu/base/text.hpp"

namespace xpu::memory {
namespace {

using testing::HasSubstr;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kGibibyte = std::size_t{1} << 30;

/// "" where it is accepted.
std::string refusal(std::string_view text) {
  const Result<Config> config = parse_config(text);
  if (config) return "";
  EXPECT_EQ(config.error().code, ErrorCode::invalid_argument) << text;
  return config.error().message;
}

std::string refusal(const Config& config) {
  const Result<> checked = check_config(config);
  return checked ? "" : checked.error().message;
}

std::uint32_t divisions_at(const Config& config, std::size_t mebibytes) {
  return config.roundup_power2_divisions[static_cast<std::size_t>(std::countr_zero(mebibytes))];
}

TEST(MemoryConfigTest, NothingIsTheDefault) {
  for (const char* text : {"", " ", ",", " , ,"}) EXPECT_EQ(parse_config(text).value(), Config()) << "'" << text << "'";
  EXPECT_EQ(to_string(Config()), "");
  EXPECT_TRUE(check_config(Config()));
  const Config config;
  EXPECT_EQ(config.max_split_size_bytes, kUnlimitedBytes);
  EXPECT_EQ(config.max_non_split_rounding_bytes, 20 * kMebibyte);
  EXPECT_EQ(config.garbage_collection_threshold, 0);
  EXPECT_EQ(config.expandable_segments, std::nullopt);
  EXPECT_FALSE(config.pinned_use_background_threads);
  EXPECT_EQ(config.per_process_memory_fraction, 1);
}

TEST(MemoryConfigTest, EveryKeyIsUnderstoodAndWrittenAgain) {
  struct Case {
    std::string text;
    Config expected;
  };
  RoundupDivisions four;
  four.fill(4);
  for (const Case& known : std::vector<Case>{
           {"max_split_size_mb:20", {.max_split_size_bytes = 20 * kMebibyte}},
           {"max_split_size_mb:17592186044415", {.max_split_size_bytes = kUnlimitedBytes - kMebibyte + 1}},
           {"max_split_size_mb:64,max_non_split_rounding_mb:40",
            {.max_split_size_bytes = 64 * kMebibyte, .max_non_split_rounding_bytes = 40 * kMebibyte}},
           {"garbage_collection_threshold:0.8", {.garbage_collection_threshold = 0.8}},
           {"garbage_collection_threshold:1e-09", {.garbage_collection_threshold = 1e-9}},
           {"roundup_power2_divisions:4", {.roundup_power2_divisions = four}},
           {"expandable_segments:True", {.expandable_segments = true}},
           {"expandable_segments:False", {.expandable_segments = false}},
           {"pinned_use_background_threads:True", {.pinned_use_background_threads = true}},
           {"pinned_max_round_threshold_mb:64", {.pinned_max_round_threshold_bytes = 64 * kMebibyte}},
           {"pinned_max_cached_size_mb:0", {.pinned_max_cached_size_bytes = 0}},
           {"pinned_max_round_threshold_mb:1,pinned_max_cached_size_mb:1",
            {.pinned_max_round_threshold_bytes = kMebibyte, .pinned_max_cached_size_bytes = kMebibyte}},
           {"per_process_memory_fraction:0.5", {.per_process_memory_fraction = 0.5}},
       }) {
    EXPECT_EQ(parse_config(known.text).value(), known.expected) << known.text;
    EXPECT_EQ(to_string(known.expected), known.text);
  }
}

TEST(MemoryConfigTest, WhatIsTheDefaultAnywayIsAccepted) {
  for (const char* text : {"max_non_split_rounding_mb:20", "garbage_collection_threshold:0", "roundup_power2_divisions:0",
                           "roundup_power2_divisions:[1:0]", "pinned_use_background_threads:False", "per_process_memory_fraction:1.0"}) {
    EXPECT_EQ(parse_config(text).value(), Config()) << text;
  }
}

TEST(MemoryConfigTest, BlanksAndSuperfluousCommasSayNothing) {
  const Config expected = parse_config("max_split_size_mb:64,roundup_power2_divisions:[64:8,>:1],expandable_segments:False").value();
  EXPECT_EQ(parse_config(" ,max_split_size_mb :\t64 , roundup_power2_divisions:[ 64: 8 , > :1 ]\n,,expandable_segments: False , ").value(),
            expected);
}

TEST(MemoryConfigTest, AListNamesIntervalsByTheirFirstMebibyte) {
  const Config config = parse_config("roundup_power2_divisions:[128:8,256:16,512:1,2048:8,>:2]").value();
  for (const auto& [mebibytes, divisions] : std::vector<std::pair<std::size_t, std::uint32_t>>{
           {1, 8}, {64, 8}, {128, 8}, {256, 16}, {512, 1}, {1024, 0}, {2048, 8}, {4096, 2}, {32768, 2}}) {
    EXPECT_EQ(divisions_at(config, mebibytes), divisions) << mebibytes << " MiB";
  }
  EXPECT_EQ(to_string(config), "roundup_power2_divisions:[128:8,256:16,512:1,1024:0,2048:8,>:2]");

  const Config without_rest = parse_config("roundup_power2_divisions:[64:8,256:4]").value();
  EXPECT_EQ(divisions_at(without_rest, 64), 8u);
  EXPECT_EQ(divisions_at(without_rest, 128), 0u);
  EXPECT_EQ(divisions_at(without_rest, 256), 4u);
  EXPECT_EQ(divisions_at(without_rest, 512), 0u);

  EXPECT_EQ(to_string(parse_config("roundup_power2_divisions:[1:2,>:4]").value()), "roundup_power2_divisions:[1:2,>:4]");
  EXPECT_EQ(to_string(parse_config("roundup_power2_divisions:[16384:2,32768:4]").value()), "roundup_power2_divisions:[16384:2,>:4]");
  EXPECT_EQ(to_string(parse_config("roundup_power2_divisions:[32768:4]").value()), "roundup_power2_divisions:4");
}

TEST(MemoryConfigTest, WhatIsNotUnderstoodIsRefusedWithItsPlace) {
  const std::string interval =
      "allowed for roundup_power2_divisions is an interval, a power of two of MiB from 1 to 32768 and more than the one before it, or '>' "
      "for "
      "all above the last one";
  const std::string mebibytes = "allowed for max_split_size_mb is a whole number of MiB of at most 17592186044415";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"max_split_size_mb:large", "'large' at index 2 is not understood; " + mebibytes},
           {"max_split_size_mb:64MB", "'64MB' at index 2 is not understood; " + mebibytes},
           {"max_split_size_mb:-1", "'-1' at index 2 is not understood; " + mebibytes},
           {"max_split_size_mb:6 4", "'6 4' at index 2 is not understood; " + mebibytes},
           {"max_split_size_mb:17592186044416", "'17592186044416' at index 2 is not understood; " + mebibytes},
           {"max_split_size_mb:99999999999999999999", "'99999999999999999999' at index 2 is not understood; " + mebibytes},
           {"max_split_size_mb:,", "',' at index 2 is not understood; " + mebibytes},
           {"max_split_size_mb:", "the text ends behind ':'; " + mebibytes},
           {"max_split_size_mb", "the text ends behind 'max_split_size_mb'; allowed for max_split_size_mb is ':' and a value"},
           {"max_split_size_mb,64", "',' at index 1 is not understood; allowed for max_split_size_mb is ':' and a value"},
           {"max_split_size_mb:64:64",
            "':' at index 3 is not understood; allowed for max_split_size_mb is one value, then ',' and the next option"},
           {"garbage_collection_threshold:80%",
            "'80%' at index 2 is not understood; allowed for garbage_collection_threshold is a decimal number"},
           {"pinned_max_cached_size_mb:1,max_split_size_mb:\x1b[", "'?' at index 6 is not understood; " + mebibytes},
           {"roundup_power2_divisions:many",
            "'many' at index 2 is not understood; allowed for roundup_power2_divisions is the number of divisions, or a list like "
            "[64:8,256:4,>:1]"},
           {"roundup_power2_divisions:[]", "']' at index 3 is not understood; " + interval},
           {"roundup_power2_divisions:[", "the text ends behind '['; " + interval},
           {"roundup_power2_divisions:[0:1]", "'0' at index 3 is not understood; " + interval},
           {"roundup_power2_divisions:[3:1]", "'3' at index 3 is not understood; " + interval},
           {"roundup_power2_divisions:[65536:1]", "'65536' at index 3 is not understood; " + interval},
           {"roundup_power2_divisions:[2:1,2:4]", "'2' at index 7 is not understood; " + interval},
           {"roundup_power2_divisions:[2:1,1:4]", "'1' at index 7 is not understood; " + interval},
           {"roundup_power2_divisions:[>:1]", "'>' at index 3 is not understood; " + interval},
           {"roundup_power2_divisions:[32768:1,>:1]", "'>' at index 7 is not understood; " + interval},
           {"roundup_power2_divisions:[1:2,]", "']' at index 7 is not understood; " + interval},
           {"roundup_power2_divisions:[1]",
            "']' at index 4 is not understood; allowed for roundup_power2_divisions is ':' and the number of divisions behind an interval"},
           {"roundup_power2_divisions:[1:x]",
            "'x' at index 5 is not understood; allowed for roundup_power2_divisions is a number of divisions"},
           {"roundup_power2_divisions:[1:2",
            "the text ends behind '2'; allowed for roundup_power2_divisions is ',' and another interval, or ']'"},
           {"roundup_power2_divisions:[1:2,>:4,8:2]",
            "',' at index 10 is not understood; allowed for roundup_power2_divisions is ']' behind the divisions of '>'"},
           {"max_split_size_mb:64,max_split_size_mb:64", "max_split_size_mb is given twice; allowed is once"},
       }) {
    EXPECT_EQ(refusal(text), message) << text;
  }
}

TEST(MemoryConfigTest, BooleansAreExactlyTrueAndFalseAndTheMessageIsPyTorchs) {
  for (const char* word : {"true", "false", "TRUE", "1", "0", "yes", "on", ""}) {
    EXPECT_EQ(
        refusal(std::string("expandable_segments:") + word),
        std::string("Expected 'True' or 'False' at index 2 in ConfigTokenizer but got '") + word + "', the value of expandable_segments");
  }
  EXPECT_EQ(refusal("roundup_power2_divisions:[64:8,>:1],pinned_use_background_threads:true"),
            "Expected 'True' or 'False' at index 14 in ConfigTokenizer but got 'true', the value of pinned_use_background_threads");
}

TEST(MemoryConfigTest, AnUnknownKeyIsRefusedWithTheListOfTheKnownOnes) {
  EXPECT_EQ(refusal("expandable_segments:True,max_split_size:64"),
            "'max_split_size' at index 4 is no option of the allocators; allowed are max_split_size_mb, max_non_split_rounding_mb, "
            "garbage_collection_threshold, roundup_power2_divisions, expandable_segments, pinned_use_background_threads, "
            "pinned_max_round_threshold_mb, pinned_max_cached_size_mb, per_process_memory_fraction");
  for (const char* text : {":", "[", "]", "backend:native", "Max_Split_Size_MB:64", "=", "\xff\n:1"}) {
    EXPECT_THAT(refusal(text), HasSubstr("' at index 0 is no option of the allocators; allowed are max_split_size_mb, ")) << text;
    EXPECT_EQ(refusal(text), printable(refusal(text)));
  }
}

TEST(MemoryConfigTest, AValueOutsideItsRangeIsRefused) {
  const std::string divisions = "; allowed is a power of two of at most 67108864, or 0 for no rounding";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"max_split_size_mb:19", "max_split_size_mb:19 is too small; allowed is a whole number of at least 20 MiB"},
           {"max_split_size_mb:64,max_non_split_rounding_mb:19",
            "max_non_split_rounding_mb:19 is too small; allowed is a whole number of at least 20 MiB"},
           {"garbage_collection_threshold:1",
            "garbage_collection_threshold:1 is out of range; allowed is a number in (0, 1), or 0 for no garbage collection"},
           {"garbage_collection_threshold:-0.5",
            "garbage_collection_threshold:-0.5 is out of range; allowed is a number in (0, 1), or 0 for no garbage collection"},
           {"garbage_collection_threshold:nan",
            "garbage_collection_threshold:nan is out of range; allowed is a number in (0, 1), or 0 for no garbage collection"},
           {"per_process_memory_fraction:0", "per_process_memory_fraction:0 is out of range; allowed is a number in (0, 1]"},
           {"per_process_memory_fraction:1.1", "per_process_memory_fraction:1.1 is out of range; allowed is a number in (0, 1]"},
           {"per_process_memory_fraction:inf", "per_process_memory_fraction:inf is out of range; allowed is a number in (0, 1]"},
           {"roundup_power2_divisions:3", "roundup_power2_divisions has 3 divisions" + divisions},
           {"roundup_power2_divisions:[1:2,>:12]", "roundup_power2_divisions has 12 divisions" + divisions},
           {"roundup_power2_divisions:134217728", "roundup_power2_divisions has 134217728 divisions" + divisions},
       }) {
    EXPECT_EQ(refusal(text), message) << text;
  }
}

TEST(MemoryConfigTest, ASizeThatNoTextStandsForIsRefused) {
  const std::string allowed = " bytes; allowed is a multiple of 1048576 bytes (1 MiB)";
  EXPECT_EQ(refusal(Config{.max_split_size_bytes = 20 * kMebibyte + 1}), "max_split_size_mb is 20971521" + allowed);
  EXPECT_EQ(refusal(Config{.pinned_max_round_threshold_bytes = 512}), "pinned_max_round_threshold_mb is 512" + allowed);
  EXPECT_EQ(refusal(Config{.pinned_max_cached_size_bytes = 512}), "pinned_max_cached_size_mb is 512" + allowed);
  EXPECT_EQ(refusal(Config{.max_split_size_bytes = 64 * kMebibyte, .max_non_split_rounding_bytes = kUnlimitedBytes}),
            "max_non_split_rounding_mb is 18446744073709551615" + allowed);
}

TEST(MemoryConfigTest, AnOptionThatWouldHaveNoEffectIsRefused) {
  struct Case {
    const char* text;
    const char* message;  // "": accepted
    bool allows_expandable_segments;
  };
  for (const Case& combination : {
           Case{
               "expandable_segments:True,max_split_size_mb:64",
               "max_split_size_mb:64 has no meaning with expandable_segments:True, whose blocks are always split; leave one of the two out",
               false},
           Case{"expandable_segments:False,max_split_size_mb:64", "", false},
           Case{"max_split_size_mb:64", "", false},
           Case{"garbage_collection_threshold:0.8,expandable_segments:True",
                "garbage_collection_threshold:0.8 has no meaning with expandable_segments:True, of which no segment is freed as a whole; "
                "leave "
                "one of the two out",
                false},
           Case{"garbage_collection_threshold:0.8,expandable_segments:False", "", false},
           Case{"garbage_collection_threshold:0.8", "", false},
           Case{"garbage_collection_threshold:0,expandable_segments:True", "", true},
           Case{"garbage_collection_threshold:0.8,max_split_size_mb:64,per_process_memory_fraction:0.5", "", false},
           Case{"max_non_split_rounding_mb:40",
                "max_non_split_rounding_mb:40 has no meaning without max_split_size_mb, from which size on blocks are not split; set both "
                "or "
                "none",
                false},
           Case{"max_non_split_rounding_mb:40,max_split_size_mb:20", "", false},
           Case{"pinned_max_round_threshold_mb:64,pinned_max_cached_size_mb:32",
                "pinned_max_round_threshold_mb:64 has no meaning with pinned_max_cached_size_mb:32, above which blocks are not rounded "
                "anyway; "
                "allowed is at most the same number",
                true},
           Case{"pinned_max_round_threshold_mb:32,pinned_max_cached_size_mb:64,pinned_use_background_threads:True", "", true},
           Case{"roundup_power2_divisions:4,expandable_segments:True,per_process_memory_fraction:0.5", "", true},
           Case{"roundup_power2_divisions:4,max_split_size_mb:64", "", false},
           Case{"expandable_segments:False", "", false},
           Case{"", "", true},
       }) {
    EXPECT_EQ(refusal(combination.text), combination.message) << combination.text;
    if (*combination.message != '\0') continue;
    EXPECT_EQ(allows_expandable_segments(parse_config(combination.text).value()), combination.allows_expandable_segments)
        << combination.text;
  }
}

// Half of the options changed; the combinations that are refused are left in.
Config random_config(std::mt19937_64& random) {
  const auto coin = [&] { return random() % 2 == 0; };
  const auto mebibytes = [&](std::size_t least) {
    return (least + (random() >> (20 + random() % 40)) % (std::size_t{1} << 43)) * kMebibyte;
  };
  const auto share = [&] {
    return std::ldexp(static_cast<double>(1 + random() % ((1u << 30) - 1)), -30 - static_cast<int>(random() % 200));
  };
  Config config;
  if (coin()) config.max_split_size_bytes = mebibytes(20);
  if (coin()) config.max_non_split_rounding_bytes = mebibytes(20);
  if (coin()) config.garbage_collection_threshold = share();
  const auto repeated = 1 + random() % 16;
  for (std::size_t i = 0; i < config.roundup_power2_divisions.size(); ++i) {
    config.roundup_power2_divisions[i] = i % repeated != 0 ? config.roundup_power2_divisions[i - 1] : coin() ? 0 : 1u << random() % 27;
  }
  if (coin()) config.expandable_segments = coin();
  config.pinned_use_background_threads = coin();
  if (coin()) config.pinned_max_round_threshold_bytes = mebibytes(0);
  if (coin()) config.pinned_max_cached_size_bytes = mebibytes(0);
  if (coin()) config.per_process_memory_fraction = share();
  return config;
}

TEST(MemoryConfigPropertyTest, EveryAllowedConfigIsReadBackFromItsText) {
  std::mt19937_64 random(1);
  int allowed = 0, refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    const Config config = random_config(random);
    const std::string text = to_string(config);
    const Result<Config> again = parse_config(text);
    ASSERT_EQ(again.has_value(), check_config(config).has_value()) << text;
    ++(again ? allowed : refused);
    if (again) {
      ASSERT_EQ(*again, config) << text;
    } else {
      ASSERT_EQ(again.error().message, check_config(config).error().message) << text;
    }
  }
  EXPECT_GT(allowed, 500);
  EXPECT_GT(refused, 500);
}

TEST(RoundUpPower2Test, GoesToTheNextOfEqualSteps) {
  EXPECT_EQ(round_up_power2(1200, 4), 1280u);
  EXPECT_EQ(round_up_power2(1024, 4), 1024u);
  EXPECT_EQ(round_up_power2(1025, 4), 1280u);
  EXPECT_EQ(round_up_power2(1280, 4), 1280u);
  EXPECT_EQ(round_up_power2(1793, 4), 2048u);
  EXPECT_EQ(round_up_power2(1200, 2), 1536u);
  EXPECT_EQ(round_up_power2(1200, 1), 1200u);
  EXPECT_EQ(round_up_power2(1200, 0), 1200u);
  EXPECT_EQ(round_up_power2(3, 4), 3u);
  EXPECT_EQ(round_up_power2(0, 4), 0u);
  EXPECT_EQ(round_up_power2(kUnlimitedBytes / 2, 4), kUnlimitedBytes / 2 + 1);
  EXPECT_EQ(round_up_power2(kUnlimitedBytes, 4), kUnlimitedBytes);
}

TEST(BlockBytesTest, IsRoundedByTheDivisionsOfItsIntervalAndTo512Bytes) {
  const Config plain;
  EXPECT_EQ(block_bytes(0, plain), 512u);
  EXPECT_EQ(block_bytes(1, plain), 512u);
  EXPECT_EQ(block_bytes(513, plain), 1024u);
  EXPECT_EQ(block_bytes(kUnlimitedBytes / 2, plain), kUnlimitedBytes / 2 + 1);
  EXPECT_EQ(block_bytes(kUnlimitedBytes, plain), kUnlimitedBytes);

  const Config config = parse_config("roundup_power2_divisions:[64:8,128:2,256:1,512:4,>:2]").value();
  EXPECT_EQ(block_bytes(1200, config), 1536u);  // steps of 128 bytes do not exist
  EXPECT_EQ(block_bytes(4097, config), 4608u);
  EXPECT_EQ(block_bytes(8193, config), 9216u);
  EXPECT_EQ(block_bytes(84 * kMebibyte, config), 88 * kMebibyte);
  EXPECT_EQ(block_bytes(128 * kMebibyte - 1, config), 128 * kMebibyte);
  EXPECT_EQ(block_bytes(128 * kMebibyte + 1, config), 192 * kMebibyte);
  EXPECT_EQ(block_bytes(256 * kMebibyte + 1, config), 256 * kMebibyte + 512);
  EXPECT_EQ(block_bytes(513 * kMebibyte, config), 640 * kMebibyte);
  EXPECT_EQ(block_bytes(1025 * kMebibyte, config), 1536 * kMebibyte);
  EXPECT_EQ(block_bytes(33 * kGibibyte, config), 48 * kGibibyte);
  EXPECT_EQ(block_bytes(130 * kGibibyte, config), 192 * kGibibyte);
}

TEST(BlockBytesPropertyTest, IsTheLeastStepThatHoldsTheRequest) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100'000; ++i) {
    Config config;
    for (std::uint32_t& divisions : config.roundup_power2_divisions) divisions = 1u << random() % 27;
    const std::size_t bytes = 1 + (random() >> (17 + random() % 46));
    const std::size_t block = block_bytes(bytes, config);
    const std::size_t power = std::bit_floor(bytes);
    const std::size_t interval = std::min<std::size_t>(power < kMebibyte ? 0 : static_cast<std::size_t>(std::countr_zero(power)) - 20, 15);
    const std::size_t divisions = config.roundup_power2_divisions[interval];
    const std::size_t step = divisions == 1 ? 512 : std::max<std::size_t>(power / divisions, 512);
    ASSERT_GE(block, bytes);
    ASSERT_LT(block - bytes, step) << bytes << " with " << divisions;
    ASSERT_EQ(block % step, 0u) << bytes << " with " << divisions;
    ASSERT_EQ(block_bytes(block, config), block) << bytes << " with " << divisions;
  }
}

}  // namespace
}  // namespace xpu::memory
