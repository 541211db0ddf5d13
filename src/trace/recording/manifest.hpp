#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {

/// Name of the manifest's file in a live folder.
inline constexpr const char* kManifestName = "manifest.json";
/// A longer manifest is not read.
inline constexpr std::size_t kMaxManifestBytes = std::size_t{16} << 20;

/// The manifest as JSON, schema "xpu.manifest/1". Strings may hold any bytes: each byte outside printable ASCII is written as \u00XX, so
/// the text is pure ASCII and every string comes back byte for byte. `end` is left out while it is not known.
std::string manifest_to_json(const Manifest& manifest);

/// Any bytes are safe; what is missing or has another type keeps its default. Error: invalid_argument (not JSON, or not a manifest).
Result<Manifest> manifest_from_json(std::string_view text);

}  // namespace xpu::trace
