#include "profiler/sinks/argument_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "profiler/sinks/json_text.hpp"

namespace xpu::profiler {
namespace {

template <typename Value>
void append_value(std::string& out, const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_same_v<Value, double>) {
    // The shortest text that reads back as the same number.
    out += std::isfinite(value) ? fmt::format("{}", value) : "null";
  } else if constexpr (std::is_integral_v<Value>) {
    out += std::to_string(value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    append_json_string(out, value);
  } else {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i != 0) out += ',';
      append_value(out, value[i]);
    }
    out += ']';
  }
}

constexpr std::string_view kCollectiveName = "Collective name";
constexpr std::array<std::string_view, 17> kCollectiveKeys = {kCollectiveName,
                                                              "Backend",
                                                              "In msg nelems",
                                                              "Out msg nelems",
                                                              "Group size",
                                                              "dtype",
                                                              "In split size",
                                                              "Out split size",
                                                              "Process Group Name",
                                                              "Process Group Description",
                                                              "Process Group Ranks",
                                                              "Src Rank",
                                                              "Dst Rank",
                                                              "Seq",
                                                              "Comms Id",
                                                              "Input Tensors start",
                                                              "Output Tensors start"};

}  // namespace

bool is_of_collective(const CpuArgument& argument) {
  return std::find(kCollectiveKeys.begin(), kCollectiveKeys.end(), argument.key) != kCollectiveKeys.end();
}

bool is_collective(std::span<const CpuArgument> arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const CpuArgument& argument) { return argument.key == kCollectiveName; });
}

void append_arguments(std::string& out, std::span<const CpuArgument> arguments) {
  for (const CpuArgument& argument : arguments) {
    out += ',';
    append_json_string(out, argument.key);
    out += ':';
    std::visit([&](const auto& value) { append_value(out, value); }, argument.value);
  }
}

std::string json_value(const CpuArgumentValue& value) {
  std::string text;
  std::visit([&](const auto& held) { append_value(text, held); }, value);
  return text;
}

}  // namespace xpu::profiler
