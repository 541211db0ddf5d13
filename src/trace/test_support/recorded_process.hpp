#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/probe.hpp"
#include "trace/attachment.hpp"
#include "trace/test_support/live_folder.hpp"

namespace xpu::trace::test_support {

/// Attaches this process to a folder for its life, and publishes as a publisher would.
class RecordedProcess {
 public:
  explicit RecordedProcess(const LiveFolder& folder, RecordMode mode = RecordMode::standard, const std::string& kernels = "") {
    Attachment attachment;
    attachment.live_path = folder.path();
    attachment.mode = mode;
    attachment.kernels = kernels;
    attachment.max_live_bytes = std::uint64_t{512} << 20;
    const Result<> attached = attach(attachment);
    EXPECT_TRUE(attached) << attached.error().message;
    table = probe::subscriber();
  }
  ~RecordedProcess() { detach(); }
  RecordedProcess(const RecordedProcess&) = delete;
  RecordedProcess& operator=(const RecordedProcess&) = delete;

  const probe::Subscriber* table = nullptr;
};

/// A kernel launch on `queue` with `sequence`; 0 when it was not wanted or not recorded.
inline probe::OperationId submit(const probe::Subscriber& table, probe::Operation operation, std::uint32_t sequence) {
  operation.enter_ns = 1'000 + sequence;
  const probe::OperationId id = table.begin(operation);
  if (id == 0) return 0;
  return table.submitted(id, operation, {operation.enter_ns + 5, 0, sequence}) ? id : 0;
}
inline probe::OperationId launch(const probe::Subscriber& table, probe::Id queue, std::uint32_t sequence, probe::Id kernel = 1) {
  probe::Operation operation;
  operation.queue = queue;
  operation.kernel = kernel;
  operation.command = probe::Command::ndrange_kernel;
  return submit(table, operation, sequence);
}
inline void finish(const probe::Subscriber& table, probe::OperationId id, probe::Id queue) {
  table.complete(id, {queue, probe::CompletionStatus::ok, false, 0, {10, 20, 30, 40}});
}

}  // namespace xpu::trace::test_support
