#include "profiler/sinks/json_text.hpp"

#include "xpu/base/text.hpp"

namespace xpu::profiler {

namespace {

void append_escaped(std::string& out, unsigned char character) {
  switch (character) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[character >> 4];
  out += kHex[character & 15];
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto character = static_cast<unsigned char>(text.front());
    // DEL is legal in JSON, and some viewers choke on it.
    if (character < 0x20 || character == '"' || character == '\\' || character == 0x7f) {
      append_escaped(out, character);
      text.remove_prefix(1);
      continue;
    }
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace xpu::profiler
