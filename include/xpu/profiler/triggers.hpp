#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/profiler.hpp"

namespace xpu::profiler {

/// By what a profile can be asked for from outside the process, without a daemon. A request is the text of a configuration
/// (`parse_config`); an empty one is a profile by default.
struct TriggerOptions {
  /// When this file appears or changes, its text is a request, once it has stayed the same for one look. What came of it is written to
  /// FILE.status. A file that is there already is none. Empty: no file.
  std::string file = {};
  /// A signal is a request for what `file` says, or for a profile by default. 0: none. It must not have a handler yet.
  int signal = 0;
  /// A stream socket of UNIX that is made here, for the user alone: what a client sends until it shuts its side down is a request, and the
  /// answer is one line. Empty: none.
  std::string socket = {};
  std::chrono::milliseconds period{250};  ///< Between two looks at the file.
};

/// "file:PATH", "signal:USR2" (or its number) and "socket:PATH", separated by commas, each at most once: the value of an environment
/// variable, say. Error invalid_argument, which names what is wrong and what is allowed.
XPU_EXPORT Result<TriggerOptions> parse_triggers(std::string_view text);

/// What came of a request.
struct TriggerOutcome {
  std::string source = {};   ///< "file", "signal" or "socket".
  std::string problem = {};  ///< Why there will be no profile, in a sentence; else empty.
  std::vector<std::string> warnings = {};
};

/// Hands requests from outside to a profiler, in one thread of low priority named "xpu-triggers". Whether traces may go anywhere is for the
/// profiler to say (`Profiler::Options::is_confined`). A forked child has no triggers.
class XPU_EXPORT Triggers {
 public:
  /// `told`, if any, is called by the thread with what came of each request. Errors: invalid_argument (nothing to watch, a path that is too
  /// long for a socket, a number that is no signal), failed_precondition (the signal has a handler, the socket's place is taken),
  /// unavailable (what the system refuses).
  static Result<std::unique_ptr<Triggers>> start(Profiler& profiler, TriggerOptions options,
                                                 std::function<void(const TriggerOutcome&)> told = nullptr);
  /// Ends the thread, puts the signal back as it was, and removes the socket. The profiler must live until then.
  ~Triggers();
  Triggers(const Triggers&) = delete;
  Triggers& operator=(const Triggers&) = delete;

 private:
  struct Impl;
  explicit Triggers(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::profiler
