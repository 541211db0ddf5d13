#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/sink.hpp"

/// Traces that go somewhere else than into a file: a path "proto://..." is for whoever registered "proto". It may stand wherever a trace's
/// path does, `Config::log_file` and `ExportOptions::path` among them. "file://PATH" is the file PATH, and nobody else's.
namespace xpu::profiler {

/// Makes what takes one trace; `options.path` is its whole url, the other options are what the caller asked for. The session is replayed
/// into the sink, which gets the activities themselves and no copies, and dropped behind `end`. Called by the thread that exports, with no
/// lock held, by several at a time where several export. Must not throw; an error is that of the export.
using OutputFactory = std::function<Result<std::unique_ptr<Sink>>(const ExportOptions& options)>;

/// From now on `factory` has every path "SCHEME://...", in letters of either case. The second one for a scheme replaces the first, with a
/// warning in the log; traces that are being written go on. Thread-safe. Error invalid_argument for "file", for what is no scheme (a
/// letter, then letters, digits, '+', '-' and '.') and for an empty factory.
XPU_EXPORT Result<> register_output(std::string_view scheme, OutputFactory factory);
/// False when there was none. Thread-safe; a factory may still be called by exports that began before.
XPU_EXPORT bool unregister_output(std::string_view scheme);

/// "proto" of "proto://...", in small letters; empty when the path is that of a file.
XPU_EXPORT std::string output_scheme(std::string_view path);
/// PATH of "file://PATH", and any other path as it is.
XPU_EXPORT std::string_view without_file_scheme(std::string_view path);
/// Whether a trace can go there: error invalid_argument for a scheme that nobody registered, with those that there are.
XPU_EXPORT Result<> check_output(std::string_view path);

}  // namespace xpu::profiler
