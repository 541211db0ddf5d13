// What one launch costs the recorded program inside the trace: run under callgrind by launch_cost_test.sh, with two numbers of launches
// whose difference leaves everything out that happens once.

#include <cstdio>
#include <cstdlib>

#include "trace/test_support/recorded_process.hpp"

using namespace xpu;
using trace::test_support::LiveFolder;
using trace::test_support::RecordedProcess;

int main(int argument_count, char** arguments) {
  const std::uint32_t launches = argument_count > 1 ? static_cast<std::uint32_t>(std::strtoul(arguments[1], nullptr, 10)) : 10'000;
  const LiveFolder folder(256);
  const RecordedProcess process(folder);
  const probe::Geometry geometry = {.dimensions = 2, .global = {1'024, 64, 1}, .local = {16, 4, 1}};
  probe::Operation operation;
  operation.queue = 1;
  operation.api = 2;
  operation.kernel = 3;
  operation.command = probe::Command::ndrange_kernel;
  operation.geometry = &geometry;
  std::uint64_t recorded = 0;
  for (std::uint32_t sequence = 1; sequence <= launches; ++sequence) {
    operation.enter_ns = std::uint64_t{sequence} * 1'000;
    const probe::Submission submission{operation.enter_ns + 300, 0, sequence};
    const probe::Completion completion{1, probe::CompletionStatus::ok, false, 0, {sequence, sequence + 1, sequence + 2, sequence + 3}};
    const probe::OperationId id = process.table->begin(operation);
    if (!process.table->submitted(id, operation, submission)) continue;
    process.table->complete(id, completion);
    ++recorded;
  }
  const std::uint64_t on_record = folder.segment().records(trace::RecordKind::operation_completed).size();
  if (recorded != launches || on_record != launches) {
    std::fprintf(stderr, "%u launches, %lu recorded, %lu in the segment\n", launches, recorded, on_record);
    return 1;
  }
  return 0;
}
