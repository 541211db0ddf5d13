#include <pybind11/stl.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings.hpp"
#include "xpu/annotate.h"
#include "xpu/profiler/capabilities.hpp"
#include "xpu/profiler/config.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::python {
namespace {

/// A session over this process. Threads of Python come in while another one is inside: the steps that have one owner are taken in turn.
class LiveProfile {
 public:
  LiveProfile(profiler::ParsedConfig parsed, profiler::ActivityFilter filter)
      : warnings_(std::move(parsed.warnings)), session_(with_filter(std::move(parsed.config), std::move(filter))) {}

  void prepare() { value(locked(&profiler::Session::prepare)); }
  void start() { value(locked(&profiler::Session::start)); }
  void toggle(bool collect) noexcept { session_.toggle(collect); }
  void stop() { value(session_.stop()); }
  void collect(double patience_s) {
    const std::lock_guard lock(mutex_);
    value(session_.collect(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(patience_s))));
  }
  void cancel() {
    const std::lock_guard lock(mutex_);
    session_.cancel();
  }
  std::string state() const { return std::string(profiler::to_string(session_.state())); }
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  template <typename Use>
  auto use(Use&& use) {
    const std::lock_guard lock(mutex_);
    return use(session_);
  }

 private:
  static profiler::Config with_filter(profiler::Config config, profiler::ActivityFilter filter) {
    if (!filter.is_empty()) config.filter = std::move(filter);
    return config;
  }
  Result<> locked(Result<> (profiler::Session::*step)()) {
    const std::lock_guard lock(mutex_);
    return (session_.*step)();
  }

  const std::vector<std::string> warnings_;
  std::mutex mutex_;
  profiler::Session session_;
};

/// A recording that was opened.
class RecordingFile {
 public:
  explicit RecordingFile(const std::string& path) : recording_(value(trace::Recording::open(path))) {}
  const trace::Recording& recording() const noexcept { return recording_; }

  template <typename Use>
  auto use(Use&& use) {
    const std::lock_guard lock(mutex_);
    return use(recording_);
  }

 private:
  std::mutex mutex_;
  const trace::Recording recording_;
};

profiler::ReportOptions::By row_of(const std::string& name) {
  using By = profiler::ReportOptions::By;
  if (name.empty()) return By::none;
  if (name == "process") return By::process;
  if (name == "queue") return By::queue;
  if (name == "kernel") return By::kernel;
  if (name == "thread") return By::thread;
  throw BadResult(Error{ErrorCode::invalid_argument, "A table has rows by process, queue, kernel or thread, but not by '" + name + "'."});
}

profiler::ReportOptions report_options(const std::string& sort, const std::string& kernels, const std::string& ranges,
                                       const std::string& by) {
  profiler::ReportOptions options;
  options.sort = sort;
  options.kernels_regex = kernels;
  options.ranges_regex = ranges;
  options.by = row_of(by);
  return options;
}

profiler::Compatibility compatibility_of(const std::string& name) {
  if (name.empty()) return profiler::Compatibility::none;
  if (name == "hta") return profiler::Compatibility::hta;
  throw BadResult(Error{ErrorCode::invalid_argument, "A timeline can be made for the reader 'hta', but not for '" + name + "'."});
}

/// What can be made of records, wherever they are.
template <typename Source>
void bind_outputs(py::class_<Source>& source) {
  source.def(
      "export_chrome",
      [](Source& self, std::string path, bool device_only, const std::string& compatibility,
         std::vector<std::pair<std::string, std::string>> metadata) {
        profiler::ExportOptions options;
        options.path = std::move(path);
        options.device_only = device_only;
        options.compatibility = compatibility_of(compatibility);
        options.metadata = std::move(metadata);
        return value(self.use([&](auto& records) { return profiler::export_chrome(records, options); }));
      },
      py::arg("path"), py::arg("device_only"), py::arg("compatibility"), py::arg("metadata"), WithoutGil());
  source.def(
      "export_perfetto",
      [](Source& self, std::string path, bool device_only) {
        profiler::ExportOptions options;
        options.path = std::move(path);
        options.device_only = device_only;
        return value(self.use([&](auto& records) { return profiler::export_perfetto(records, options); }));
      },
      py::arg("path"), py::arg("device_only"), WithoutGil());
  source.def(
      "report_json",
      [](Source& self, const std::string& sort, const std::string& kernels, const std::string& ranges, const std::string& by) {
        const profiler::ReportOptions options = report_options(sort, kernels, ranges, by);
        return profiler::report_json(value(self.use([&](auto& records) { return profiler::make_report(records, options); })));
      },
      py::arg("sort"), py::arg("kernels"), py::arg("ranges"), py::arg("by"), WithoutGil());
  source.def(
      "report_text",
      [](Source& self, int top, const std::string& sort, const std::string& kernels, const std::string& ranges, const std::string& by,
         int width) {
        profiler::ReportOptions options = report_options(sort, kernels, ranges, by);
        options.top = top;
        options.width = width;
        return profiler::report_text(value(self.use([&](auto& records) { return profiler::make_report(records, options); })), options);
      },
      py::arg("top"), py::arg("sort"), py::arg("kernels"), py::arg("ranges"), py::arg("by"), py::arg("width"), WithoutGil());
}

void bind_summary(py::module_& module) {
  using Summary = profiler::ExportSummary;
  py::class_<Summary>(module, "ExportSummary", "What is in a timeline that was written.")
      .def_readonly("path", &Summary::path)
      .def_readonly("bytes", &Summary::bytes)
      .def_readonly("slices", &Summary::slices)
      .def_readonly("kernels", &Summary::kernels)
      .def_readonly("flows", &Summary::flows)
      .def_readonly("overlapping", &Summary::overlapping)
      .def_readonly("untimed", &Summary::untimed);
}

}  // namespace

void bind_profiler(py::module_& module) {
  bind_summary(module);

  py::class_<LiveProfile> live(module, "LiveProfile", "A profile of this process.");
  live.def(py::init([](const std::string& config, std::string kernels) {
             profiler::ActivityFilter filter;
             filter.kernels = std::move(kernels);
             return std::make_unique<LiveProfile>(value(profiler::parse_config(config)), std::move(filter));
           }),
           py::arg("config"), py::arg("kernels"), WithoutGil())
      .def_property_readonly("state", &LiveProfile::state)
      .def_property_readonly("warnings", &LiveProfile::warnings)
      .def("prepare", &LiveProfile::prepare, WithoutGil())
      .def("start", &LiveProfile::start, WithoutGil())
      .def("toggle", &LiveProfile::toggle, py::arg("collect"), WithoutGil())
      .def("stop", &LiveProfile::stop, WithoutGil())
      .def("collect", &LiveProfile::collect, py::arg("patience_s"), WithoutGil())
      .def("cancel", &LiveProfile::cancel, WithoutGil());
  bind_outputs(live);

  py::class_<RecordingFile> file(module, "RecordingFile", "A recording of xpu record.");
  file.def(py::init<const std::string&>(), py::arg("path"), WithoutGil())
      .def_property_readonly("path", [](const RecordingFile& self) { return self.recording().path(); })
      .def_property_readonly("finished", [](const RecordingFile& self) { return self.recording().finished(); })
      .def_property_readonly("damage", [](const RecordingFile& self) { return self.recording().damage(); });
  bind_outputs(file);

  module.def("push_range", [](const char* name) { xpu_annotate_push(name); }, py::arg("name"));
  module.def("pop_range", [] { xpu_annotate_pop(); });
  module.def("mark", [](const char* name) { xpu_annotate_mark(name); }, py::arg("name"));
  module.def("counter", [](const char* name, double number) { xpu_annotate_counter(name, number); }, py::arg("name"), py::arg("value"));
  module.def("capabilities", [] {
    py::list rows;
    for (const profiler::Capability& capability : profiler::capabilities()) {
      rows.append(py::make_tuple(capability.what, capability.is_available, capability.reason));
    }
    return rows;
  });
}

}  // namespace xpu::python
