#include "null_driver/source_parser.hpp"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace xpu::null_driver {
namespace {

/// Identifiers and single other characters of a C text, without comments, string literals and preprocessor lines.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  bool line_start = true;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') {
      line_start = true;
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
    } else if (c == '/' && at(i + 1) == '/') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == '/' && at(i + 1) == '*') {
      const std::size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 2;
    } else if (c == '#' && line_start) {
      while (i < text.size() && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
    } else if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
      ++i;
      line_start = false;
    } else if (is_word(c)) {
      std::size_t end = i;
      while (end < text.size() && is_word(text[end])) ++end;
      tokens.emplace_back(text.substr(i, end - i));
      i = end;
      line_start = false;
    } else {
      tokens.emplace_back(1, c);
      ++i;
      line_start = false;
    }
  }
  return tokens;
}

/// `word` with or without the two leading underscores of the language's keywords.
bool is_keyword(const std::string& token, std::string_view word) {
  return token == word || (token.size() == word.size() + 2 && token.compare(0, 2, "__") == 0 && token.compare(2, word.size(), word) == 0);
}

KernelArgument argument_of(const std::vector<std::string>& tokens, std::size_t begin, std::size_t end) {
  KernelArgument argument;
  std::string stars;
  std::vector<std::string> words;
  for (std::size_t i = begin; i < end; ++i) {
    const std::string& token = tokens[i];
    if (is_keyword(token, "global")) {
      argument.address = CL_KERNEL_ARG_ADDRESS_GLOBAL;
    } else if (is_keyword(token, "local")) {
      argument.address = CL_KERNEL_ARG_ADDRESS_LOCAL;
    } else if (is_keyword(token, "constant")) {
      argument.address = CL_KERNEL_ARG_ADDRESS_CONSTANT;
    } else if (is_keyword(token, "private")) {
      argument.address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
    } else if (is_keyword(token, "read_only")) {
      argument.access = CL_KERNEL_ARG_ACCESS_READ_ONLY;
    } else if (is_keyword(token, "write_only")) {
      argument.access = CL_KERNEL_ARG_ACCESS_WRITE_ONLY;
    } else if (is_keyword(token, "read_write")) {
      argument.access = CL_KERNEL_ARG_ACCESS_READ_WRITE;
    } else if (token == "const") {
      argument.qualifiers |= CL_KERNEL_ARG_TYPE_CONST;
    } else if (token == "restrict") {
      argument.qualifiers |= CL_KERNEL_ARG_TYPE_RESTRICT;
    } else if (token == "volatile") {
      argument.qualifiers |= CL_KERNEL_ARG_TYPE_VOLATILE;
    } else if (token == "pipe") {
      argument.qualifiers |= CL_KERNEL_ARG_TYPE_PIPE;
    } else if (token == "*") {
      stars += '*';
    } else {
      words.push_back(token);
    }
  }
  if (!words.empty()) {
    argument.name = words.back();
    words.pop_back();
  }
  for (const std::string& word : words) argument.type += argument.type.empty() ? word : " " + word;
  const bool is_image = argument.type.compare(0, 5, "image") == 0;
  if (is_image) {
    argument.address = CL_KERNEL_ARG_ADDRESS_GLOBAL;
    if (argument.access == CL_KERNEL_ARG_ACCESS_NONE) argument.access = CL_KERNEL_ARG_ACCESS_READ_ONLY;
  }
  argument.type += stars;
  return argument;
}

/// Index behind the parenthesis that closes the one at `open`.
std::size_t behind_parenthesis(const std::vector<std::string>& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i] == "(") ++depth;
    if (tokens[i] == ")" && --depth == 0) return i + 1;
  }
  return tokens.size();
}

void read_attribute(const std::vector<std::string>& tokens, std::size_t begin, std::size_t end, KernelSource& kernel) {
  for (std::size_t i = begin; i < end; ++i) {
    if (tokens[i] != "reqd_work_group_size") continue;
    std::size_t dimension = 0;
    for (std::size_t j = i + 1; j < end && dimension < 3; ++j) {
      const std::size_t size = std::strtoull(tokens[j].c_str(), nullptr, 0);
      if (size != 0) kernel.required_work_group[dimension++] = size;
    }
    kernel.attributes = "reqd_work_group_size(" + std::to_string(kernel.required_work_group[0]) + "," +
                        std::to_string(kernel.required_work_group[1]) + "," + std::to_string(kernel.required_work_group[2]) + ")";
  }
}

void read_arguments(const std::vector<std::string>& tokens, std::size_t begin, std::size_t end, KernelSource& kernel) {
  if (begin == end || (end - begin == 1 && tokens[begin] == "void")) return;
  std::size_t first = begin;
  int depth = 0;
  for (std::size_t i = begin; i <= end; ++i) {
    if (i < end && tokens[i] == "(") ++depth;
    if (i < end && tokens[i] == ")") --depth;
    if (i == end || (tokens[i] == "," && depth == 0)) {
      kernel.arguments.push_back(argument_of(tokens, first, i));
      first = i + 1;
    }
  }
}

constexpr std::uint32_t kSpirvMagic = 0x07230203;
constexpr std::uint32_t kOpEntryPoint = 15;
constexpr std::size_t kSpirvHeaderWords = 5;

std::uint32_t word_at(std::string_view bytes, std::size_t index) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + index * sizeof word, sizeof word);
  return word;
}

}  // namespace

std::vector<KernelSource> kernels_of_source(std::string_view source) {
  std::vector<KernelSource> kernels;
  const std::vector<std::string> tokens = tokens_of(source);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!is_keyword(tokens[i], "kernel")) continue;
    KernelSource kernel;
    std::size_t next = i + 1;
    // Attributes may stand before or behind `void`.
    while (next < tokens.size() && (tokens[next] == "void" || is_keyword(tokens[next], "attribute__"))) {
      if (tokens[next] == "void") {
        ++next;
        continue;
      }
      const std::size_t end = behind_parenthesis(tokens, next + 1);
      read_attribute(tokens, next, end, kernel);
      next = end;
    }
    if (next + 1 >= tokens.size() || tokens[next + 1] != "(") continue;
    kernel.name = tokens[next];
    const std::size_t end = behind_parenthesis(tokens, next + 1);
    read_arguments(tokens, next + 2, end - 1, kernel);
    kernels.push_back(std::move(kernel));
    i = end - 1;
  }
  return kernels;
}

bool is_intermediate_language(std::string_view module) noexcept {
  return module.size() >= kSpirvHeaderWords * 4 && module.size() % 4 == 0 && word_at(module, 0) == kSpirvMagic;
}

std::vector<KernelSource> kernels_of_intermediate_language(std::string_view module) {
  std::vector<KernelSource> kernels;
  if (!is_intermediate_language(module)) return kernels;
  const std::size_t words = module.size() / 4;
  for (std::size_t i = kSpirvHeaderWords; i < words;) {
    const std::uint32_t first = word_at(module, i);
    const std::size_t length = first >> 16;
    if (length == 0 || i + length > words) break;
    if ((first & 0xffff) == kOpEntryPoint && length > 3) {
      const std::string_view text = module.substr((i + 3) * 4, (length - 3) * 4);
      KernelSource kernel;
      kernel.name = std::string(text.substr(0, text.find('\0')));
      kernel.arguments_known = false;
      kernels.push_back(std::move(kernel));
    }
    i += length;
  }
  return kernels;
}

}  // namespace xpu::null_driver
