// Writes the inputs from which the fuzz targets start: small recordings of every kind, made by what the program and the recorder write them
// with, so that they follow every change of the format.
// Each target gets the inputs of all: what is not its own it has to refuse.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/clock_input.hpp"
#include "tests/fuzz/input_files.hpp"
#include "tests/fuzz/pieces.hpp"
#include "tests/support/recording_builder.hpp"
#include "trace/recording/manifest.hpp"

namespace {

using namespace xpu;
using test_support::make_record;
using test_support::RecordingBuilder;

std::string g_folder;

void write_input(const std::string& name, std::span<const std::byte> bytes) { test_support::write_bytes(g_folder + "/" + name, bytes); }
void write_input(const std::string& name, const std::string& text) { write_input(name, std::as_bytes(std::span(text))); }

trace::ProcessInfo process_info(std::uint64_t pid, trace::SegmentState state) {
  trace::ProcessInfo info;
  info.pid = pid;
  info.start_ns = pid * 10;
  info.state = state;
  info.writer_count = 2;
  info.filtered = 3;
  return info;
}

// One record of every kind that has a structure, some with values in them.
void add_every_kind(RecordingBuilder& builder, std::size_t process) {
  builder.add_string(process, 1, 1, "vector_add");
  builder.add_string(process, 1, 2, std::string(300, 'x'), trace::kFlagContinues);
  builder.add_process_record(process, 1, {{}, 41, 1, 410, -1, 0}, "program");
  const std::uint32_t devices[] = {1, 2, 3};
  builder.add_context(process, 1, 1, devices);
  builder.add(process, 1, make_record<trace::ThreadRecord>());
  builder.add(process, 1, make_record<trace::DeviceRecord>());
  builder.add(process, 1, test_support::queue_record(1, 5));
  builder.add(process, 1, make_record<trace::ModuleRecord>());
  builder.add(process, 1, make_record<trace::KernelRecord>());
  builder.add(process, 1, make_record<trace::GeometryRecord>());
  builder.add(process, 1, make_record<trace::FactRecord>());
  builder.add(process, 1, make_record<trace::CopyDetailRecord>());
  builder.add(process, 1, make_record<trace::RectangleRecord>());
  builder.add(process, 1, make_record<trace::CallBeginRecord>());
  builder.add(process, 1, make_record<trace::ApiCallRecord>());
  builder.add(process, 1, make_record<trace::SynchronizationRecord>());
  builder.add(process, 1, make_record<trace::MemoryRecord>());
  builder.add(process, 1, make_record<trace::AnnotationRecord>());
  builder.add(process, 1, make_record<trace::OverheadRecord>());
  builder.add(process, 1, make_record<trace::SessionRecord>());
  builder.add(process, 1, make_record<trace::ObjectEndRecord>());
  const std::vector<std::byte> unknown = {
      std::byte{200}, std::byte{0}, std::byte{16}, std::byte{0}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  builder.add_bytes(process, 1, unknown);
}

void add_launches(RecordingBuilder& builder, std::size_t process, std::uint32_t count) {
  for (std::uint32_t number = 1; number <= count; ++number) {
    const std::uint32_t writer = 1 + number % 2;
    const std::uint64_t operation = trace::make_operation(writer, number), start = 1'000'000 + number * 4'321;
    builder.add(process, writer, test_support::submission(operation, 1, 5 + number, start - 700));
    if (number != count) builder.add(process, 3 - writer, test_support::completion(operation, 1, start, start + 1'234));
    if (number % 16 == 0) {
      auto reading = make_record<trace::ClockReadingRecord>();
      reading.host_before_ns = start - 50;
      reading.host_after_ns = start + 50;
      reading.device_ticks = start * 12 / 1'000;
      reading.device = 1;
      builder.add(process, 1, reading);
    }
  }
}

struct Example {
  const char* name;
  RecordingBuilder builder;
};

std::vector<Example> examples() {
  std::vector<Example> all(5);
  all[0].name = "empty";
  all[0].builder.add_process(process_info(41, trace::SegmentState::attached));

  all[1].name = "every_kind";
  add_every_kind(all[1].builder, all[1].builder.add_process(process_info(41, trace::SegmentState::closed)));

  all[2].name = "launches";
  add_launches(all[2].builder, all[2].builder.add_process(process_info(41, trace::SegmentState::closed)), 60);

  all[3].name = "losses";
  const std::size_t died = all[3].builder.add_process(process_info(41, trace::SegmentState::attached));
  all[3].builder.process(died).lost_before_any_chunk = 2;
  add_launches(all[3].builder, died, 10);
  all[3].builder.add_loss(died, 1, test_support::loss(1, 1, 7, 0, 30));
  all[3].builder.add_loss(died, 1, test_support::loss(1, 2, 1, trace::kFlagCompletionLost));
  all[3].builder.add_loss(died, 2, test_support::loss(0, 1, 4, trace::kFlagNotOperation));
  all[3].builder.count_filtered(died, 1, 9);

  all[4].name = "two_processes";
  for (const std::uint64_t pid : {std::uint64_t{41}, std::uint64_t{42}}) {
    const std::size_t process = all[4].builder.add_process(process_info(pid, trace::SegmentState::attached));
    add_launches(all[4].builder, process, 8);
    all[4].builder.next_chunk(process, 1);
    add_every_kind(all[4].builder, process);
  }
  return all;
}

void make_segments(const std::vector<Example>& all) {
  for (const Example& example : all) {
    const std::vector<std::byte> bytes = example.builder.segment_bytes(0);
    write_input(std::string("segment_") + example.name, fuzz::to_pieces(bytes));
    write_input(std::string("segment_cut_") + example.name, fuzz::to_pieces(std::span(bytes).first(trace::chunk_offset(0) + 1'000)));
  }
}

std::vector<std::byte> file_of(const RecordingBuilder& builder, const test_support::TemporaryFolder& folder) {
  if (!builder.write_file(folder / "a.xpu")) std::abort();
  return test_support::read_bytes(folder / "a.xpu");
}

void make_compact_files(const std::vector<Example>& all) {
  const test_support::TemporaryFolder folder;
  for (const Example& example : all) {
    const std::vector<std::byte> bytes = file_of(example.builder, folder);
    write_input(std::string("compact_") + example.name, bytes);
    write_input(std::string("compact_cut_") + example.name, std::span(bytes).first(bytes.size() * 2 / 3));
    if (!example.builder.write_folder(folder / "a.xpu.live", 1)) std::abort();
    write_input(std::string("compact_growing_") + example.name, test_support::read_bytes(folder / "a.xpu.live/compacted.part"));
  }
}

void make_manifests() {
  trace::Manifest manifest;
  write_input("manifest_empty", trace::manifest_to_json(manifest));
  manifest = RecordingBuilder().manifest;
  manifest.argv = {"program", "--option", std::string("\0\n\x80\xff\"\\", 6)};
  manifest.working_directory = "/somewhere";
  manifest.boot_id = "01234567-89ab-cdef-0123-456789abcdef";
  manifest.environment = {{"XPU_RECORD", "/somewhere/a.xpu.live"}, {"POCL_DEVICES", "pthread"}};
  manifest.kernels = "^vector_.*";
  manifest.mode = trace::RecordMode::api;
  manifest.end = {true, -1, 9, 12'345, 678};
  write_input("manifest_full", trace::manifest_to_json(manifest));
  write_input("manifest_types",
              std::string(R"({"schema":"xpu.manifest/1","argv":[1,null,{"a":[]}],"program":7,"start":[],"end":{"signal":"no"}})"));
  write_input("manifest_cut", std::string(R"({"schema":"xpu.manifest/1","argv":["a)"));
}

void make_recordings(const std::vector<Example>& all) {
  const test_support::TemporaryFolder folder;
  for (const Example& example : all) {
    std::vector<std::byte> file;
    fuzz::add_file(file, 0, file_of(example.builder, folder));
    write_input(std::string("recording_file_") + example.name, file);

    for (const std::size_t compacted : {0u, 1u}) {
      const std::string path = folder / (std::string(example.name) + std::to_string(compacted) + ".xpu.live");
      if (!example.builder.write_folder(path, compacted)) std::abort();
      std::vector<std::byte> live;
      for (std::size_t which = 1; which < fuzz::kInputFiles.size(); ++which) {
        const std::string name = path + "/" + std::filesystem::path(fuzz::kInputFiles[which]).filename().string();
        if (!std::filesystem::exists(name)) continue;
        const std::vector<std::byte> bytes = test_support::read_bytes(name);
        fuzz::add_file(live, which, which >= fuzz::kFirstSegment ? fuzz::to_pieces(bytes) : bytes);
      }
      write_input(std::string("recording_live_") + example.name + std::to_string(compacted), live);
    }
  }
}

void make_clocks() {
  using Head = fuzz::ClockInputHead;
  using Reading = fuzz::ClockInputReading;
  const auto write = [](const char* name, const Head& head, const std::vector<Reading>& readings) {
    std::vector<std::byte> bytes(sizeof head + readings.size() * sizeof(Reading));
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, readings.data(), readings.size() * sizeof(Reading));
    write_input(name, bytes);
  };
  constexpr std::int64_t kPeriod = 100'000'000;
  const std::vector<Reading> steady(20, {kPeriod, kPeriod + 3'000, 400, 0});
  std::vector<Reading> stepping = steady, outlier = steady, wide = steady, back = steady, many_steps;
  stepping[10].ticks += 5'000'000'000;
  outlier[10].ticks += 5'000'000'000;
  outlier[11].ticks -= 5'000'000'000;
  wide[0].bracket = wide[19].bracket = 4'000'000;
  wide[7].bracket = -1;
  back[10].ticks = -3'000'000'000;
  for (int i = 0; i < 200; ++i) many_steps.push_back({kPeriod, i % 2 == 0 ? kPeriod : 50 * kPeriod, 100, 0});
  const Head nanoseconds{.first_host_ns = 1'000'000'000'000, .first_ticks = 77};
  write("clock_steady", nanoseconds, steady);
  write("clock_step", nanoseconds, stepping);
  write("clock_outlier", nanoseconds, outlier);
  write("clock_wide", nanoseconds, wide);
  write("clock_back", nanoseconds, back);
  write("clock_many_steps", nanoseconds, many_steps);
  write("clock_one", nanoseconds, {steady[0]});
  write("clock_overlapping", nanoseconds, std::vector<Reading>(30, {200, 190, 30'000, 1'000'000}));
  write("clock_still", nanoseconds, std::vector<Reading>(5, {1'000, 0, 10, 0}));
  write("clock_wraps", {1'000, 12, 32, 0, 1'000'000'000'000, 0xffff0000},
        std::vector<Reading>(40, {kPeriod, kPeriod * 12 / 1'000, 500, 0}));
  write("clock_bad_unit", {0, 0, 99, 0, 0, 0}, steady);
  write("clock_huge", {1, 1, 64, 0, std::uint64_t{1} << 61, 0}, {{0, INT64_MAX, 1, 0}, {std::int64_t{1} << 60, INT64_MAX, 1, 0}});
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::fprintf(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  g_folder = arguments[1];
  std::filesystem::create_directories(g_folder);
  const std::vector<Example> all = examples();
  make_segments(all);
  make_compact_files(all);
  make_manifests();
  make_recordings(all);
  make_clocks();
  return 0;
}
