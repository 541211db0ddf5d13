/// What it costs to write events, beside the least that writing the same bytes can cost; and to make files of records.
///
///     sink_cost [STEPS [FOLDER]]                 prints all there is; default: 1000000 steps, files in the folder for temporary files
///     sink_cost gate FLOORS JSON PERFETTO MEMORY fails when a sink takes more than so many floors, an event more than so many bytes of a
///                                                file, or a record more than so many bytes of memory
///     sink_cost WRITER STEP COUNT                only that, to be counted: json, json_floor, perfetto, perfetto_floor or none (only the
///                                                steps are made up), and range, launch or copy
///
/// An event is a slice: a range, a call or a command; the arrow between a call and its command counts as a part of the two.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profiler/sinks/export_source.hpp"
#include "record_load.hpp"
#include "sink_floors.hpp"
#include "sink_load.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/perfetto_sink.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::bench {
namespace {

[[noreturn]] void fail(const std::string& sentence) {
  std::fprintf(stderr, "sink_cost: %s\n", sentence.c_str());
  std::exit(1);
}

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class NullSink final : public profiler::Sink {};

enum class Writer { none, json, json_floor, perfetto, perfetto_floor };
constexpr std::array kWriterNames = {"none", "json", "json_floor", "perfetto", "perfetto_floor"};  // in the order of the enumeration

void write_steps(const SinkLoad& load, Writer writer, Step step, std::uint64_t count, const FloorWrite& write) {
  const auto take = [&](std::string_view piece) {
    write(piece);
    return Result<>();
  };
  const auto sink = [&]() -> std::unique_ptr<profiler::Sink> {
    switch (writer) {
      case Writer::json: return std::make_unique<profiler::ChromeSink>(take, profiler::ChromeSink::Options{});
      case Writer::json_floor: return make_json_floor(load, write);
      case Writer::perfetto: return std::make_unique<profiler::PerfettoSink>(take, profiler::PerfettoSink::Options{});
      case Writer::perfetto_floor: return make_perfetto_floor(load, write);
      case Writer::none: break;
    }
    return std::make_unique<NullSink>();
  }();
  load.run(step, count, *sink);
}

std::string text_of(const SinkLoad& load, Writer writer, Step step, std::uint64_t count) {
  std::string text;
  write_steps(load, writer, step, count, [&](std::string_view piece) { text += piece; });
  return text;
}

/// Nothing that is written is kept.
double ns_per_step(const SinkLoad& load, Writer writer, Step step) {
  constexpr std::uint64_t kCount = 50'000;
  const double start = cpu_seconds();
  write_steps(load, writer, step, kCount, [](std::string_view) {});
  return (cpu_seconds() - start) * 1e9 / kCount;
}

/// Of steps: of one, or of one of each kind.
struct Time {
  double sink_ns = 0, floor_ns = 0;
  double floors() const { return sink_ns / floor_ns; }
  void operator+=(const Time& other) {
    sink_ns += other.sink_ns;
    floor_ns += other.floor_ns;
  }
};

/// Medians of interleaved rounds, each without what making up the steps takes.
Time time_of(const SinkLoad& load, Writer writer, Writer floor, Step step) {
  constexpr std::uint64_t kCompared = 1'000;
  constexpr int kRounds = 25;
  const std::string written = text_of(load, writer, step, kCompared), least = text_of(load, floor, step, kCompared);
  // Without the beginning, among which a sink describes what it writes of.
  if (least.size() < kCompared || written.find(std::string_view(least).substr(least.size() / 2)) == std::string::npos)
    fail(std::string(kWriterNames[static_cast<std::size_t>(floor)]) + " does not write the " + to_string(step) + " of the sink");

  std::vector<double> sink_ns, floor_ns;
  for (int round = 0; round < kRounds; ++round) {
    const double none = ns_per_step(load, Writer::none, step);
    floor_ns.push_back(ns_per_step(load, floor, step) - none);
    sink_ns.push_back(ns_per_step(load, writer, step) - none);
  }
  const Time time = {median(sink_ns), median(floor_ns)};
  const auto slices = static_cast<double>(slices_of(step));
  std::printf("%-8s %-8s %8.1f %8.1f %8.2f %10.1f\n", to_string(step), kWriterNames[static_cast<std::size_t>(writer)],
              time.sink_ns / slices, time.floor_ns / slices, time.floors(), static_cast<double>(least.size()) / kCompared / slices);
  return time;
}

struct Floors {
  double json = 0, perfetto = 0;
};

/// Over one step of each kind: a single one that takes 10 ns is too short for a gate on a busy machine.
Floors compare_with_floors() {
  const SinkLoad load;
  Time json, perfetto;
  std::printf("an event into memory        ns    floor   floors  bytes written\n");
  for (const Step step : kSteps) {
    json += time_of(load, Writer::json, Writer::json_floor, step);
    perfetto += time_of(load, Writer::perfetto, Writer::perfetto_floor, step);
  }
  return {json.floors(), perfetto.floors()};
}

/// "VmRSS", "VmHWM" of this process, in bytes.
std::uint64_t memory_bytes(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what + ':')) return 1'024 * std::strtoull(line.c_str() + what.size() + 1, nullptr, 10);
  }
  fail("no " + what + " in /proc/self/status");
}

struct Cost {
  double cpu_s = 0;
  std::uint64_t memory = 0;  // most resident bytes, of which none were there before
};

/// Runs `work` in a child, so that its memory is nobody else's.
Cost cost_of(const std::function<bool()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) fail("cannot make a pipe");
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) fail("cannot fork");
  if (child == 0) {
    const std::uint64_t before = memory_bytes("VmRSS");
    const double start = cpu_seconds();
    const bool is_done = work();
    const Cost cost = {cpu_seconds() - start, memory_bytes("VmHWM") - before};
    ::_exit(is_done && ::write(ends[1], &cost, sizeof cost) == sizeof cost ? 0 : 1);
  }
  ::close(ends[1]);
  Cost cost;
  const bool is_read = ::read(ends[0], &cost, sizeof cost) == sizeof cost;
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0 || !is_read) fail("a measured run failed");
  return cost;
}

/// Per event of a file, and per record of the source.
struct Sizes {
  double json = 0, perfetto = 0, memory = 0;
};

Sizes export_records(std::uint64_t steps, const std::string& folder) {
  const RecordLoad load(steps);
  const auto records = static_cast<double>(load.records()), events = static_cast<double>(steps * RecordLoad::kSlicesOfStep);
  std::printf("\n%.0f records, %.0f events     CPU, s  M records/s  M events/s  memory/record  file/event\n", records, events);
  Sizes sizes;
  const auto print = [&](const char* what, const Cost& cost, double bytes_per_event) {
    const double per_record = static_cast<double>(cost.memory) / records;
    sizes.memory = std::max(sizes.memory, per_record);
    std::printf("%-34s %8.3f %12.2f %11.2f %12.1f B", what, cost.cpu_s, records / cost.cpu_s / 1e6, events / cost.cpu_s / 1e6, per_record);
    std::printf(bytes_per_event > 0 ? " %9.1f B\n" : "\n", bytes_per_event);
  };

  print("link", cost_of([&] {
          profiler::Session session(load);
          NullSink sink;
          session.add_sink(sink);
          return session.run().has_value();
        }),
        0);
  const auto export_to = [&](const char* name, auto&& run) {
    profiler::ExportOptions options;
    options.path = folder + '/' + name;
    const Cost cost = cost_of([&] {
      const Result<profiler::ExportSummary> summary = run(load, options);
      return summary && summary->slices == steps * RecordLoad::kSlicesOfStep && summary->flows == steps && summary->untimed == 0;
    });
    const double per_event = static_cast<double>(std::filesystem::file_size(options.path)) / events;
    std::filesystem::remove(options.path);
    print(("link and write " + std::string(name)).c_str(), cost, per_event);
    return per_event;
  };
  const auto json = [](const auto& source, const auto& options) { return profiler::export_chrome(source, options); };
  sizes.json = export_to("trace.json", json);
  export_to("trace.json.gz", json);
  sizes.perfetto =
      export_to("trace.pftrace", [](const auto& source, const auto& options) { return profiler::export_perfetto(source, options); });
  return sizes;
}

struct Limits {
  double floors = 0, json_bytes = 0, perfetto_bytes = 0, memory_bytes = 0;
};

int run(std::uint64_t steps, const std::string& parent_folder, const Limits* limits) {
  std::string folder = parent_folder + "/xpu_sink_cost_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) fail("cannot make a folder in " + parent_folder);
  const Floors floors = compare_with_floors();
  const Sizes sizes = export_records(steps, folder);
  std::filesystem::remove_all(folder);
  if (limits == nullptr) return 0;
  bool is_met = true;
  const auto check = [&](const char* what, double value, double limit) {
    std::printf("%s: %.2f (limit %g)\n", what, value, limit);
    is_met = is_met && value <= limit;
  };
  std::printf("\n");
  check("floors of JSON", floors.json, limits->floors);
  check("floors of Perfetto", floors.perfetto, limits->floors);
  check("bytes of JSON an event", sizes.json, limits->json_bytes);
  check("bytes of Perfetto an event", sizes.perfetto, limits->perfetto_bytes);
  check("bytes of memory a record, the worst", sizes.memory, limits->memory_bytes);
  return is_met ? 0 : 1;
}

/// One of the names, or fails.
template <typename Names>
std::size_t index_of(const Names& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fail("what is \"" + name + "\"?");
  return static_cast<std::size_t>(found - names.begin());
}

int main_of(const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i) { return std::strtod(arguments[i].c_str(), nullptr); };
  const std::string folder = std::filesystem::temp_directory_path().string();
  if (arguments.size() == 5 && arguments[0] == "gate") {
    const Limits limits = {number(1), number(2), number(3), number(4)};
    return run(200'000, folder, &limits);
  }
  if (arguments.size() == 3) {
    std::vector<std::string> steps;
    for (const Step step : kSteps) steps.emplace_back(to_string(step));
    const auto writer = static_cast<Writer>(index_of(kWriterNames, arguments[0]));
    write_steps(SinkLoad(), writer, kSteps[index_of(steps, arguments[1])], static_cast<std::uint64_t>(number(2)), [](std::string_view) {});
    return 0;
  }
  if (arguments.size() > 2) fail("unknown arguments");
  return run(arguments.empty() ? 1'000'000 : static_cast<std::uint64_t>(number(0)), arguments.size() == 2 ? arguments[1] : folder, nullptr);
}

}  // namespace
}  // namespace xpu::bench

int main(int argc, char** argv) { return xpu::bench::main_of({argv + 1, argv + argc}); }
