#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "profiler/link/annotation_pairing.hpp"
#include "profiler/link/annotation_table.hpp"
#include "profiler/link/completion_index.hpp"
#include "profiler/link/cpu_operations.hpp"
#include "profiler/link/definition_table.hpp"
#include "profiler/link/external_ids.hpp"
#include "profiler/link/graph_nodes.hpp"
#include "profiler/link/lost_completions.hpp"
#include "profiler/link/paged_index.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/profiler/sink.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {

/// How records become activities: one call for each record, in two passes. Which records, and whether they are all or come little by
/// little, is the business of `Linker` and `StreamLinker`. One owner at a time.
class Linking {
 public:
  /// `source` must outlive it. `most_readings`: of `DefinitionTable`.
  explicit Linking(const RecordSource& source, std::size_t most_readings = SIZE_MAX);

  // ---- the first pass: what describes, and what has ended

  void read(std::size_t process, const trace::RecordHeader& header, CompletionAge age = 0);
  void read_host_hint(std::size_t process, const trace::RecordHeader& header);

  // ---- the second pass: what happened

  /// Any record but one of a submission in a source that goes on: whether that is complete is for its owner to see.
  void hand_over(std::size_t process, const trace::RecordHeader& header, Sink& sink);
  void hand_over(std::size_t process, const trace::OperationSubmittedRecord& record, Sink& sink);
  /// The newest call begun on a thread that has not returned: after everything else.
  void hand_over_hung_calls(Sink& sink);
  static bool is_refused(const trace::OperationSubmittedRecord& record) {
    return (record.header.flags & trace::kFlagFailed) != 0 && record.queue_sequence == 0;
  }
  /// What follows from other figures: at the end.
  void finish_summary();
  SessionInfo info() const;
  std::size_t processes() const noexcept { return threads_.size(); }

  const RecordSource& source;
  DefinitionTable definitions;
  CompletionIndex completions;
  ExternalIds external_ids;
  GraphNodes graph_nodes;
  LostCompletions lost;
  AnnotationPairing annotations;  ///< Where there are no `ranges`.
  LinkSummary summary;
  std::uint64_t external_ids_used = 0;
  /// Where all records are there: in which range a call was made, and by which operation of a framework. Else null.
  AnnotationTable* ranges = nullptr;
  CpuOperations* operations = nullptr;

 private:
  void hand_over(std::size_t process, const trace::ApiCallRecord& record, Sink& sink);
  void hand_over(std::size_t process, const trace::SynchronizationRecord& record, Sink& sink);
  void hand_over(std::size_t process, const trace::MemoryRecord& record, Sink& sink);
  void hand_over(std::size_t process, const trace::LossRecord& record, Sink& sink);
  void hand_over(std::size_t process, const trace::OverheadRecord& record, Sink& sink);
  void hand_over(std::size_t process, const trace::CommunicationRecord& record, Sink& sink);
  void see_begin(std::size_t process, const trace::CallBeginRecord& record);
  void see_stop(std::size_t process, const trace::SessionRecord& record);
  void check_times(DeviceActivity& activity, std::size_t process);

  void hand_over_external_ids(const RuntimeActivity& call, Sink& sink);
  void hand_over_call(const RuntimeActivity& call, Sink& sink);
  void complete(DeviceActivity& activity, std::size_t process, const trace::OperationSubmittedRecord& record);
  void hand_over_command(std::size_t process, const trace::OperationSubmittedRecord& record, const RuntimeActivity& call, Sink& sink);

  /// What tells a call that never returned: a thread is in one call at a time.
  struct ThreadState {
    std::uint64_t last_begin_ns = 0, last_return_ns = 0;  // entries of the newest call begun, and of the newest that returned
    std::uint32_t last_begin_api = 0;
  };

  void saw_return(std::size_t process, std::uint32_t writer, std::uint64_t enter_ns) {
    std::uint64_t& last = threads_[process][writer].last_return_ns;
    last = std::max(last, enter_ns);
  }

  std::vector<PagedIndex<ThreadState, 16>> threads_;
  std::vector<std::uint64_t> stops_ns_;  // of the profile, by process; 0: it has no end that is on record
  std::uint32_t next_correlation_ = 1;
};

}  // namespace xpu::profiler
