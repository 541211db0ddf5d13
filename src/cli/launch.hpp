#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "xpu/base/result.hpp"

namespace xpu::cli {

/// Signal mask and disposition of SIGCHLD as this process got them, which is what the program must get. Made before anything is changed.
class InheritedSignals {
 public:
  /// Blocks every signal that can be blocked (they are read from a descriptor instead, see SignalRelay) and takes SIGCHLD back from being
  /// ignored, without which no program can be waited for.
  static InheritedSignals take_over();

  /// Puts both back. For the child between fork and exec: async-signal-safe.
  void restore() const;

 private:
  sigset_t mask_{};
  struct sigaction child_action_{};
};

struct Launched {
  pid_t pid = -1;
  int exec_errno = 0;  ///< 0: the program runs. Else the child is gone and was waited for.
};

/// What a shell would execute under this name: a path, or in `error` ENOENT or EACCES when there is nothing or nothing executable. Asked
/// for before anything else, so that a mistyped name costs nothing: an older recording, which -f replaces, is still there.
struct FoundProgram {
  std::string path;
  int error = 0;
};
FoundProgram find_program(const std::string& name, const char* search_path);

/// Forks and executes `path` with `argv` and `environment`; a text file without "#!" is run by /bin/sh, as every shell does. Returns when
/// the program's image is in place or could not be. Error unavailable: no process could be made.
Result<Launched> launch(const std::string& path, const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                        const InheritedSignals& inherited);

/// Ends this process as the program ended: by the same signal, without a core file of ours. Returns (128 + signal) only if that did not
/// work, as for process 1 of a container.
int die_by_signal(int signal);

}  // namespace xpu::cli
