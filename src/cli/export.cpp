#include "xpu/profiler/export.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/interrupt_cleanup.hpp"
#include "cli/recording_name.hpp"
#include "cli/text.hpp"
#include "xpu/profiler/outputs.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::cli {
namespace {

int fail(const Error& error) {
  say("{}", error.message);
  return kFailed;
}

}  // namespace

int export_recording(const ExportRequest& request) {
  if (request.output && (request.output->empty() || request.output->ends_with('/'))) {
    say("-o {} does not name a file", shell_word(*request.output));
    return kUsage;
  }
  const auto name = find_recording(request.name);
  if (!name) return fail(name.error());
  const auto recording = trace::Recording::open(*name);
  if (!recording) return fail(recording.error());
  if (!recording->finished()) say("{}: recording was not finished", recording->path());
  if (!recording->damage().empty()) say("{} is damaged: {}", recording->path(), recording->damage());

  profiler::ExportOptions options;
  const bool perfetto = request.format == ExportFormat::perfetto;
  options.path = request.output ? std::string(profiler::without_file_scheme(*request.output))
                                : without_suffix(recording->path()) + (perfetto ? ".pftrace.gz" : ".json.gz");
  options.device_only = request.device_only;
  options.compatibility = request.compatibility;
  const auto folder = working_directory();
  const std::string shown = folder ? short_path(options.path, *folder) : options.path;
  struct stat existing{};
  if (lstat(options.path.c_str(), &existing) == 0) {
    if (S_ISDIR(existing.st_mode)) {
      say("{} is a folder", shown);
      return kFailed;
    }
    if (!request.overwrite) {
      say("{} exists already; give another name with -o, or replace it with -f", shown);
      return kFailed;
    }
  }

  Progress progress;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.show(fmt::format("writing {}: {} of {}", shown, with_thousands(done), counted(total, "command")));
  };
  auto written = [&] {
    const InterruptCleanup cleanup(options.path + ".tmp");
    return perfetto ? profiler::export_perfetto(*recording, options) : profiler::export_chrome(*recording, options);
  }();
  progress.clear();
  if (!written) return fail(written.error());
  say("{} ({} slices, {}) -> open it at https://ui.perfetto.dev{}", shown, with_thousands(written->slices), bytes_text(written->bytes),
      perfetto ? "" : " or in chrome://tracing");
  if (written->untimed > 0) say("{} without times have no slice on a device", counted(written->untimed, "command"));
  return kOk;
}

}  // namespace xpu::cli
