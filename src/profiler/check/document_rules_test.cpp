#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/test_support/written_trace.hpp"

/// The rules about correlations, metadata and the document, each broken and kept.
namespace xpu::profiler {
namespace {

using test_support::check_text;
using test_support::findings_in;
using test_support::first_place;
using test_support::WrittenTrace;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CorrelationRulesTest, CountsBothSides) {
  WrittenTrace trace = WrittenTrace().add_launch(1, 0.5).add_launch(2, 30).add_call(3, 60);
  trace.add_slice("cuda_driver", "sync", 100, 101, 70, 1).add_slice("gpu_memcpy", "copy", 0, 1, 80, 1, WrittenTrace::correlation_args(3));
  const auto check = check_text(trace.text());
  ASSERT_TRUE(check);
  EXPECT_THAT(check->findings, IsEmpty());
  EXPECT_EQ(check->kernels, 2u);
  EXPECT_EQ(check->device_slices, 3u);
  EXPECT_EQ(check->device_slices_with_correlation, 3u);
  EXPECT_EQ(check->device_slices_with_call, 3u);
  EXPECT_EQ(check->calls, 4u);
  EXPECT_EQ(check->calls_with_correlation, 3u);
  EXPECT_EQ(check->calls_with_device_slice, 3u);
}

TEST(CorrelationRulesTest, OneCallMaySubmitManyDeviceSlices) {
  WrittenTrace trace = WrittenTrace().add_call(1, 0).add_kernel(1, 10, 5.5).add_kernel(1, 16, 5).add_kernel(1, 22, 5);
  EXPECT_THAT(findings_in(trace), IsEmpty());
  EXPECT_EQ(check_text(trace.text())->calls_with_device_slice, 1u);
}

TEST(CorrelationRulesTest, StaleCorrelation) {
  const WrittenTrace trace = WrittenTrace().add_launch(1, 0.5).add_kernel(9, 40).add_kernel(0, 60);
  EXPECT_THAT(findings_in(trace), ElementsAre("stale-correlation: 2"));
  EXPECT_EQ(first_place(trace, "stale-correlation").detail, "no call has its correlation 9");
}

TEST(CorrelationRulesTest, NoCalls) {
  EXPECT_THAT(findings_in(WrittenTrace().add_kernel(1, 10.5).add_kernel(2, 20)), ElementsAre("no-calls: 1"));
}

TEST(CorrelationRulesTest, RepeatedCorrelation) {
  EXPECT_THAT(findings_in(WrittenTrace().add_call(1, 0).add_call(1, 5).add_call(2, 10)), ElementsAre("repeated-correlation: 1"));
  EXPECT_THAT(
      findings_in(WrittenTrace().add_call(1, 0).add_slice("xpu_driver", "append", 100, 101, 1, 0.5, WrittenTrace::correlation_args(1))),
      IsEmpty())
      << "a call of the driver inside one of the runtime";
}

TEST(CorrelationRulesTest, DeviceWithoutCorrelation) {
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("gpu_memset", "fill", 0, 1, 10, 1)), ElementsAre("device-without-correlation: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("gpu_memset", "fill", 0, 1, 10, 1, R"(,"args":{"correlation":null})")),
              ElementsAre("device-without-correlation: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "add", 1, 1, 10, 1)), IsEmpty());
}

TEST(CorrelationRulesTest, DeviceBeforeCall) {
  const auto trace = [](const char* more) { return WrittenTrace().add_call(1, 10.25).add_slice("kernel", "gemm", 0, 1, 9.75, 5, more); };
  EXPECT_THAT(findings_in(trace(R"(,"args":{"correlation":1})")), ElementsAre("device-before-call: 1"));
  EXPECT_THAT(first_place(trace(R"(,"args":{"correlation":1})"), "device-before-call").detail,
              HasSubstr("starts 0.500 µs before event 0 \"launch\" of its correlation 1"));
  EXPECT_THAT(findings_in(trace(R"(,"args":{"correlation":1,"clock error ns":499})")), ElementsAre("device-before-call: 1"));
  EXPECT_THAT(findings_in(trace(R"(,"args":{"correlation":1,"clock error ns":500})")), IsEmpty());
  EXPECT_THAT(findings_in(WrittenTrace().add_launch(1, 0.5)), IsEmpty());
}

TEST(MetadataRulesTest, DuplicateMetadata) {
  WrittenTrace trace = WrittenTrace().add_launch(1, 0.5).add_metadata("process_name", 0, 0, R"("name":"device")");
  trace.add_metadata("thread_name", 0, 1, R"("name":"queue")").add_metadata("thread_name", 0, 2, R"("name":"queue")");
  EXPECT_THAT(findings_in(trace), IsEmpty());
  trace.add_metadata("process_name", 0, 7, R"("name":"device")");
  EXPECT_THAT(findings_in(trace), ElementsAre("duplicate-metadata: 1")) << "a process is described whatever the tid";
  EXPECT_EQ(first_place(trace, "duplicate-metadata").detail, "pid 0 is \"device\" since event 4");
}

TEST(MetadataRulesTest, ConflictingMetadata) {
  WrittenTrace trace = WrittenTrace().add_launch(1, 0.5).add_metadata("thread_name", 0, 1, R"("name":"one")");
  EXPECT_THAT(findings_in(trace), IsEmpty());
  trace.add_metadata("thread_name", 0, 1, R"("name":"other")");
  EXPECT_THAT(findings_in(trace), ElementsAre("conflicting-metadata: 1"));
}

TEST(MetadataRulesTest, PhantomDevices) {
  WrittenTrace trace = WrittenTrace().add_launch(1, 0.5).add_metadata("process_labels", 0, 0, R"("labels":"XPU 0")");
  trace.add_metadata("process_labels", 100, 0, R"("labels":"CPU")").add_metadata("process_sort_index", 7, 0, R"("sort_index":7)");
  EXPECT_THAT(findings_in(trace), IsEmpty());
  trace.add_metadata("process_labels", 1, 0, R"("labels":"GPU 1")").add_metadata("process_sort_index", 1, 0, R"("sort_index":5000001)");
  trace.add_metadata("process_sort_index", 2, 0, R"("sort_index":5000002)");
  EXPECT_THAT(findings_in(trace), ElementsAre("phantom-devices: 2"));
  EXPECT_EQ(first_place(trace, "phantom-devices").name, "GPU 1");
}

TEST(DocumentRulesTest, OutsideRecordWindow) {
  const auto trace = [](double ts, double dur) {
    return WrittenTrace()
        .add_slice("cpu_op", "a", 1, 1, ts, dur)
        .add(R"({"ph":"X","cat":"Trace","name":"profiler","pid":"Spans","tid":"profiler","ts":10.5,"dur":89.5})")
        .add(R"({"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":100})");
  };
  EXPECT_THAT(findings_in(trace(10.5, 89.5)), IsEmpty());
  EXPECT_THAT(findings_in(trace(10.4, 5)), ElementsAre("outside-record-window: 1"));
  EXPECT_THAT(findings_in(trace(95, 5.001)), ElementsAre("outside-record-window: 1"));
  EXPECT_THAT(first_place(trace(95, 6), "outside-record-window").detail, HasSubstr("the window is 10.500 µs to 100.000 µs"));
}

TEST(DocumentRulesTest, ImplausibleBaseTime) {
  const auto trace = [](const char* base) {
    return WrittenTrace().add_launch(1, 0.5).add_member(std::string(R"("baseTimeNanoseconds": )") + base);
  };
  EXPECT_THAT(findings_in(trace("1700000000000000000")), IsEmpty());
  EXPECT_THAT(findings_in(trace("1796083200000000000")), IsEmpty()) << "now";
  EXPECT_THAT(findings_in(trace("86400000000000")), ElementsAre("implausible-base-time: 1")) << "time since the machine's start";
  EXPECT_THAT(findings_in(trace("1900000000000000000")), ElementsAre("implausible-base-time: 1")) << "the future";
  EXPECT_THAT(findings_in(trace("\"1700000000000000000\"")), ElementsAre("wrong-type: 1"));
}

/// One launch with the figures that libxpu writes behind it.
WrittenTrace with_figures(const char* written, const char* dropped) {
  return WrittenTrace()
      .add_launch(1, 0.5)
      .add_member(std::string(R"("writtenEvents": )") + written)
      .add_member(std::string(R"("droppedRecords": )") + dropped);
}

TEST(DocumentRulesTest, ConservationMismatch) {
  const char* const kNone = R"({"lost": 0, "pending": 0, "without times": 0, "without place in time": 0})";
  EXPECT_THAT(findings_in(with_figures(R"({"commands": 1, "slices of commands": 1, "slices": 2, "kernels": 1, "flows": 1})", kNone)),
              IsEmpty());
  EXPECT_THAT(findings_in(with_figures(R"({"slices": 3, "kernels": 2, "flows": 0})", kNone)), ElementsAre("conservation-mismatch: 3"));
  EXPECT_THAT(findings_in(with_figures(R"({"commands": 2, "slices of commands": 1})", kNone)), ElementsAre("conservation-mismatch: 1"));
  EXPECT_THAT(findings_in(with_figures(R"({"commands": 0, "slices of commands": 0})", kNone)), ElementsAre("conservation-mismatch: 1"))
      << "the file has a device slice";
  EXPECT_THAT(findings_in(with_figures(R"({"slices": -1})", kNone)), ElementsAre("wrong-type: 1"));
}

TEST(DocumentRulesTest, StatedLosses) {
  const WrittenTrace trace = with_figures(R"({"commands": 11, "slices of commands": 1})",
                                          R"({"lost": 4, "pending": 3, "without times": 2, "without place in time": 1, "other": 0})");
  EXPECT_THAT(findings_in(trace), ElementsAre("stated-losses: 10"));
  EXPECT_TRUE(check_text(trace.text())->ok()) << "what is counted is no error";
}

}  // namespace
}  // namespace xpu::profiler
