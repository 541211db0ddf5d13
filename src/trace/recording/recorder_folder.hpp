#pragma once

#include <string>

#include "trace/recording/storage.hpp"
#include "xpu/base/result.hpp"

namespace xpu::trace {

inline constexpr const char* kOptionsName = "options";

/// The folder NAME.xpu.live of a recording in the making, locked as long as the object lives. One owner at a time.
class LiveFolder {
 public:
  /// Makes the folder beside `path` (mode 0700, whatever the umask). With `overwrite` an older recording of the name is removed, finished
  /// or not, unless a recorder is still writing it. Errors: invalid_argument (not an absolute path that ends in .xpu), failed_precondition
  /// (exists), unavailable (cannot be made: says why).
  static Result<LiveFolder> create(const std::string& path, bool overwrite);

  int fd() const noexcept { return folder_.get(); }
  const std::string& path() const noexcept { return path_; }
  const std::string& live_path() const noexcept { return live_path_; }

  /// Gives `compacted.part` its final name. failed_precondition when that name has appeared meanwhile and `overwrite` is false: nothing is
  /// changed.
  Result<> publish(bool overwrite) const;
  /// Removes the files that a recorder makes, and the folder if nothing else is in it.
  void remove() const noexcept;

 private:
  LiveFolder() = default;
  Result<> make(bool overwrite, bool& made);

  UniqueFd parent_, folder_;
  std::string path_, live_path_, name_, live_name_;
};

}  // namespace xpu::trace
