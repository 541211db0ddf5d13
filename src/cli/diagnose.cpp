#include "cli/diagnose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/environment.hpp"
#include "cli/text.hpp"

namespace xpu::cli {
namespace {

/// Fewer looks than this say nothing about what a program maps.
constexpr unsigned kEnoughLooks = 3;

std::string name_of(const ImageSight& image) {
  if (image.executable.empty()) return fmt::format("process {}", image.pid);
  return printable(image.executable.substr(image.executable.find_last_of('/') + 1));
}

/// The latest: a program may have executed another one in its own place.
const ImageSight* find(std::span<const ImageSight> images, const auto& condition) {
  const auto image = std::find_if(images.rbegin(), images.rend(), condition);
  return image == images.rend() ? nullptr : &*image;
}

/// Whether it has libxpu itself in memory, as a program has that runs its work on it.
bool uses_libxpu(const ImageSight& image) {
  return std::any_of(image.files.begin(), image.files.end(),
                     [](const std::string& file) { return file.find("libxpu.so", file.find_last_of('/') + 1) != std::string::npos; });
}

/// A mapped library with this text that is neither a loader nor ours, or empty.
std::string library_with(const ImageSight& image, std::string_view text, const Expected& expected) {
  for (const std::string& file : image.files) {
    const std::string_view name = std::string_view(file).substr(file.find_last_of('/') + 1);
    if (name.starts_with("libOpenCL.so") || file == expected.layer_path || name.find(".so") == std::string_view::npos) continue;
    if (file_contains(file, text)) return file;
  }
  return {};
}

Diagnosis privileges(const ImageSight& image) {
  return {Reason::raised_privileges,
          fmt::format("{} runs with raised privileges (set-user-id, set-group-id or file capabilities), and there recording stays off",
                      name_of(image))};
}

Diagnosis cleared_environment(const ImageSight& image, std::string_view missing) {
  return {Reason::cleared_environment, fmt::format("{} was started with a cleared environment, without {}", name_of(image), missing)};
}

/// What exec handed over is not what we gave.
std::optional<Diagnosis> environment_trouble(const ImageSight& image, const Expected& expected) {
  if (!image.environment_known) return std::nullopt;
  if (!image.has_record || !image.has_layers) return cleared_environment(image, image.has_record ? kLayersVariable : kRecordVariable);
  if (image.layers != expected.layers)
    return Diagnosis{Reason::other_tool, fmt::format("another tool holds the OpenCL layers: {} was started with OPENCL_LAYERS={}",
                                                     name_of(image), shell_word(image.layers))};
  return std::nullopt;
}

Diagnosis with_libxpu(const ImageSight& image) {
  if (image.privileged) return privileges(image);
  if (image.environment_known && !image.has_record) return cleared_environment(image, kRecordVariable);
  return {Reason::no_command, fmt::format("{} used libxpu but no device of it", name_of(image))};
}

Diagnosis with_loader(const ImageSight& image, const Expected& expected, const LayerTrial& try_layer) {
  if (image.privileged) return privileges(image);
  if (!image.foreign_machine.empty())
    return {Reason::layer_not_loadable,
            fmt::format("{} is {}, and the layer {} is not made for it", name_of(image), image.foreign_machine, expected.layer_path)};
  if (!image.loader_knows_layers)
    return {Reason::loader_without_layers, fmt::format("the OpenCL loader {} of {} knows no layers", image.loader, name_of(image))};
  if (auto trouble = environment_trouble(image, expected)) return *trouble;
  if (const std::string other = library_with(image, "clInitLayer", expected); !other.empty())
    return {Reason::other_tool,
            fmt::format("another tool holds the OpenCL layers: {} replaced OPENCL_LAYERS and has {} loaded", name_of(image), other)};
  if (const auto text = try_layer(image))
    return {Reason::layer_not_loadable, fmt::format("the OpenCL layer could not be loaded: {}", printable(*text))};
  if (const std::string driver = library_with(image, "clIcdGetPlatformIDsKHR", expected); !driver.empty())
    return {Reason::cleared_environment,
            fmt::format("{} uses OpenCL ({}) but not its layers: it cleared or changed OPENCL_LAYERS in its environment first",
                        name_of(image), driver)};
  return {Reason::no_call,
          fmt::format("{} has an OpenCL loader ({}) in memory, but no OpenCL driver was opened", name_of(image), image.loader)};
}

}  // namespace

Diagnosis diagnose(std::span<const ImageSight> images, const Expected& expected, std::uint64_t unseen_ns, const LayerTrial& try_layer) {
  if (const auto* image = find(images, [](const ImageSight& i) { return i.layer_mapped; })) {
    if (image->privileged) return privileges(*image);
    if (auto trouble = environment_trouble(*image, expected)) return *trouble;
    return {Reason::no_command, fmt::format("{} used OpenCL but submitted no command", name_of(*image))};
  }
  if (const auto* image = find(images, [](const ImageSight& i) { return !i.loader.empty(); }))
    return with_loader(*image, expected, try_layer);
  if (const auto* image = find(images, uses_libxpu)) return with_libxpu(*image);
  if (const auto* image = find(images, [](const ImageSight& i) { return i.privileged; })) return privileges(*image);

  unsigned looks = 0;
  for (const ImageSight& image : images) looks += image.looks;
  if (looks < kEnoughLooks) return {Reason::unknown, "not known, the program ended before it could be looked at"};
  for (const ImageSight& image : images) {
    if (const std::string driver = library_with(image, "clIcdGetPlatformIDsKHR", expected); !driver.empty())
      return {Reason::no_loader, fmt::format("no OpenCL loader was mapped: {} uses the driver {} directly", name_of(image), driver)};
  }
  return {Reason::no_loader,
          fmt::format("neither an OpenCL loader (libOpenCL.so) nor libxpu was mapped by the program (last looked {} before "
                      "its end)",
                      duration_text(unseen_ns))};
}

}  // namespace xpu::cli
