#include "drivers/sim/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace xpu::drivers::sim {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ProgramTest, AnEmptyTextIsTheDefaultProgram) {
  const Program program = parse_program("", "f").value();
  EXPECT_EQ(program, Program());
  EXPECT_EQ(program.device_count, 1u);
  EXPECT_EQ(program.memory_bytes, 1u << 30);
  EXPECT_EQ(parse_program("# nothing\n\n \t\r\n#", "f").value(), Program());
}

TEST(ProgramTest, EveryDirectiveIsRead) {
  const Program program = parse_program(
                              "devices 2  # two\n"
                              "memory 64MiB\n"
                              "origin 1.5us\n"
                              "clock tick=52.083ns bits=32 start=7 drift=20ppm bracket=0.5us step=5ms@2s step=-1ns@0s\r\n"
                              "clock tick=625/12ns drift=-0.5ppm\n"
                              "kernel duration=20us\n"
                              "kernel \"gemm #1 \\\"x\\\\\" submit=1ps launch=0s duration=1.5ms\n"
                              "copy rate=10GB/s duration=2us\n"
                              "fill rate=unlimited\n"
                              "host_function duration=1s\n"
                              "event submit=3ns\n"
                              "fault record_lost kernel \"x\" nth=3\n"
                              "fault device_lost copy every=2\n"
                              "fault queue_refused\n",
                              "f")
                              .value();
  Program expected;
  expected.device_count = 2;
  expected.memory_bytes = 64u << 20;
  expected.origin_ns = 1500;
  expected.clocks = {{.tick_numerator = 52'083,
                      .tick_denominator = 1000,
                      .valid_bits = 32,
                      .start_ticks = 7,
                      .drift_ppb = 20'000,
                      .bracket = 500ns,
                      .steps = {{.at = 2s, .jump = 5ms}, {.at = 0s, .jump = -1ns}}},
                     {.tick_numerator = 625, .tick_denominator = 12, .drift_ppb = -500}};
  expected.timings = {{.duration = 20us},
                      {.kernel_pattern = "gemm #1 \"x\\", .submit = Time(1), .launch = 0s, .duration = 1500us},
                      {.operation = OperationKind::copy, .duration = 2us, .bytes_per_second = 10'000'000'000},
                      {.operation = OperationKind::fill, .bytes_per_second = 0},
                      {.operation = OperationKind::host_function, .duration = 1s},
                      {.operation = OperationKind::event, .submit = 3ns}};
  expected.faults = {{.fault = FaultKind::record_lost, .operation = OperationKind::kernel, .kernel_pattern = "x", .nth = 3},
                     {.fault = FaultKind::device_lost, .operation = OperationKind::copy, .every = 2},
                     {.fault = FaultKind::queue_refused}};
  EXPECT_EQ(program, expected);

  const std::string text = to_text(program);
  EXPECT_EQ(parse_program(text, "f").value(), program) << text;
  EXPECT_EQ(to_text(parse_program(text, "f").value()), text);
}

TEST(ProgramTest, TheTextIsOneThatAPersonWouldWrite) {
  Program program;
  program.timings = {{.kernel_pattern = "a*", .launch = 3us, .duration = 1500us}};
  program.faults = {{.fault = FaultKind::operation_fails, .nth = 2}};
  EXPECT_EQ(to_text(program),
            "devices 1\n"
            "memory 1073741824B\n"
            "clock tick=1/1ns bits=64 start=0 drift=0ppb bracket=1us\n"
            "kernel \"a*\" launch=3us duration=1500us\n"
            "fault operation_fails nth=2\n");
}

TEST(ProgramTest, TheLargestValuesAreWrittenSoThatTheyAreReadAgain) {
  Program program;
  program.memory_bytes = std::uint64_t{1} << 46;
  program.origin_ns = (std::uint64_t{1} << 62) - 1;
  program.clocks = {
      {.tick_numerator = 0xffff'ffff, .tick_denominator = 0xffff'ffff, .drift_ppb = -100'000'000, .steps = {{.at = 24h, .jump = -24h}}}};
  program.timings = {{.duration = 24h}, {.operation = OperationKind::copy, .bytes_per_second = 86'400'000'000'000'000}};
  program.faults = {{.nth = ~std::uint64_t{0}}, {.every = ~std::uint64_t{0}}};
  ASSERT_TRUE(check_program(program));
  EXPECT_EQ(parse_program(to_text(program), "f").value(), program) << to_text(program);
}

TEST(ProgramTest, TheLastLineNeedsNoEnd) { EXPECT_EQ(parse_program("devices 3", "f").value().device_count, 3u); }

TEST(ProgramTest, WhatIsWrongIsSaidWithItsPlaceTheValueAndWhatIsAllowed) {
  const std::pair<const char*, const char*> cases[] = {
      {"device 2",
       "'device' is no directive, it must be one of devices, memory, origin, clock, fault, kernel, copy, fill, host_function, event"},
      {"\"devices\" 2", "the line begins with a quoted text, it must begin with a directive"},
      {"devices", "'devices' takes one value, such as 'devices 2'"},
      {"devices 1 2", "'devices' takes one value, such as 'devices 2'"},
      {"devices two", "'two' is no number of devices, it must be a whole number of at most 4294967295"},
      {"devices 0", "0 devices are asked for, the number must be in [1, 64]"},
      {"devices 65", "65 devices are asked for, the number must be in [1, 64]"},
      {"memory 1", "'1' is no size, it must be a number of at most 19 digits and one of B, KB, MB, GB, KiB, MiB, GiB"},
      {"memory 4095B", "the memory is 4095 bytes, it must be in [4096, 70368744177664]"},
      {"memory -1GiB", "the memory is 0 bytes, it must be in [4096, 70368744177664]"},
      {"memory 0.3B", "the size 0.3B is no whole number of B"},
      {"memory", "'memory' takes one value, such as 'memory 1GiB'"},
      {"origin", "'origin' takes one value, such as 'origin 1000s'"},
      {"origin -1s", "the origin -1s is below 0"},
      {"origin 1ps", "'1ps' is no host time, it must be a number of at most 19 digits and one of ns, us, ms, s"},
      {"origin 999999999999999999s", "the host time 999999999999999999s is too large"},
      {"clock 1ns", "'1ns' is not understood here, 'clock' takes tick, bits, start, drift, bracket, step"},
      {"clock period=1ns", "'clock' has no 'period', it takes tick, bits, start, drift, bracket, step"},
      {"clock tick=1", "'1' is no tick, it must be a number of at most 19 digits and one of ps, ns, us, ms, s"},
      {"clock tick=0ns", "the tick is 0/1 ns, it must be above 0 and at most 1 s"},
      {"clock tick=-1ns", "the tick -1ns is not in (0, 1s]"},
      {"clock tick=1/0ns", "the tick is 1/0 ns, it must be above 0 and at most 1 s"},
      {"clock tick=x/1ns", "'x' is no numerator of a tick, it must be a whole number of at most 4294967295"},
      {"clock tick=1/4294967296ns", "'4294967296' is no denominator of a tick, it must be a whole number of at most 4294967295"},
      {"clock tick=0.0001ns", "the tick 0.0001ns is no whole number of ps"},
      {"clock bits=7", "the clock has 7 bits, it must have 8 to 64"},
      {"clock bits=8 start=256", "the clock starts at 256 ticks, which 8 bits do not hold"},
      {"clock start=-1", "'-1' is no number of ticks, it must be a whole number of at most 18446744073709551615"},
      {"clock drift=11%", "'11%' is no drift, it must be a number of at most 19 digits and one of ppb, ppm"},
      {"clock drift=100001ppm", "the drift is 100001000 ppb, it must be in [-100000000, 100000000] (10 %)"},
      {"clock bracket=1001ms", "the bracket is 1001000000000 ps, it must be in [0, 1000000000000] (1 s)"},
      {"clock step=5ms", "the step '5ms' has no '@', it must be like 5ms@2s (jump by 5 ms at 2 s)"},
      {"clock step=5ms@-1s", "the time of a step is -1000000000000 ps, it must be in [0, 86400000000000000] (24 hours)"},
      {"clock step=-86401s@1s", "a step is -86401000000000000 ps, it must be in [-86400000000000000, 86400000000000000] (24 hours)"},
      {"kernel", "kernel sets nothing, it must set one of submit, launch, duration, rate"},
      {"kernel gemm duration=1us", "'gemm' is not understood here, 'kernel' takes submit, launch, duration, rate"},
      {"kernel \"gemm duration=1us", "a quoted text has no end, it must end with '\"' on the same line"},
      {"kernel \"gemm\\", "a quoted text has no end, it must end with '\"' on the same line"},
      {"kernel duration=1h", "'1h' is no time, it must be a number of at most 19 digits and one of ps, ns, us, ms, s"},
      {"kernel duration=s", "'s' is no time, it must be a number of at most 19 digits and one of ps, ns, us, ms, s"},
      {"kernel duration=1.2.3s", "'1.2.3s' is no time, it must be a number of at most 19 digits and one of ps, ns, us, ms, s"},
      {"kernel duration=-1ns", "duration is -1000 ps, it must be in [0, 86400000000000000] (24 hours)"},
      {"kernel duration=86401s", "duration is 86401000000000000 ps, it must be in [0, 86400000000000000] (24 hours)"},
      {"kernel duration=10000000000000000000s", "'10000000000000000000s' is no time, it must be a number of at most 19 digits"},
      {"kernel rate=1GB/s", "kernel has a rate, only copy and fill may have one"},
      {"copy rate=0B/s", "the rate 0B/s is not above 0, it must be so or 'unlimited'"},
      {"copy rate=1GB", "'1GB' is no rate, it must be a number of at most 19 digits and one of B/s, KB/s"},
      {"copy \"x\" duration=1us", "the pattern \"x\" is of something that has no name, only kernels have"},
      {"event duration=1us", "event has a launch or duration, it may have submit only"},
      {"fault", "'' is no fault, it must be one of record_lost, record_late"},
      {"fault record_los", "'record_los' is no fault, it must be one of record_lost, record_late, record_duplicate, record_negative"},
      {"fault record_lost gemm", "'gemm' is no kind of operation, it must be one of kernel, copy, fill, host_function, event"},
      {"fault record_lost event", "record_lost is of events, it may be of kernel, copy, fill, host_function"},
      {"fault record_lost \"x\"", "the pattern \"x\" is of something that has no name, only kernels have"},
      {"fault record_lost last=1", "'fault' has no 'last', it takes nth, every"},
      {"fault record_lost nth=0 every=0", "record_lost has nth and every of 0, one must be at least 1"},
      {"fault record_lost nth=2 every=2", "record_lost has nth=2 and every=2, only one may be given"},
      {"fault out_of_memory kernel", "out_of_memory names the operation kernel, it has nothing to do with one"},
  };
  for (const auto& [line, message] : cases) {
    const Result<Program> program = parse_program(std::string("# first\n") + line + "\ndevices 1\n", "sim.txt");
    ASSERT_FALSE(program) << line;
    EXPECT_EQ(program.error().code, ErrorCode::invalid_argument) << line;
    EXPECT_THAT(program.error().message, StartsWith(std::string("sim.txt:2: ") + message)) << line;
  }
}

TEST(ProgramTest, AProgramInCppIsHeldToTheSameRules) {
  const auto refused = [](Program program, const char* message) {
    const Result<> result = check_program(program);
    ASSERT_FALSE(result) << message;
    EXPECT_THAT(result.error().message, HasSubstr(message));
  };
  EXPECT_TRUE(check_program(Program()));
  refused({.clocks = {}}, "the program has 0 clocks, it must have 1 to 64");
  refused({.origin_ns = ~std::uint64_t{0}}, "the origin is 18446744073709551615 ns, it must be below 2^62");
  refused({.timings = {{.kernel_pattern = "a\nb", .duration = 1us}}}, "a pattern has a control character");
  refused({.timings = {{.kernel_pattern = std::string(1025, 'a'), .duration = 1us}}}, "a pattern has 1025 bytes, at most 1024 are allowed");
  refused({.timings = {{.duration = 25h}}}, "duration is 90000000000000000 ps");
  refused({.timings = {{.operation = OperationKind::copy, .bytes_per_second = ~std::uint64_t{0}}}}, "the rate is 18446744073709551615 B/s");
  refused({.clocks = {{.steps = std::vector<ClockStep>(1001)}}}, "the clock has 1001 steps, at most 1000 are allowed");
  refused({.timings = std::vector<TimingRule>(10'001, TimingRule{.duration = 1us})},
          "the program has 10001 rules, at most 10000 are allowed");
}

TEST(ProgramTest, TooManyRulesAreNamedWithTheFile) {
  std::string text;
  for (int line = 0; line < 10'001; ++line) text += "fault record_lost\n";
  const Result<Program> program = parse_program(text, "sim.txt");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().message, "sim.txt: the program has 10001 rules, at most 10000 are allowed");
}

TEST(ProgramTest, MessagesShowForeignBytesSafely) {
  const Result<Program> program = parse_program("\x1b[31mred\n", "f");
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, StartsWith("f:1: '?[31mred' is no directive"));
}

}  // namespace
}  // namespace xpu::drivers::sim
