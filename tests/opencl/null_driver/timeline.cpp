#include "null_driver/timeline.hpp"

#include <time.h>

#include <algorithm>
#include <iterator>

#include "null_driver/api.hpp"
#include "null_driver/call_counts.hpp"
#include "null_driver/gates.hpp"

namespace xpu::null_driver {
namespace {

constexpr cl_int kInjectedFailure = CL_OUT_OF_RESOURCES;

std::atomic<std::uint64_t> submissions{0};
std::atomic<std::uint64_t> accepted_commands{0};
std::atomic<std::uint64_t> commands_with_event{0};
std::atomic<std::uint64_t> step_at_host_ns{ClockParameters::kNoStep};

/// What the fault list decided for one command.
struct CommandFaults {
  bool refuse = false;
  bool fail = false;
  bool late = false;
  bool null_event = false;
};

bool is_nth(std::uint64_t count, std::uint64_t n) noexcept { return n != 0 && count % n == 0; }

CommandFaults next_faults(bool wants_event) noexcept {
  const Faults& faults = settings.faults;
  CommandFaults result;
  if (is_nth(submissions.fetch_add(1, std::memory_order_relaxed) + 1, faults.fail_enqueue)) {
    result.refuse = true;
    return result;
  }
  const std::uint64_t accepted = accepted_commands.fetch_add(1, std::memory_order_relaxed) + 1;
  result.fail = is_nth(accepted, faults.fail_command);
  result.late = is_nth(accepted, faults.late);
  if (wants_event) result.null_event = is_nth(commands_with_event.fetch_add(1, std::memory_order_relaxed) + 1, faults.null_event);
  if (faults.step_after_commands != 0 && accepted == faults.step_after_commands) {
    step_at_host_ns.store(host_now_ns(), std::memory_order_relaxed);
  }
  return result;
}

struct Stamps {
  std::uint64_t queued_ns;
  std::uint64_t submit_ns;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
};

cl_event create_event(const Submission& submission, const CommandFaults& faults, bool dependency_failed) {
  auto* event = new _cl_event;
  event->queue = keep(submission.queue);
  event->context = submission.queue->context;
  event->type = submission.type;
  event->profiled = (submission.queue->properties.load(std::memory_order_relaxed) & CL_QUEUE_PROFILING_ENABLE) != 0;
  event->late = faults.late;
  if (dependency_failed) {
    event->failure = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  } else if (faults.fail) {
    event->failure = kInjectedFailure;
  }
  if (counting_calls) count_event_created();
  return event;
}

void set_stamps(cl_event event, const Stamps& stamps) noexcept {
  event->queued_ns = stamps.queued_ns;
  event->submit_ns = stamps.submit_ns;
  event->start_ns = stamps.start_ns;
  event->end_ns.store(stamps.end_ns, std::memory_order_release);
}

/// The path of commands that wait for an unknown end, or stand behind one that does.
cl_int submit_gated(const Submission& submission, std::unique_ptr<HostAction> action, const CommandFaults& faults,
                    std::uint64_t queued_ns) {
  cl_event event = create_event(submission, faults, false);
  event->queued_ns = queued_ns;
  keep(event);  // for this call
  std::vector<cl_event> opened;
  {
    std::unique_lock<std::mutex> lock(gates().mutex);
    GatedCommand command;
    command.event = keep(event);
    command.in_order = (submission.queue->properties.load(std::memory_order_relaxed) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
    command.waits_for_queue = submission.waits_for_queue;
    command.blocks_queue = submission.blocks_queue;
    command.action = std::move(action);
    for (cl_uint i = 0; i < submission.wait_count; ++i) command.wait_list.push_back(keep(submission.wait_list[i]));
    submission.queue->lock.lock();
    ++submission.queue->gated;
    submission.queue->lock.unlock();
    gates().commands.push_back(std::move(command));
    // The event it waited for may have ended before we had the lock.
    opened = open_gates(lock, std::prev(gates().commands.end()));
  }
  announce(opened);
  cl_int result = CL_SUCCESS;
  if (submission.blocking && wait_for(event) < 0) result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (submission.event != nullptr && !faults.null_event) {
    *submission.event = event;
  } else {
    if (submission.event != nullptr) *submission.event = nullptr;
    release(event);
  }
  let_go(event);
  return result;
}

}  // namespace

std::uint64_t ready_time(cl_uint count, const cl_event* wait_list, std::uint64_t earliest_ns, bool& failed) noexcept {
  for (cl_uint i = 0; i < count; ++i) {
    const std::uint64_t end_ns = wait_list[i]->end_ns.load(std::memory_order_acquire);
    if (end_ns == _cl_event::kUnknown) return _cl_event::kUnknown;
    earliest_ns = std::max(earliest_ns, end_ns);
    if (wait_list[i]->failure < 0) failed = true;
  }
  return earliest_ns;
}

namespace {

/// `action` may be null; it is taken only when the submission is accepted. Inlined into both forms of submit, so that commands without an
/// action pay nothing for it.
[[gnu::always_inline]] inline cl_int submit_command(const Submission& submission, std::unique_ptr<HostAction>* action) {
  cl_command_queue queue = submission.queue;
  if (!is_valid(queue) || queue->device_queue_size != 0) return CL_INVALID_COMMAND_QUEUE;
  if ((submission.wait_count == 0) != (submission.wait_list == nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  for (cl_uint i = 0; i < submission.wait_count; ++i) {
    if (!is_valid(submission.wait_list[i])) return CL_INVALID_EVENT_WAIT_LIST;
    if (submission.wait_list[i]->context != queue->context) return CL_INVALID_CONTEXT;
  }
  CommandFaults faults;
  if (settings.enqueue_faults) {
    faults = next_faults(submission.event != nullptr);
    if (faults.refuse) return CL_OUT_OF_RESOURCES;
  }
  Stamps stamps;
  stamps.queued_ns = host_now_ns();
  if (settings.enqueue_ns != 0) spin_for(settings.enqueue_ns);
  stamps.submit_ns = host_now_ns();
  bool dependency_failed = false;
  std::uint64_t ready_ns = stamps.submit_ns;
  if (submission.wait_count != 0) ready_ns = ready_time(submission.wait_count, submission.wait_list, ready_ns, dependency_failed);

  queue->lock.lock();
  // Out of order only a gated barrier holds back what follows; open_gates sorts that out, and lets everything else pass at once.
  if (ready_ns == _cl_event::kUnknown || queue->gated != 0) {
    queue->lock.unlock();
    return submit_gated(submission, action != nullptr ? std::move(*action) : nullptr, faults, stamps.queued_ns);
  }
  place_on_timeline(queue, ready_ns, submission.waits_for_queue, submission.blocks_queue, dependency_failed, stamps.start_ns,
                    stamps.end_ns);
  queue->lock.unlock();

  if (action != nullptr && !dependency_failed) (*action)->run();
  if (submission.event != nullptr) {
    if (faults.null_event) {
      *submission.event = nullptr;
    } else {
      cl_event event = create_event(submission, faults, dependency_failed);
      set_stamps(event, stamps);
      *submission.event = event;
    }
  }
  if (submission.blocking) {
    wait_until(stamps.end_ns);
    if (dependency_failed) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  return CL_SUCCESS;
}

}  // namespace

cl_int submit(const Submission& submission) { return submit_command(submission, nullptr); }

cl_int submit(const Submission& submission, std::unique_ptr<HostAction> action) { return submit_command(submission, &action); }

void spin_for(std::uint64_t duration_ns) {
  const std::uint64_t until_ns = host_now_ns() + duration_ns;
  while (host_now_ns() < until_ns) {
  }
}

void wait_until(std::uint64_t host_ns) {
  constexpr std::uint64_t kSpinBelowNs = 100'000;
  for (std::uint64_t now_ns = host_now_ns(); now_ns < host_ns; now_ns = host_now_ns()) {
    if (host_ns - now_ns <= kSpinBelowNs) continue;
    const std::uint64_t wake_ns = host_ns - kSpinBelowNs / 2;
    const timespec until{static_cast<time_t>(wake_ns / 1'000'000'000), static_cast<long>(wake_ns % 1'000'000'000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
}

cl_int wait_for(cl_event event) {
  if (event->end_ns.load(std::memory_order_acquire) == _cl_event::kUnknown) {
    std::unique_lock<std::mutex> lock(gates().mutex);
    gates().changed.wait(lock, [&] { return event->end_ns.load(std::memory_order_acquire) != _cl_event::kUnknown; });
  }
  wait_until(event->end_ns.load(std::memory_order_acquire));
  return event->failure < 0 ? event->failure : CL_COMPLETE;
}

void wait_for(cl_command_queue queue) {
  queue->lock.lock();
  bool gated = queue->gated != 0;
  std::uint64_t end_ns = queue->last_end_ns;
  queue->lock.unlock();
  if (gated) {
    std::unique_lock<std::mutex> lock(gates().mutex);
    gates().changed.wait(lock, [&] {
      queue->lock.lock();
      gated = queue->gated != 0;
      end_ns = queue->last_end_ns;
      queue->lock.unlock();
      return !gated;
    });
  }
  wait_until(end_ns);
}

cl_int status_of(cl_event event) {
  const std::uint64_t end_ns = event->end_ns.load(std::memory_order_acquire);
  if (end_ns == _cl_event::kUnknown) return event->queue == nullptr ? CL_SUBMITTED : CL_QUEUED;
  if (is_complete(event)) return event->failure < 0 ? event->failure : CL_COMPLETE;
  return host_now_ns() >= event->start_ns ? CL_RUNNING : CL_SUBMITTED;
}

std::uint64_t device_time(std::uint64_t host_ns) noexcept {
  ClockParameters clock = settings.clock;
  clock.step_at_host_ns = step_at_host_ns.load(std::memory_order_relaxed);
  return device_from_host(clock, host_ns);
}

std::uint64_t step_host_time() noexcept { return step_at_host_ns.load(std::memory_order_relaxed); }

}  // namespace xpu::null_driver
