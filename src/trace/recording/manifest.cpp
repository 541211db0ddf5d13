#include "trace/recording/manifest.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace xpu::trace {
namespace {

constexpr std::string_view kSchema = "xpu.manifest/1";

using Json = nlohmann::json;

void put_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      out.push_back('\\');
      out.push_back(character);
    } else if (byte < 0x20 || byte >= 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out.push_back(character);
    }
  }
  out.push_back('"');
}

// The JSON reader gives U+0080 to U+00FF as two bytes each; what a person typed beyond that stays as it is.
std::string bytes_of(const std::string& text) {
  std::string bytes;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const auto first = static_cast<unsigned char>(text[index]);
    if ((first == 0xc2 || first == 0xc3) && index + 1 < text.size()) {
      const auto second = static_cast<unsigned char>(text[++index]);
      bytes.push_back(static_cast<char>((first & 0x03) << 6 | (second & 0x3f)));
    } else {
      bytes.push_back(text[index]);
    }
  }
  return bytes;
}

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

void get(const Json& object, const char* key, std::string& out) {
  const Json* value = find(object, key);
  if (value != nullptr && value->is_string()) out = bytes_of(value->get_ref<const std::string&>());
}

template <typename Number>
  requires std::is_arithmetic_v<Number>
void get(const Json& object, const char* key, Number& out) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_number_integer()) return;
  out = value->is_number_unsigned() ? static_cast<Number>(value->get<std::uint64_t>()) : static_cast<Number>(value->get<std::int64_t>());
}

}  // namespace

std::string manifest_to_json(const Manifest& manifest) {
  std::string out;
  const auto string_field = [&](const char* key, const std::string& text, const char* after = ",\n") {
    fmt::format_to(std::back_inserter(out), "  \"{}\": ", key);
    put_string(out, text);
    out += after;
  };

  fmt::format_to(std::back_inserter(out), "{{\n  \"schema\": \"{}\",\n", kSchema);
  string_field("program", manifest.program);
  out += "  \"argv\": [";
  for (std::size_t index = 0; index < manifest.argv.size(); ++index) {
    if (index != 0) out += ", ";
    put_string(out, manifest.argv[index]);
  }
  out += "],\n";
  string_field("working_directory", manifest.working_directory);
  string_field("host", manifest.host);
  string_field("boot_id", manifest.boot_id);
  string_field("xpu_version", manifest.xpu_version);
  string_field("system", manifest.system);
  // A list of pairs: an environment may hold a name twice.
  out += "  \"environment\": [";
  for (std::size_t index = 0; index < manifest.environment.size(); ++index) {
    out += index == 0 ? "\n    [" : ",\n    [";
    put_string(out, manifest.environment[index].first);
    out += ", ";
    put_string(out, manifest.environment[index].second);
    out += "]";
  }
  out += "],\n";
  fmt::format_to(std::back_inserter(out), "  \"mode\": {},\n", static_cast<std::uint32_t>(manifest.mode));
  string_field("kernels", manifest.kernels);
  fmt::format_to(std::back_inserter(out), "  \"start\": {{\"monotonic_ns\": {}, \"raw_ns\": {}, \"realtime_ns\": {}}}",
                 manifest.start_monotonic_ns, manifest.start_raw_ns, manifest.start_realtime_ns);
  if (manifest.end.known) {
    fmt::format_to(std::back_inserter(out), ",\n  \"end\": {{\"exit_code\": {}, \"signal\": {}, \"wall_ns\": {}, \"recorder_cpu_ns\": {}}}",
                   manifest.end.exit_code, manifest.end.signal, manifest.end.wall_ns, manifest.end.recorder_cpu_ns);
  }
  out += "\n}\n";
  return out;
}

Result<Manifest> manifest_from_json(std::string_view text) {
  if (text.size() > kMaxManifestBytes) return Error{ErrorCode::invalid_argument, "the manifest of the recording is too long to be one"};
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{ErrorCode::invalid_argument, "the manifest of the recording is not JSON"};
  std::string schema;
  get(json, "schema", schema);
  if (schema != kSchema)
    return Error{ErrorCode::invalid_argument, fmt::format("the manifest of the recording has no schema \"{}\"", kSchema)};

  Manifest manifest;
  get(json, "program", manifest.program);
  if (const Json* argv = find(json, "argv"); argv != nullptr && argv->is_array()) {
    for (const Json& argument : *argv) {
      if (argument.is_string()) manifest.argv.push_back(bytes_of(argument.get_ref<const std::string&>()));
    }
  }
  get(json, "working_directory", manifest.working_directory);
  get(json, "host", manifest.host);
  get(json, "boot_id", manifest.boot_id);
  get(json, "xpu_version", manifest.xpu_version);
  get(json, "system", manifest.system);
  if (const Json* environment = find(json, "environment"); environment != nullptr && environment->is_array()) {
    for (const Json& pair : *environment) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) continue;
      manifest.environment.emplace_back(bytes_of(pair[0].get_ref<const std::string&>()), bytes_of(pair[1].get_ref<const std::string&>()));
    }
  }
  std::uint32_t mode = 0;
  get(json, "mode", mode);
  if (mode <= static_cast<std::uint32_t>(RecordMode::api)) manifest.mode = static_cast<RecordMode>(mode);
  get(json, "kernels", manifest.kernels);
  if (const Json* start = find(json, "start")) {
    get(*start, "monotonic_ns", manifest.start_monotonic_ns);
    get(*start, "raw_ns", manifest.start_raw_ns);
    get(*start, "realtime_ns", manifest.start_realtime_ns);
  }
  if (const Json* end = find(json, "end"); end != nullptr && end->is_object()) {
    manifest.end.known = true;
    get(*end, "exit_code", manifest.end.exit_code);
    get(*end, "signal", manifest.end.signal);
    get(*end, "wall_ns", manifest.end.wall_ns);
    get(*end, "recorder_cpu_ns", manifest.end.recorder_cpu_ns);
  }
  return manifest;
}

}  // namespace xpu::trace
