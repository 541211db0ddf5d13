#include "profiler/report/build_report.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "profiler/expression.hpp"
#include "profiler/report/report_sink.hpp"
#include "profiler/time_difference.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using Figure = std::uint64_t (*)(const Report::Kernel&);
struct SortOrder {
  std::string_view name;
  Figure figure;  // null: by name
};
constexpr std::array<SortOrder, 8> kSortOrders = {{
    {"total", [](const Report::Kernel& kernel) { return kernel.total_ns.value_or(0); }},
    {"calls", [](const Report::Kernel& kernel) { return kernel.calls; }},
    {"avg", [](const Report::Kernel& kernel) { return kernel.avg_ns.value_or(0); }},
    {"min", [](const Report::Kernel& kernel) { return kernel.min_ns.value_or(0); }},
    {"median", [](const Report::Kernel& kernel) { return kernel.median_ns.value_or(0); }},
    {"p99", [](const Report::Kernel& kernel) { return kernel.p99_ns.value_or(0); }},
    {"max", [](const Report::Kernel& kernel) { return kernel.max_ns.value_or(0); }},
    {"name", nullptr},
}};

Result<SortOrder> sort_order(const std::string& name) {
  for (const SortOrder& order : kSortOrders) {
    if (order.name == name) return order;
  }
  std::string allowed;
  for (const SortOrder& order : kSortOrders) allowed += (allowed.empty() ? "" : ", ") + std::string(order.name);
  return Error{ErrorCode::invalid_argument, "cannot sort by '" + name + "', it must be one of " + allowed};
}

/// Largest first, then by everything that tells rows apart.
void sort_kernels(std::vector<Report::Kernel>& kernels, const SortOrder& order) {
  std::stable_sort(kernels.begin(), kernels.end(), [&](const Report::Kernel& a, const Report::Kernel& b) {
    if (order.figure != nullptr && order.figure(a) != order.figure(b)) return order.figure(a) > order.figure(b);
    return std::tie(a.name, a.device, a.process, a.queue, a.thread) < std::tie(b.name, b.device, b.process, b.queue, b.thread);
  });
}

/// The ranges in which the most was done first, in the order that was asked for where ranges have that figure.
void sort_ranges(std::vector<Report::Range>& ranges, const SortOrder& order) {
  std::stable_sort(ranges.begin(), ranges.end(), [&](const Report::Range& a, const Report::Range& b) {
    if (order.figure == nullptr) return a.name < b.name;
    if (order.name == "calls" && a.calls != b.calls) return a.calls > b.calls;
    return std::make_tuple(b.device_ns.value_or(0), b.host_ns.value_or(0), a.name) <
           std::make_tuple(a.device_ns.value_or(0), a.host_ns.value_or(0), b.name);
  });
}

/// Name of a command that is pending, from its `what` and the call that submitted it.
class PendingNames final : public Sink {
 public:
  struct Named {
    std::uint64_t pid;
    std::int64_t enter_ns;
    std::uint32_t queue;
    std::string name;
  };
  void handle_kernel_activity(const KernelActivity& activity) override { add(activity, activity.kernel->name); }
  void handle_memcpy_activity(const MemcpyActivity& activity) override { add(activity, to_string(activity.command)); }
  void handle_memset_activity(const MemsetActivity& activity) override { add(activity, to_string(activity.command)); }
  void handle_command_activity(const CommandActivity& activity) override { add(activity, to_string(activity.command)); }

  std::vector<Named> take() {
    keep_oldest();
    return std::move(named_);
  }

 private:
  static constexpr std::size_t kMost = 1000;
  void add(const DeviceActivity& activity, std::string_view name) {
    const bool open = activity.state == CommandState::pending || activity.state == CommandState::unfinished;
    if (!open || activity.call == nullptr) return;
    named_.push_back({activity.process->pid, activity.call->start_ns, activity.queue->id, std::string(name)});
    if (named_.size() >= 2 * kMost) keep_oldest();
  }
  void keep_oldest() {
    std::sort(named_.begin(), named_.end(), [](const Named& a, const Named& b) {
      return std::tie(a.enter_ns, a.pid, a.queue, a.name) < std::tie(b.enter_ns, b.pid, b.queue, b.name);
    });
    if (named_.size() > kMost) named_.resize(kMost);
  }
  std::vector<Named> named_;
};

Report::Books books_of(const trace::QueueBooks& books, const std::vector<trace::ProcessInfo>& processes) {
  Report::Books row;
  row.pid = books.process < processes.size() ? processes[books.process].pid : 0;
  row.queue = books.queue;
  row.submitted = books.submitted;
  row.recorded = books.recorded;
  row.lost = books.lost;
  row.pending = books.pending;
  row.untimed = books.untimed;
  row.failed = books.failed;
  row.unexplained = books.unexplained;
  return row;
}

void add_books(Report& report, const trace::Conservation& books, const RecordSource& source) {
  const std::vector<trace::ProcessInfo>& processes = source.processes();
  Report::Conservation& conservation = report.conservation;
  conservation.submitted = books.total.submitted;
  conservation.recorded = books.total.recorded;
  conservation.lost = books.total.lost;
  conservation.pending = books.total.pending;
  conservation.untimed = books.total.untimed;
  conservation.failed = books.total.failed;
  conservation.unexplained = books.total.unexplained;
  conservation.filtered = books.filtered;
  conservation.refused = books.refused_calls;
  conservation.other_records_lost = books.other_records_lost;
  for (const trace::QueueBooks& queue : books.queues) conservation.queues.push_back(books_of(queue, processes));
  for (const trace::LossSummary& loss : books.losses) {
    report.losses.push_back(
        {trace::loss_cause_name(loss.cause), loss.process < processes.size() ? processes[loss.process].pid : 0, loss.queue, loss.count});
  }
}

}  // namespace

Result<Report> build_report(Session& session, const trace::Conservation& books, const ReportOptions& options) {
  XPU_TRY_ASSIGN(const SortOrder order, sort_order(options.sort));
  std::unique_ptr<Expression> wanted, wanted_ranges;
  if (!options.kernels_regex.empty()) {
    XPU_TRY_ASSIGN(wanted, Expression::compile(options.kernels_regex));
  }
  if (!options.ranges_regex.empty()) {
    XPU_TRY_ASSIGN(wanted_ranges, Expression::compile(options.ranges_regex));
  }

  ReportSink figures(options.by);
  PendingNames pending;
  XPU_TRY_ASSIGN(const LinkSummary linked, session.run({&figures, &pending}));
  const RecordSource& source = session.source();

  Report report = figures.take_report();
  report.errors = linked.errors;
  report.duplicates = linked.duplicates;
  report.orphans = linked.orphans;
  if (wanted != nullptr) {
    std::erase_if(report.kernels,
                  [&](const Report::Kernel& kernel) { return !wanted->found_in(kernel.name) && !wanted->found_in(kernel.raw_name); });
  }
  sort_kernels(report.kernels, order);
  if (wanted_ranges != nullptr) {
    std::erase_if(report.ranges, [&](const Report::Range& range) { return !wanted_ranges->found_in(range.name); });
  }
  sort_ranges(report.ranges, order);
  add_books(report, books, source);
  report.conservation.cpu_traces_discarded = linked.discarded_cpu_traces;
  report.conservation.cpu_operations_discarded = linked.discarded_cpu_operations;
  report.conservation.dangling_flow_ends = linked.dangling_flow_ends;
  for (const ParticipantReport& participant : session.participants()) {
    for (const std::string& error : participant.errors) report.participant_errors.push_back(participant.name + ": " + error);
  }
  report.conservation.left_out = linked.left_out;
  const auto start_ns = static_cast<std::int64_t>(source.manifest().start_monotonic_ns);
  for (PendingNames::Named& command : pending.take()) {
    report.conservation.pending_commands.push_back(
        {std::move(command.name), command.pid, command.queue, difference_ns(command.enter_ns, start_ns)});
  }
  return report;
}

Result<Report> build_report(const RecordSource& source, const trace::Conservation& books, const ReportOptions& options) {
  Session session(source);
  return build_report(session, books, options);
}

}  // namespace xpu::profiler
