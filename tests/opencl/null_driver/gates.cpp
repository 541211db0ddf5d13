#include "null_driver/gates.hpp"

#include <algorithm>
#include <new>

#include "null_driver/callbacks.hpp"

namespace xpu::null_driver {
namespace {

/// Whether an earlier command of the same queue, itself without times, has to come first.
bool stands_behind_another(const std::list<GatedCommand>& commands, std::list<GatedCommand>::const_iterator command) {
  return std::any_of(commands.begin(), command, [&](const GatedCommand& earlier) {
    return earlier.event->queue == command->event->queue && (command->in_order || command->waits_for_queue || earlier.blocks_queue);
  });
}

void give_times(GatedCommand& command, bool failed) {
  cl_event event = command.event;
  cl_command_queue queue = event->queue;
  if (failed) event->failure = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  event->submit_ns = host_now_ns();
  bool ignored = false;
  const auto count = static_cast<cl_uint>(command.wait_list.size());
  const std::uint64_t ready_ns = ready_time(count, command.wait_list.data(), event->submit_ns, ignored);
  std::uint64_t end_ns = 0;
  queue->lock.lock();
  place_on_timeline(queue, ready_ns, command.waits_for_queue, command.blocks_queue, failed, event->start_ns, end_ns);
  --queue->gated;
  queue->lock.unlock();
  event->end_ns.store(end_ns, std::memory_order_release);
}

}  // namespace

Gates& gates() {
  static Gates& instance = *new Gates;
  return instance;
}

std::vector<cl_event> open_gates(std::unique_lock<std::mutex>& lock, std::list<GatedCommand>::iterator first) {
  std::vector<cl_event> opened;
  std::list<GatedCommand>& commands = gates().commands;
  for (auto command = first; command != commands.end();) {
    bool failed = false;
    const auto count = static_cast<cl_uint>(command->wait_list.size());
    if (command->running_action || stands_behind_another(commands, command) ||
        ready_time(count, command->wait_list.data(), 0, failed) == _cl_event::kUnknown) {
      ++command;
      continue;
    }
    if (command->action != nullptr && !failed) {
      // Other threads that open gates meanwhile leave this command, and with it the iterator, alone.
      command->running_action = true;
      lock.unlock();
      command->action->run();
      lock.lock();
    }
    give_times(*command, failed);
    opened.push_back(command->event);
    for (cl_event awaited : command->wait_list) let_go(awaited);
    command = commands.erase(command);
  }
  return opened;
}

void announce(const std::vector<cl_event>& events) {
  if (events.empty()) return;
  gates().changed.notify_all();
  for (cl_event event : events) {
    event_ended(event);
    let_go(event);
  }
}

bool end_user_event(cl_event event, cl_int status) {
  std::vector<cl_event> opened;
  {
    std::unique_lock<std::mutex> lock(gates().mutex);
    if (event->end_ns.load(std::memory_order_relaxed) != _cl_event::kUnknown) return false;
    event->failure = status < 0 ? status : 0;
    event->end_ns.store(host_now_ns(), std::memory_order_release);
    opened = open_gates(lock, gates().commands.begin());
    opened.push_back(keep(event));
  }
  announce(opened);
  return true;
}

void lock_gates_for_fork() { gates().mutex.lock(); }

void unlock_gates_after_fork(bool in_child) {
  if (!in_child) {
    gates().mutex.unlock();
    return;
  }
  // A condition variable remembers waiters that the child does not have, and the mutex its owner's thread.
  new (&gates().mutex) std::mutex;
  new (&gates().changed) std::condition_variable;
}

}  // namespace xpu::null_driver
