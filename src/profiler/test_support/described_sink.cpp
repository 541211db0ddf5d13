#include "profiler/test_support/described_sink.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace xpu::profiler::test_support {
namespace {

std::string named(const ThreadDefinition* thread) {
  return thread == nullptr ? "no thread" : fmt::format("thread {} \"{}\"", thread->os_thread, thread->name);
}
std::string named(const QueueDefinition* queue) {
  return queue == nullptr ? "no queue"
                          : fmt::format("queue {} #{} of {} #{}", queue->id, queue->index, queue->device->name, queue->device->index);
}
std::string listed(std::span<const ExternalId> ids) {
  std::string text;
  for (const ExternalId& id : ids) text += fmt::format(" {}/{}", id.id, id.family);
  return text;
}
std::string line_of(const RuntimeActivity& call) {
  return fmt::format("{} {} +{}{} on {} result {}{}{}{}", call.api->text, call.start_ns, call.duration_ns, call.duration_known ? "" : "?",
                     named(call.thread), call.result, call.submits ? " submits" : "", call.failed ? " failed" : "",
                     listed(call.external_ids));
}

}  // namespace

void DescribedSink::begin(const SessionInfo& info) {
  definitions_ = info.definitions;
  ++begins;
}

void DescribedSink::handle_runtime_activity(const RuntimeActivity& activity) {
  if (activity.correlation == 0) problems_.push_back("a call without a correlation");
  last_correlation_ = activity.correlation;
  lines_.push_back("call " + line_of(activity));
}

void DescribedSink::handle_external_correlation_activity(const ExternalCorrelationActivity& activity) {
  lines_.push_back(
      fmt::format("external {}/{} at {} on {}", activity.external.id, activity.external.family, activity.start_ns, named(activity.thread)));
}

void DescribedSink::add_command(std::string_view kind, const DeviceActivity& activity, const std::string& more) {
  if (activity.call == nullptr || activity.call->correlation != last_correlation_ || activity.correlation != last_correlation_)
    problems_.push_back("a command that is not behind its call");
  const std::string call = activity.call == nullptr ? "no call" : line_of(*activity.call);
  const bool is_mapped = activity.placed && activity.error_ns > 1;
  std::string line = fmt::format("{} of [{}] command {} state {} native {} on {}{} +{} {}", kind, call, static_cast<int>(activity.command),
                                 static_cast<int>(activity.state), activity.native_status, named(activity.queue),
                                 listed(activity.external_ids), activity.duration_ns, more);
  line += fmt::format(" timed {} placed {}", activity.timed, activity.placed);
  if (activity.graph_node) line += fmt::format(" node {} of {}", activity.graph_node->node, activity.graph_node->graph);
  if (activity.queued_ns) line += fmt::format(" queued {} before", activity.start_ns - *activity.queued_ns);
  if (activity.submitted_ns) line += fmt::format(" submitted {} before", activity.start_ns - *activity.submitted_ns);
  if (is_mapped) {
    mapped_[call] = {activity.start_ns, activity.error_ns};
  } else {
    line += fmt::format(" at {} error {}", activity.start_ns, activity.error_ns);
    if (!activity.queue->out_of_order) line += fmt::format(" lane {} nudge {}", activity.lane, activity.nudge_ns);
  }
  lines_.push_back(std::move(line));
  if (activity.timed && activity.placed) {
    const std::int64_t shown_ns = activity.start_ns + activity.nudge_ns;
    lanes_[{named(activity.queue), activity.lane}].push_back({shown_ns, shown_ns + static_cast<std::int64_t>(activity.duration_ns)});
  }
}

void DescribedSink::handle_kernel_activity(const KernelActivity& activity) {
  add_command("kernel", activity,
              fmt::format("{} {}", activity.kernel->name, activity.geometry == nullptr ? 0 : activity.geometry->global[0]));
}
void DescribedSink::handle_memcpy_activity(const MemcpyActivity& activity) {
  add_command("copy", activity, fmt::format("{} bytes, direction {}", activity.bytes.value_or(0), static_cast<int>(activity.direction)));
}
void DescribedSink::handle_memset_activity(const MemsetActivity& activity) {
  add_command("fill", activity, fmt::format("{} bytes", activity.bytes.value_or(0)));
}
void DescribedSink::handle_command_activity(const CommandActivity& activity) { add_command("other", activity, ""); }

void DescribedSink::handle_synchronization_activity(const SynchronizationActivity& activity) {
  lines_.push_back(fmt::format("wait {} {} +{} on {} for {} type {}", activity.api->text, activity.start_ns, activity.duration_ns,
                               named(activity.thread), named(activity.queue), static_cast<int>(activity.type)));
}
void DescribedSink::handle_communication_activity(const CommunicationActivity& activity) {
  lines_.push_back(fmt::format("communication {} +{} {} of {}: {} sent, {} received on {}", activity.start_ns, activity.duration_ns,
                               activity.name->text, activity.communicator, activity.send_bytes, activity.receive_bytes,
                               named(activity.thread)));
}
void DescribedSink::handle_overhead_activity(const OverheadActivity& activity) {
  lines_.push_back(
      fmt::format("overhead {} +{} x{} on {}", activity.start_ns, activity.duration_ns, activity.count, named(activity.thread)));
}
void DescribedSink::handle_memory_activity(const MemoryActivity& activity) {
  lines_.push_back(
      fmt::format("memory {} {} bytes {} alive {}", activity.start_ns, activity.allocates, activity.bytes, activity.alive_bytes));
}
void DescribedSink::handle_annotation_activity(const AnnotationActivity& activity) {
  lines_.push_back(fmt::format("annotation {} type {} at {} +{}{} on {} value {}", activity.text->text, static_cast<int>(activity.type),
                               activity.start_ns, activity.duration_ns, activity.duration_known ? "" : "?", named(activity.thread),
                               activity.value));
}
void DescribedSink::handle_loss_activity(const LossActivity& activity) {
  lines_.push_back(fmt::format("loss {} x{} cause {} of {} commands {}", activity.start_ns, activity.count, activity.cause,
                               named(activity.queue), activity.commands));
}

Result<> DescribedSink::flush(const LinkSummary&) {
  ++flushes;
  if (begins != 1 || ends != 0) problems_.push_back("a flush that is not between the beginning and the end");
  return {};
}

Result<> DescribedSink::end(const LinkSummary&) {
  ++ends;
  for (const ClockDefinition& clock : definitions_->clocks) {
    clock_readings_.push_back(clock.readings);
    // Those of a mapped clock depend on what was known when.
    if (clock.tick_numerator == clock.tick_denominator)
      lines_.push_back(fmt::format("clock of {}: {} readings, error {} {}", clock.device->name, clock.readings,
                                   clock.error_median_ns.value_or(0), clock.error_max_ns.value_or(0)));
  }
  return {};
}

std::vector<std::string> DescribedSink::sorted() {
  std::sort(lines_.begin(), lines_.end());
  return lines_;
}

std::vector<std::string> DescribedSink::problems() {
  for (auto& [row, commands] : lanes_) {
    std::stable_sort(commands.begin(), commands.end());
    for (std::size_t index = 1; index < commands.size(); ++index) {
      if (commands[index].start_ns < commands[index - 1].end_ns)
        problems_.push_back(fmt::format("two commands overlap on lane {} of {} at {}", row.second, row.first, commands[index].start_ns));
    }
  }
  if (begins != 1 || ends != 1) problems_.push_back(fmt::format("{} beginnings and {} ends", begins, ends));
  return problems_;
}

}  // namespace xpu::profiler::test_support
