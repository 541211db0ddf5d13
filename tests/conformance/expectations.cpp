#include "tests/conformance/expectations.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace xpu::conformance {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Takes the part before the separator off the front of `text`; false when there is none.
bool take_until(std::string_view& text, std::string_view separator, std::string_view& part) {
  const std::size_t end = text.find(separator);
  if (end == std::string_view::npos) return false;
  part = trimmed(text.substr(0, end));
  text = trimmed(text.substr(end + separator.size()));
  return !part.empty() && !text.empty();
}

bool environment_is(std::string_view setting) {
  std::string_view name;
  std::string_view value = setting;
  if (!take_until(value, "=", name)) return false;
  const char* const present = std::getenv(std::string(name).c_str());
  return present != nullptr && value == present;
}

Result<> add_line(Expectations& expectations, std::string_view line) {
  std::string_view keyword;
  std::string_view rest = line;
  if (take_until(rest, " ", keyword)) {
    std::string_view subject;
    std::string_view text = rest;
    if (keyword == "environment" && take_until(text, "=", subject)) {
      constexpr std::string_view kFolder = "${FOLDER}";
      std::string value(text);
      if (value.starts_with(kFolder)) value.replace(0, kFolder.size(), XPU_CONFORMANCE_EXPECTATIONS);
      expectations.environment.emplace(subject, value);
      return {};
    }
    if ((keyword == "unsupported" || keyword == "expected_failure") && take_until(text, ":", subject)) {
      std::string_view condition = subject;
      std::string_view conditional;
      const bool has_condition = take_until(condition, " when ", conditional);
      if (has_condition && !environment_is(condition)) return {};
      (keyword == "unsupported" ? expectations.unsupported : expectations.expected_failures)
          .emplace(has_condition ? conditional : subject, text);
      return {};
    }
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("'{}' is no expectation, which is 'environment NAME=VALUE', 'unsupported NEED [when NAME=VALUE]: REASON' or "
                           "'expected_failure Suite.Test [when NAME=VALUE]: REASON'",
                           line)};
}

Expectations read_file(const std::string& driver) {
  const std::string path = fmt::format("{}/{}.txt", XPU_CONFORMANCE_EXPECTATIONS, driver);
  std::ifstream file(path);
  if (!file) return {};
  std::stringstream text;
  text << file.rdbuf();
  Result<Expectations> expectations = parse_expectations(text.str());
  if (expectations) return *std::move(expectations);
  fmt::print(stderr, "{}: {}\n", path, expectations.error().message);
  std::exit(1);
}

}  // namespace

Result<Expectations> parse_expectations(std::string_view text) {
  Expectations expectations;
  expectations.is_listed = true;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view line = trimmed(whole.substr(0, whole.find('#')));
    if (!line.empty()) XPU_TRY(add_line(expectations, line));
  }
  return expectations;
}

const Expectations& expectations_of(const std::string& driver) {
  static std::map<std::string, Expectations> known;
  const auto found = known.find(driver);
  return found != known.end() ? found->second : known.emplace(driver, read_file(driver)).first->second;
}

}  // namespace xpu::conformance
