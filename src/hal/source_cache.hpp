#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xpu/base/result.hpp"

/// What the compiler made of source text, kept on disk. A cached file is the shared library with a tail that loaders ignore: the whole key,
/// the user's files that went in, and a checksum. So one rename publishes all of it, and two keys of one hash are told apart.
namespace xpu::hal {

/// A file that the text includes, as it was when it was compiled.
struct SourceInput {
  std::string path;
  std::int64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const SourceInput&) const = default;
};
/// Its state now; nothing when it cannot be read.
std::optional<SourceInput> state_of_input(const std::string& path);
/// The files that a compiler named in a rule for make ("kernel.o: a.hpp b.hpp"), as written there.
std::vector<std::string> inputs_of_rule(std::string_view rule);

/// A folder of cached files. Thread-safe, as any number of processes are.
class SourceCache {
 public:
  /// `folder` need not exist yet; empty: there is no cache.
  explicit SourceCache(std::string folder) : folder_(std::move(folder)) {}

  /// The path of a whole and unchanged file with this key that belongs to this user (or root); nothing otherwise.
  std::optional<std::string> find(std::string_view key) const;
  /// Puts the library at `path` there under this key. False, and `path` stays as it is, when that cannot be done.
  bool add(std::string_view key, const std::vector<SourceInput>& inputs, const std::string& path) const;
  /// A new folder of this user alone to compile in: in the cache, so that a rename is enough, or among the system's temporary files when
  /// there is no cache that can be written, or its disk is full.
  Result<std::string> make_work_folder(const std::string& temporary_folder) const;

 private:
  std::string path_of(std::string_view key) const;

  const std::string folder_;
};

}  // namespace xpu::hal
