#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xpu::cli {

/// What was seen of one program image: a process between two calls of exec.
struct ImageSight {
  pid_t pid = 0;
  std::string executable;        ///< Empty when it could not be read.
  std::string auxiliary_vector;  ///< What exec handed it (proc(5), auxv): another one means another exec of the same file.
  unsigned looks = 0;            ///< With its libraries mapped, or of a program without any.
  bool privileged = false;       ///< AT_SECURE, or closed to us and with other users, groups or capabilities than ours.
  std::string foreign_machine;   ///< "a 32-bit program" when the image is of another machine than ours, else empty.

  bool environment_known = false;  ///< The three below are what exec handed over.
  bool has_record = false;         ///< XPU_RECORD is ours.
  bool has_layers = false;         ///< OPENCL_LAYERS is there at all.
  std::string layers;

  bool layer_mapped = false;  ///< At the last look.
  std::string loader;         ///< Path of the OpenCL loader in its memory, or empty.
  bool loader_knows_layers = false;
  std::vector<std::string> files;  ///< Mapped files at the look that saw most of them.
};

/// Looks at a program and its descendants through /proc while it runs, so that afterwards a person can be told why nothing attached.
///
/// A short program is gone soon, so the first 100 ms are looked at every millisecond; after that the pause grows with the age of the
/// program, up to 250 ms. All looks together take at most 30 ms of processor time and one part in 200 of the program's age. One owner.
class ProcessWatch {
 public:
  ProcessWatch(pid_t program, std::string live_path, std::string layer_path, std::uint64_t start_ns);

  std::uint64_t next_ns() const { return next_ns_; }
  /// One look at every process.
  void look();

  const std::vector<ImageSight>& images() const { return images_; }
  std::uint64_t start_ns() const { return start_ns_; }
  /// Processor time of all looks.
  std::uint64_t spent_ns() const { return spent_ns_; }
  /// Of the last look; 0 when there was none.
  std::uint64_t last_look_ns() const { return last_ns_; }

 private:
  void look_at(pid_t pid);
  void add_children(pid_t pid, std::vector<pid_t>& found) const;
  ImageSight* find_image(pid_t pid, const std::string& executable, const std::string& auxiliary_vector);
  /// The same, added when it is new.
  ImageSight& image_of(pid_t pid, const std::string& executable, const std::string& auxiliary_vector);
  void note_environment(ImageSight& image, const std::string& environment) const;
  bool loader_knows_layers(pid_t pid, const std::string& loader);

  pid_t program_;
  std::string live_path_;
  std::string layer_path_;
  std::uint64_t start_ns_;
  std::uint64_t next_ns_;
  std::uint64_t last_ns_ = 0;
  std::uint64_t spent_ns_ = 0;
  std::vector<ImageSight> images_;
  std::vector<std::pair<std::string, bool>> loaders_;  ///< Each file is searched once.
};

/// Whether a file has this text anywhere; false when it cannot be read.
bool file_contains(const std::string& path, std::string_view text);

}  // namespace xpu::cli
