#include "xpu/memory/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "xpu/base/text.hpp"

namespace xpu::memory {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kMostMebibytes = kUnlimitedBytes / kMebibyte;
constexpr std::size_t kLeastSplitMebibytes = 20;  // a segment for smaller blocks: with less, it could not be split itself
// Of as many steps each has 512 bytes in the last interval, and smaller ones do not exist.
constexpr std::uint32_t kMostDivisions = std::uint32_t{1} << 26;
constexpr std::size_t kIntervals = RoundupDivisions().size();

using Field =
    std::variant<std::size_t Config::*, double Config::*, bool Config::*, std::optional<bool> Config::*, RoundupDivisions Config::*>;

struct Option {
  std::string_view key;
  Field field;
};

constexpr std::array<Option, 9> kOptions = {{
    {"max_split_size_mb", &Config::max_split_size_bytes},
    {"max_non_split_rounding_mb", &Config::max_non_split_rounding_bytes},
    {"garbage_collection_threshold", &Config::garbage_collection_threshold},
    {"roundup_power2_divisions", &Config::roundup_power2_divisions},
    {"expandable_segments", &Config::expandable_segments},
    {"pinned_use_background_threads", &Config::pinned_use_background_threads},
    {"pinned_max_round_threshold_mb", &Config::pinned_max_round_threshold_bytes},
    {"pinned_max_cached_size_mb", &Config::pinned_max_cached_size_bytes},
    {"per_process_memory_fraction", &Config::per_process_memory_fraction},
}};

const Option* find_option(std::string_view key) {
  for (const Option& option : kOptions) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

template <typename... Arguments>
Error refused(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return {ErrorCode::invalid_argument, fmt::format(format, std::forward<Arguments>(arguments)...)};
}

// --- From text ---

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> tokens;
  while (true) {
    const std::size_t end = text.find_first_of(",:[]");
    if (const std::string_view word = trimmed(text.substr(0, end)); !word.empty()) tokens.push_back(word);
    if (end == std::string_view::npos) return tokens;
    tokens.push_back(text.substr(end, 1));
    text.remove_prefix(end + 1);
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(split(text)) {}

  Result<Config> parse() {
    Config config;
    while (!at_end()) {
      // A comma too many says nothing; "$OLD,key:value" leaves one where OLD is empty.
      if (!accept(",")) XPU_TRY(read_option(config));
    }
    return config;
  }

 private:
  bool at_end() const { return at_ == tokens_.size(); }
  /// Empty at the end of the text; no token is.
  std::string_view peek() const { return at_end() ? std::string_view() : tokens_[at_]; }
  bool accept(std::string_view token) {
    if (peek() != token) return false;
    ++at_;
    return true;
  }
  Error misread(std::string_view allowed) const {
    if (at_end()) return refused("the text ends behind '{}'; allowed for {} is {}", printable(tokens_.back()), key_, allowed);
    return refused("'{}' at index {} is not understood; allowed for {} is {}", printable(peek()), at_, key_, allowed);
  }
  Result<> expect(std::string_view token, std::string_view allowed) {
    if (!accept(token)) return misread(allowed);
    return {};
  }
  template <typename Number>
  Result<Number> read_number(std::string_view allowed) {
    const std::string_view token = peek();
    Number number = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (token.empty() || error != std::errc() || end != token.data() + token.size()) return misread(allowed);
    ++at_;
    return number;
  }

  Result<> read_option(Config& config) {
    key_ = tokens_[at_];
    const Option* option = find_option(key_);
    if (option == nullptr) {
      std::vector<std::string_view> keys;
      for (const Option& known : kOptions) keys.push_back(known.key);
      return refused("'{}' at index {} is no option of the allocators; allowed are {}", printable(key_), at_, fmt::join(keys, ", "));
    }
    const auto index = static_cast<std::size_t>(option - kOptions.data());
    if (std::exchange(is_given_[index], true)) return refused("{} is given twice; allowed is once", key_);
    ++at_;
    XPU_TRY(expect(":", "':' and a value"));
    XPU_TRY(std::visit([&](auto field) { return read(config.*field); }, option->field));
    if (at_end()) return {};
    return expect(",", "one value, then ',' and the next option");
  }

  Result<> read(std::size_t& bytes) {
    const std::string allowed = fmt::format("a whole number of MiB of at most {}", kMostMebibytes);
    const std::size_t begin = at_;
    XPU_TRY_ASSIGN(const auto mebibytes, read_number<std::size_t>(allowed));
    if (mebibytes > kMostMebibytes) {
      at_ = begin;
      return misread(allowed);
    }
    bytes = mebibytes * kMebibyte;
    return {};
  }
  Result<> read(double& fraction) {
    XPU_TRY_ASSIGN(fraction, read_number<double>("a decimal number"));
    return {};
  }
  Result<> read(bool& value) {
    value = peek() == "True";
    if (accept("True") || accept("False")) return {};
    // Word for word what programs that were written for PyTorch look for, up to the comma.
    return refused("Expected 'True' or 'False' at index {} in ConfigTokenizer but got '{}', the value of {}", at_, printable(peek()), key_);
  }
  Result<> read(std::optional<bool>& value) { return read(value.emplace()); }
  Result<> read(RoundupDivisions& divisions) {
    if (!accept("[")) {
      XPU_TRY_ASSIGN(const auto all, read_number<std::uint32_t>("the number of divisions, or a list like [64:8,256:4,>:1]"));
      divisions.fill(all);
      return {};
    }
    std::size_t next = 0;  // behind the last interval that was named
    do {
      const bool is_rest = next != 0 && next != kIntervals && accept(">");
      std::size_t first = next, last = kIntervals - 1;
      if (!is_rest) {
        XPU_TRY_ASSIGN(last, read_interval(next));
        if (next != 0) first = last;
      }
      XPU_TRY(expect(":", "':' and the number of divisions behind an interval"));
      XPU_TRY_ASSIGN(const auto number, read_number<std::uint32_t>("a number of divisions"));
      std::fill(divisions.data() + first, divisions.data() + last + 1, number);
      if (is_rest) return expect("]", "']' behind the divisions of '>'");
      next = last + 1;
    } while (accept(","));
    return expect("]", "',' and another interval, or ']'");
  }
  /// Its index, which is at least `least`.
  Result<std::size_t> read_interval(std::size_t least) {
    constexpr std::string_view allowed =
        "an interval, a power of two of MiB from 1 to 32768 and more than the one before it, or '>' for all above the last one";
    const std::size_t begin = at_;
    XPU_TRY_ASSIGN(const auto mebibytes, read_number<std::size_t>(allowed));
    const auto interval = static_cast<std::size_t>(std::countr_zero(mebibytes));
    if (std::has_single_bit(mebibytes) && interval >= least && interval < kIntervals) return interval;
    at_ = begin;
    return misread(allowed);
  }

  std::vector<std::string_view> tokens_;
  std::size_t at_ = 0;
  std::string_view key_;  // of the option that is being read
  std::array<bool, kOptions.size()> is_given_ = {};
};

// --- To text ---

std::string value_text(std::size_t bytes) { return fmt::format("{}", bytes / kMebibyte); }
std::string value_text(double fraction) { return fmt::format("{}", fraction); }
std::string value_text(bool value) { return value ? "True" : "False"; }
std::string value_text(std::optional<bool> value) { return value ? value_text(*value) : "unset"; }
std::string value_text(const RoundupDivisions& divisions) {
  // The first entry stands for all smaller intervals, and '>' for all larger ones.
  std::size_t first = 0, rest = kIntervals - 1;
  while (first < rest && divisions[first + 1] == divisions[0]) ++first;
  if (first == rest) return fmt::format("{}", divisions[0]);
  while (divisions[rest - 1] == divisions[kIntervals - 1]) --rest;
  std::string text = "[";
  for (std::size_t i = first; i < rest; ++i) text += fmt::format("{}:{},", std::size_t{1} << i, divisions[i]);
  return text + fmt::format(">:{}]", divisions[kIntervals - 1]);
}

bool is_set(const Config& config, const Option& option) {
  return std::visit([&](auto field) { return config.*field != Config().*field; }, option.field);
}

std::string option_text(const Config& config, const Option& option) {
  return std::visit([&](auto field) { return fmt::format("{}:{}", option.key, value_text(config.*field)); }, option.field);
}

// --- Rules ---

Result<> check_bytes(std::string_view key, std::size_t bytes, std::size_t least_mebibytes) {
  if (bytes % kMebibyte != 0) return refused("{} is {} bytes; allowed is a multiple of {} bytes (1 MiB)", key, bytes, kMebibyte);
  if (bytes / kMebibyte >= least_mebibytes) return {};
  return refused("{}:{} is too small; allowed is a whole number of at least {} MiB", key, bytes / kMebibyte, least_mebibytes);
}

Result<> check_limit(std::string_view key, std::size_t bytes, std::size_t least_mebibytes) {
  return bytes == kUnlimitedBytes ? Result<>() : check_bytes(key, bytes, least_mebibytes);
}

Result<> check_values(const Config& config) {
  XPU_TRY(check_limit("max_split_size_mb", config.max_split_size_bytes, kLeastSplitMebibytes));
  XPU_TRY(check_bytes("max_non_split_rounding_mb", config.max_non_split_rounding_bytes, kLeastSplitMebibytes));
  XPU_TRY(check_limit("pinned_max_round_threshold_mb", config.pinned_max_round_threshold_bytes, 0));
  XPU_TRY(check_limit("pinned_max_cached_size_mb", config.pinned_max_cached_size_bytes, 0));
  // Written so that what is not a number is refused, too.
  if (const double threshold = config.garbage_collection_threshold; !(threshold >= 0 && threshold < 1)) {
    return refused("garbage_collection_threshold:{} is out of range; allowed is a number in (0, 1), or 0 for no garbage collection",
                   threshold);
  }
  if (const double fraction = config.per_process_memory_fraction; !(fraction > 0 && fraction <= 1)) {
    return refused("per_process_memory_fraction:{} is out of range; allowed is a number in (0, 1]", fraction);
  }
  for (const std::uint32_t divisions : config.roundup_power2_divisions) {
    if (divisions != 0 && (!std::has_single_bit(divisions) || divisions > kMostDivisions)) {
      return refused("roundup_power2_divisions has {} divisions; allowed is a power of two of at most {}, or 0 for no rounding", divisions,
                     kMostDivisions);
    }
  }
  return {};
}

/// An option that would have no effect because of another one. Whoever set it expects something, and is told.
struct Combination {
  bool (*is_refused)(const Config& config);
  std::string_view useless, link, other, reason;
};

constexpr std::array<Combination, 4> kCombinations = {{
    {[](const Config& config) { return config.expandable_segments == true && config.max_split_size_bytes != kUnlimitedBytes; },
     "max_split_size_mb", "with", "expandable_segments", "whose blocks are always split; leave one of the two out"},
    {[](const Config& config) { return config.expandable_segments == true && config.garbage_collection_threshold != 0; },
     "garbage_collection_threshold", "with", "expandable_segments", "of which no segment is freed as a whole; leave one of the two out"},
    {[](const Config& config) {
       return config.max_split_size_bytes == kUnlimitedBytes &&
              config.max_non_split_rounding_bytes != Config().max_non_split_rounding_bytes;
     },
     "max_non_split_rounding_mb", "without", "max_split_size_mb", "from which size on blocks are not split; set both or none"},
    {[](const Config& config) {
       return config.pinned_max_round_threshold_bytes != kUnlimitedBytes &&
              config.pinned_max_round_threshold_bytes > config.pinned_max_cached_size_bytes;
     },
     "pinned_max_round_threshold_mb", "with", "pinned_max_cached_size_mb",
     "above which blocks are not rounded anyway; allowed is at most the same number"},
}};

}  // namespace

Result<Config> parse_config(std::string_view text) {
  XPU_TRY_ASSIGN(const Config config, Parser(text).parse());
  XPU_TRY(check_config(config));
  return config;
}

Result<> check_config(const Config& config) {
  XPU_TRY(check_values(config));
  for (const Combination& combination : kCombinations) {
    if (!combination.is_refused(config)) continue;
    const Option& other = *find_option(combination.other);
    return refused("{} has no meaning {} {}, {}", option_text(config, *find_option(combination.useless)), combination.link,
                   is_set(config, other) ? option_text(config, other) : std::string(other.key), combination.reason);
  }
  return {};
}

std::string to_string(const Config& config) {
  std::string text;
  for (const Option& option : kOptions) {
    if (!is_set(config, option)) continue;
    if (!text.empty()) text += ',';
    text += option_text(config, option);
  }
  return text;
}

bool allows_expandable_segments(const Config& config) {
  Config expandable = config;
  expandable.expandable_segments = true;
  return config.expandable_segments.value_or(true) && check_config(expandable).has_value();
}

}  // namespace xpu::memory
