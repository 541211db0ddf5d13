#include "profiler/link/cpu_operations.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "profiler/time_difference.hpp"

namespace xpu::profiler {
namespace {

/// Above the ids of Linux, and of what else has made up ones.
constexpr std::uint64_t kFirstGroupPid = std::uint64_t{3} << 22;

CpuOperationActivity activity_of(const CpuOperation& operation, const ThreadDefinition& thread, std::int64_t window_end_ns,
                                 DefinitionTable& definitions) {
  CpuOperationActivity activity;
  activity.process = thread.process;
  activity.thread = &thread;
  activity.name = &definitions.name(operation.name);
  activity.kind = operation.kind;
  activity.start_ns = operation.start_ns;
  activity.external_id = operation.external_id;
  activity.flow = operation.flow;
  activity.arguments = operation.arguments;
  if (operation.kind == ActivityKind::cpu_instant_event) return activity;
  activity.is_finished = operation.end_ns.has_value() && *operation.end_ns >= operation.start_ns;
  const std::int64_t end_ns = activity.is_finished ? *operation.end_ns : std::max(window_end_ns, operation.start_ns);
  activity.duration_ns = static_cast<std::uint64_t>(difference_ns(end_ns, operation.start_ns));
  return activity;
}

}  // namespace

ThreadDefinition& CpuOperations::row_of(const CpuTrace& trace, std::uint32_t number, DefinitionTable& definitions) {
  const auto [group, is_new] = groups_.try_emplace(trace.rows);
  if (is_new) {
    ProcessDefinition& process = group->second.process;
    process.index = static_cast<std::uint32_t>(definitions.definitions().processes.size() + groups_.size() - 1);
    process.pid = kFirstGroupPid + groups_.size();
    process.name = trace.rows;
  }
  ThreadDefinition*& row = group->second.rows[number];
  if (row == nullptr) row = &definitions.add_thread(group->second.process, number);
  return *row;
}

void CpuOperations::add(std::span<const CpuTrace> traces, ActivityKinds kinds, std::int64_t window_end_ns, DefinitionTable& definitions) {
  kinds_ = kinds;
  for (const CpuTrace& trace : traces) {
    const bool is_of_program = trace.rows.empty();
    for (const CpuThread& thread : trace.threads) {
      if (is_of_program) {
        definitions.name_thread(0, thread.thread, thread.name);
      } else {
        row_of(trace, thread.thread, definitions).name = thread.name;
      }
    }
    for (const CpuOperation& operation : trace.operations) {
      const ThreadDefinition& thread =
          is_of_program ? definitions.thread_of_system(0, operation.thread) : row_of(trace, operation.thread, definitions);
      activities_.push_back(activity_of(operation, thread, window_end_ns, definitions));
    }
  }
  std::stable_sort(activities_.begin(), activities_.end(), [](const CpuOperationActivity& a, const CpuOperationActivity& b) {
    return std::tie(a.thread->index, a.start_ns, b.duration_ns) < std::tie(b.thread->index, b.start_ns, a.duration_ns);
  });
  for (const CpuOperationActivity& activity : activities_) {
    const bool is_of_program = activity.process == &definitions.process(0);
    if (!activity.external_id || !is_of_program) continue;
    const auto [known, is_new] = by_id_.try_emplace(*activity.external_id, &activity);
    if (!is_new && activity.start_ns < known->second->start_ns) known->second = &activity;
  }
  find_annotations();
  check_arrows();
}

void CpuOperations::find_annotations() {
  const auto end_of = [](const CpuOperationActivity& activity) { return end_ns(activity.start_ns, activity.duration_ns); };
  std::vector<const CpuOperationActivity*> open;
  for (CpuOperationActivity& activity : activities_) {
    if (!open.empty() && open.back()->thread != activity.thread) open.clear();
    while (!open.empty() && end_of(*open.back()) <= activity.start_ns) open.pop_back();
    // Annotations may be ended in any order: one that ends first is not around what goes on.
    const auto around = std::find_if(open.rbegin(), open.rend(), [&](const auto* outer) { return end_of(*outer) >= end_of(activity); });
    if (around != open.rend()) activity.annotation = *around;
    if (activity.kind == ActivityKind::user_annotation) open.push_back(&activity);
  }
}

/// Takes the flow from every operation that is no end of a whole arrow.
void CpuOperations::check_arrows() {
  std::map<std::pair<CpuFlowKind, std::uint64_t>, Arrow> arrows;
  const auto drop = [&](CpuOperationActivity& activity) {
    activity.flow.reset();
    ++dangling_flow_ends_;
  };
  for (CpuOperationActivity& activity : activities_) {
    if (!activity.flow) continue;
    if (!kinds_.contains(activity.kind)) {
      activity.flow.reset();  // it is not shown, and its other end is counted
      continue;
    }
    if (activity.kind == ActivityKind::cpu_instant_event) {  // an arrow leads from slice to slice
      drop(activity);
      continue;
    }
    Arrow& arrow = arrows[{activity.flow->kind, activity.flow->id}];
    if (!activity.flow->is_start) {
      arrow.ends.push_back(&activity);
    } else if (arrow.start == nullptr) {
      arrow.start = &activity;
    } else {
      // The earlier one is the start, whichever thread's it is.
      if (activity.start_ns < arrow.start->start_ns) {
        drop(*std::exchange(arrow.start, &activity));
      } else {
        drop(activity);
      }
    }
  }
  for (auto& [id, arrow] : arrows) {
    std::size_t whole = 0;
    for (CpuOperationActivity* end : arrow.ends) {
      if (arrow.start != nullptr && end->start_ns >= arrow.start->start_ns) {
        ++whole;
      } else {
        drop(*end);
      }
    }
    if (arrow.start != nullptr && whole == 0) drop(*arrow.start);
  }
}

std::int64_t CpuOperations::earliest_ns() const noexcept {
  std::int64_t earliest_ns = INT64_MAX;
  for (const CpuOperationActivity& activity : activities_) {
    if (kinds_.contains(activity.kind)) earliest_ns = std::min(earliest_ns, activity.start_ns);
  }
  return earliest_ns;
}

const CpuOperationActivity* CpuOperations::find(const ExternalId& id) const noexcept {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

void CpuOperations::link(DeviceActivity& activity) const noexcept {
  for (const ExternalId& id : activity.external_ids) {
    const CpuOperationActivity* found = find(id);
    if (found == nullptr) continue;
    if (found->kind == ActivityKind::user_annotation) {
      if (activity.annotation == nullptr) activity.annotation = found;
    } else if (activity.operation == nullptr) {
      activity.operation = found;
    }
  }
  if (activity.annotation == nullptr && activity.operation != nullptr) activity.annotation = activity.operation->annotation;
}

void CpuOperations::hand_over(Sink& sink, LinkSummary& summary) const {
  for (const CpuOperationActivity& activity : activities_) {
    if (!kinds_.contains(activity.kind)) continue;
    sink.handle_cpu_operation_activity(activity);
    ++summary.cpu_operations;
  }
  summary.dangling_flow_ends = dangling_flow_ends_;
}

}  // namespace xpu::profiler
