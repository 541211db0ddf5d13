#include "trace/recording/manifest.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace xpu::trace {
namespace {

std::string every_byte() {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text.push_back(static_cast<char>(byte));
  return text;
}

Manifest example() {
  Manifest manifest;
  manifest.program = "./solver";
  manifest.argv = {"./solver", "", "a \"quoted\" \\ argument", "\xff\xfe latin", "smile \xe2\x98\xba", every_byte()};
  manifest.working_directory = "/home/\xc3\xa4";
  manifest.host = "node7";
  manifest.boot_id = "0123-4567";
  manifest.xpu_version = "0.1.0";
  manifest.system = "Linux 6.1.0 x86_64";
  manifest.environment = {{"OPENCL_LAYERS", "/lib/layer.so"}, {"XPU_X", ""}, {"XPU_X", "again"}};
  manifest.mode = RecordMode::device_only;
  manifest.kernels = "^gemm_.*$";
  manifest.start_monotonic_ns = 1;
  manifest.start_raw_ns = UINT64_MAX;
  manifest.start_realtime_ns = 1'700'000'000'123'456'789;
  manifest.end = {true, -1, 9, 123'456'789'012, 42};
  return manifest;
}

void expect_equal(const Manifest& a, const Manifest& b) {
  EXPECT_EQ(a.program, b.program);
  EXPECT_EQ(a.argv, b.argv);
  EXPECT_EQ(a.working_directory, b.working_directory);
  EXPECT_EQ(a.host, b.host);
  EXPECT_EQ(a.boot_id, b.boot_id);
  EXPECT_EQ(a.xpu_version, b.xpu_version);
  EXPECT_EQ(a.system, b.system);
  EXPECT_EQ(a.environment, b.environment);
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.kernels, b.kernels);
  EXPECT_EQ(a.start_monotonic_ns, b.start_monotonic_ns);
  EXPECT_EQ(a.start_raw_ns, b.start_raw_ns);
  EXPECT_EQ(a.start_realtime_ns, b.start_realtime_ns);
  EXPECT_EQ(a.end.known, b.end.known);
  EXPECT_EQ(a.end.exit_code, b.end.exit_code);
  EXPECT_EQ(a.end.signal, b.end.signal);
  EXPECT_EQ(a.end.wall_ns, b.end.wall_ns);
  EXPECT_EQ(a.end.recorder_cpu_ns, b.end.recorder_cpu_ns);
}

TEST(ManifestTest, ComesBackByteForByte) {
  const std::string json = manifest_to_json(example());
  for (const char character : json) EXPECT_TRUE(character == '\n' || (character >= ' ' && character <= '~'));
  const Result<Manifest> read = manifest_from_json(json);
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(*read, example());
}

TEST(ManifestTest, HasNoEndWhileTheEndIsNotKnown) {
  Manifest manifest = example();
  manifest.end = {};
  const Result<Manifest> read = manifest_from_json(manifest_to_json(manifest));
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->end.known);
  EXPECT_EQ(read->end.exit_code, -1);
}

TEST(ManifestTest, FieldsThatAreMissingOrOfAnotherTypeKeepTheirDefault) {
  const Result<Manifest> read = manifest_from_json(
      R"({"schema": "xpu.manifest/1", "argv": ["a", 7, "b"], "program": [], "mode": 99, "environment": [["A"], ["B", "1"], 3],
                             "start": {"raw_ns": "soon", "monotonic_ns": 5}, "end": {"exit_code": -7}, "future": {}})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->argv, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read->program, "");
  EXPECT_EQ(read->mode, RecordMode::standard);
  ASSERT_EQ(read->environment.size(), 1u);
  EXPECT_EQ(read->environment[0].first, "B");
  EXPECT_EQ(read->start_raw_ns, 0u);
  EXPECT_EQ(read->start_monotonic_ns, 5u);
  EXPECT_TRUE(read->end.known);
  EXPECT_EQ(read->end.exit_code, -7);
}

TEST(ManifestTest, AnythingElseIsRefusedWithASentence) {
  for (const char* text : {"", "{", "[]", "3", "{\"schema\": \"something\"}", "{\"schema\": 1}", "{}"}) {
    const Result<Manifest> read = manifest_from_json(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(read.error().message.find("manifest"), std::string::npos);
  }
  EXPECT_FALSE(manifest_from_json(std::string(kMaxManifestBytes + 1, ' ')));
}

TEST(ManifestTest, DamagedTextNeverCrashes) {
  std::mt19937_64 random(7);
  const std::string json = manifest_to_json(example());
  int read = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::string damaged = json;
    for (int change = 0; change < 3; ++change) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (manifest_from_json(damaged)) ++read;
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 2'000);
}

}  // namespace
}  // namespace xpu::trace
