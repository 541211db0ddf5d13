#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "cli/process_watch.hpp"

namespace xpu::cli {

/// Why no process of a program was recorded.
enum class Reason : std::uint8_t {
  no_command,             ///< The layer or libxpu was there; nothing was submitted.
  no_loader,              ///< No OpenCL loader was mapped, nor libxpu.
  no_call,                ///< A loader was mapped and never used.
  loader_without_layers,  ///< The loader does not know OPENCL_LAYERS.
  layer_not_loadable,
  other_tool,  ///< OPENCL_LAYERS was set to something else.
  raised_privileges,
  cleared_environment,
  unknown,
};

struct Diagnosis {
  Reason reason = Reason::unknown;
  std::string sentence;  ///< Without a full stop, begins in lower case.
};

struct Expected {
  std::string layers;  ///< OPENCL_LAYERS as the program was given it.
  std::string layer_path;
};

/// Tries to load the layer as the program would have; the linker's text when that fails. Called at most once.
using LayerTrial = std::function<std::optional<std::string>(const ImageSight&)>;

/// From what was seen of the program's processes. `unseen_ns`: how long it ran on after the last look.
Diagnosis diagnose(std::span<const ImageSight> images, const Expected& expected, std::uint64_t unseen_ns, const LayerTrial& try_layer);

/// Loads the layer in a fresh process that gets `environment` and the C++ library that the image had mapped. Empty when it loads. Signals
/// must be blocked as by InheritedSignals; waits at most ten seconds.
std::optional<std::string> try_layer_in_child(const ImageSight& image, const std::string& layer_path,
                                              const std::vector<std::string>& environment);

/// The child's side: argv[1] of the hidden call. Prints the linker's text and returns 1 when the layer does not load.
inline constexpr const char* kTryLayerArgument = "--internal-try-layer";
int run_layer_trial(const char* layer_path);

}  // namespace xpu::cli
