#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "xpu/profiler/report.hpp"

namespace xpu::profiler {
namespace {

/// One line of comma-separated fields.
class Line {
 public:
  Line& text(std::string_view field) {
    separate();
    const bool quoted = field.find_first_of(",\"\r\n") != std::string_view::npos;
    if (!quoted) {
      line_ += field;
      return *this;
    }
    line_ += '"';
    for (const char character : field) {
      if (character == '"') line_ += '"';
      line_ += character;
    }
    line_ += '"';
    return *this;
  }
  template <typename Number>
  Line& number(Number value) {
    separate();
    char digits[40];
    line_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    return *this;
  }
  template <typename Number>
  Line& number(const std::optional<Number>& value) {
    if (value) return number(*value);
    separate();
    return *this;
  }
  std::string finish() && { return std::move(line_) + '\n'; }

 private:
  void separate() {
    if (!first_) line_ += ',';
    first_ = false;
  }
  std::string line_;
  bool first_ = true;
};

std::string kernels_csv(const Report& report) {
  std::string csv =
      "name,device,process,queue,thread,calls,failed,total_ns,avg_ns,min_ns,median_ns,p99_ns,max_ns,share,launch_delay_median_ns,launch_"
      "delay_p99_ns,"
      "raw_name\n";
  for (const Report::Kernel& kernel : report.kernels) {
    std::optional<std::int64_t> delay_median, delay_p99;
    if (kernel.launch_delay_ns) {
      delay_median = kernel.launch_delay_ns->median;
      delay_p99 = kernel.launch_delay_ns->p99;
    }
    Line line;
    line.text(kernel.name).number(kernel.device).number(kernel.process).number(kernel.queue).number(kernel.thread);
    line.number(kernel.calls).number(kernel.failed).number(kernel.total_ns).number(kernel.avg_ns).number(kernel.min_ns);
    line.number(kernel.median_ns).number(kernel.p99_ns).number(kernel.max_ns).number(kernel.share);
    line.number(delay_median).number(delay_p99).text(kernel.raw_name);
    csv += std::move(line).finish();
  }
  return csv;
}

std::string ranges_csv(const Report& report) {
  std::string csv = "name,calls,host_ns,host_self_ns,commands,device_ns,device_self_ns\n";
  for (const Report::Range& range : report.ranges) {
    Line line;
    line.text(range.name).number(range.calls).number(range.host_ns).number(range.host_self_ns);
    line.number(range.commands).number(range.device_ns).number(range.device_self_ns);
    csv += std::move(line).finish();
  }
  return csv;
}

std::string calls_csv(const Report& report) {
  std::string csv = "name,calls,failed,total_ns,max_ns,waits\n";
  for (const Report::Api& api : report.api) {
    Line line;
    line.text(api.name).number(api.calls).number(api.failed).number(api.total_ns).number(api.max_ns);
    line.text(api.waits ? "true" : "false");
    csv += std::move(line).finish();
  }
  return csv;
}

}  // namespace

std::string report_csv(const Report& report, ReportTable table) {
  switch (table) {
    case ReportTable::kernels: break;
    case ReportTable::ranges: return ranges_csv(report);
    case ReportTable::calls: return calls_csv(report);
  }
  return kernels_csv(report);
}

}  // namespace xpu::profiler
