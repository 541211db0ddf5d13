#include "profiler/link/annotation_table.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/linker.hpp"

namespace xpu::profiler {
namespace {

using probe::AnnotationType;
using test_support::CollectingSink;
using test_support::ScriptedSource;

/// "inner < outer" for each kernel, by its duration.
std::map<std::uint64_t, std::string> ranges_of_kernels(const ScriptedSource& source) {
  Linker linker(source);
  CollectingSink sink;
  EXPECT_TRUE(linker.run(sink));
  std::map<std::uint64_t, std::string> ranges;
  for (const KernelActivity& kernel : sink.kernels) {
    std::string& text = ranges[kernel.duration_ns];
    for (const RangeDefinition* range = kernel.range; range != nullptr; range = range->parent)
      text += (text.empty() ? "" : " < ") + range->name->text;
  }
  return ranges;
}

/// Kernels submitted at these times by `writer`, with durations of the same number.
void add_launches(ScriptedSource& source, std::initializer_list<std::uint64_t> times_ns, std::uint32_t writer = 1) {
  for (const std::uint64_t ns : times_ns)
    source.add_command({.start = 10'000, .end = 10'000 + ns, .enter_ns = ns, .exit_ns = ns + 1, .writer = writer});
}

TEST(AnnotationTableTest, ACommandIsInTheInnermostRangeOfItsThread) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    ScriptedSource source;
    source.add_simple_process();
    source.add_thread(2, 102);
    source.add_thread(3, 103);
    source.add_annotation(AnnotationType::begin, 100, "step");
    source.add_annotation(AnnotationType::begin, 200, "load");
    source.add_annotation(AnnotationType::end, 300, "");
    source.add_annotation(AnnotationType::mark, 310, "here");
    source.add_annotation(AnnotationType::begin, 400, "compute");
    source.add_annotation(AnnotationType::begin, 410, "matmul");
    source.add_annotation(AnnotationType::end, 450, "");
    source.add_annotation(AnnotationType::end, 500, "");
    source.add_annotation(AnnotationType::end, 600, "");
    source.add_annotation(AnnotationType::begin, 700, "never closed");
    source.add_annotation(AnnotationType::begin, 100, "other thread", 0, 2);
    add_launches(source, {50, 150, 250, 350, 405, 420, 460, 550, 650, 900});
    add_launches(source, {440}, 2);
    add_launches(source, {441}, 3);
    if (seed != 0) source.shuffle(seed);
    EXPECT_EQ(ranges_of_kernels(source), (std::map<std::uint64_t, std::string>{{50, ""},
                                                                               {150, "step"},
                                                                               {250, "load < step"},
                                                                               {350, "step"},
                                                                               {405, "compute < step"},
                                                                               {420, "matmul < compute < step"},
                                                                               {460, "compute < step"},
                                                                               {550, "step"},
                                                                               {650, ""},
                                                                               {900, "never closed"},
                                                                               {440, "other thread"},
                                                                               {441, ""}}))
        << seed;
  }
}

TEST(AnnotationTableTest, AnEndWithoutABeginningIsNoRangeForCommands) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_annotation(AnnotationType::end, 100, "");
  add_launches(source, {50, 100, 150});
  EXPECT_EQ(ranges_of_kernels(source), (std::map<std::uint64_t, std::string>{{50, ""}, {100, ""}, {150, ""}}));
}

TEST(AnnotationTableTest, OfRangesThatBeginTogetherTheOuterOneIsToldFirst) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_annotation(AnnotationType::begin, 100, "outer");
  source.add_annotation(AnnotationType::begin, 100, "inner");
  source.add_annotation(AnnotationType::end, 200, "");
  source.add_annotation(AnnotationType::end, 200, "");
  Linker linker(source);
  CollectingSink sink;
  ASSERT_TRUE(linker.run(sink));
  ASSERT_EQ(sink.annotations.size(), 2u);
  EXPECT_EQ(sink.annotations[0].text->text, "outer");
  EXPECT_EQ(sink.annotations[1].text->text, "inner");
}

}  // namespace
}  // namespace xpu::profiler
