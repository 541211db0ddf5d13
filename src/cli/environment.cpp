#include "cli/environment.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace xpu::cli {
namespace {

constexpr std::string_view kLayerFile = "libxpu_layer_opencl.so";

bool is_assignment_of(std::string_view assignment, std::string_view name) {
  return assignment.size() > name.size() && assignment.starts_with(name) && assignment[name.size()] == '=';
}

}  // namespace

Result<std::string> find_opencl_layer() {
  // By name and not by address: the address of a function of a library may be a stub in the program.
  void* symbol = dlsym(RTLD_DEFAULT, "xpu_probe_abi");
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr)
    return Error{ErrorCode::unavailable, "cannot find out where libxpu.so was loaded from"};
  std::error_code error;
  const std::filesystem::path library = std::filesystem::canonical(info.dli_fname, error);
  if (error) return Error{ErrorCode::unavailable, fmt::format("{} is not there any more", info.dli_fname)};
  std::string layer = (library.parent_path() / kLayerFile).string();
  if (access(layer.c_str(), R_OK) != 0)
    return Error{ErrorCode::unavailable,
                 fmt::format("the OpenCL layer {} is missing or not readable; is xpu installed completely?", layer)};
  if (layer.find(':') != std::string::npos)
    return Error{ErrorCode::unavailable,
                 fmt::format("xpu is installed in a folder with a colon in its name ({}), which OPENCL_LAYERS cannot hold", layer)};
  return layer;
}

const char* find_variable(const char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (is_assignment_of(*environment, name)) return *environment + name.size() + 1;
  }
  return nullptr;
}

std::string layers_value(const char* existing, std::string_view layer) {
  if (existing == nullptr || *existing == '\0') return std::string(layer);
  const std::string list = fmt::format(":{}:", existing);
  if (list.find(fmt::format(":{}:", layer)) != std::string::npos) return existing;
  return fmt::format("{}:{}", existing, layer);
}

std::vector<std::string> program_environment(const char* const* environment, const std::string& live_path, const std::string& layer) {
  std::vector<std::string> result;
  for (const char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (!is_assignment_of(*entry, kRecordVariable) && !is_assignment_of(*entry, kLayersVariable)) result.emplace_back(*entry);
  }
  result.push_back(fmt::format("{}={}", kRecordVariable, live_path));
  result.push_back(fmt::format("{}={}", kLayersVariable, layers_value(find_variable(environment, kLayersVariable), layer)));
  return result;
}

}  // namespace xpu::cli
