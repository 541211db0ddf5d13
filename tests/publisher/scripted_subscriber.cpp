#include "publisher/scripted_subscriber.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace xpu::publisher_tests {
namespace {

std::string name_of(probe::Id text) { return std::string(probe::text_of(text)); }

}  // namespace

ScriptedSubscriber& ScriptedSubscriber::get() {
  // Never destroyed: publishers publish until the process ends. Subscribed once it can be called, because living objects are published at
  // once, which calls this again.
  static auto& subscriber = *new ScriptedSubscriber;
  static std::atomic<bool> is_subscribed{false};
  if (!is_subscribed.exchange(true)) probe::subscribe(&subscriber.table_);
  return subscriber;
}

ScriptedSubscriber::ScriptedSubscriber() {
  table_.wanted = ~std::uint32_t{0};
  table_.begin = [](const probe::Operation& operation) { return get().begin(operation); };
  table_.submitted = [](probe::OperationId id, const probe::Operation& operation, const probe::Submission& submission) {
    return get().submitted(id, operation, submission);
  };
  table_.complete = [](probe::OperationId id, const probe::Completion& completion) { get().complete(id, completion); };
  table_.lost = [](const probe::Loss& loss) { get().lost(loss); };
  table_.call_begin = [](probe::Id api, std::uint64_t) {
    const std::lock_guard lock(get().mutex_);
    get().calls_begun_.push_back(name_of(api));
  };
  table_.call = [](const probe::Call& call) {
    const std::lock_guard lock(get().mutex_);
    get().calls_.push_back({name_of(call.api), call.result});
    if (call.exit_ns < call.enter_ns) get().complain(name_of(call.api) + " returned before it was called");
  };
  table_.wait = [](const probe::Wait& wait) {
    const std::lock_guard lock(get().mutex_);
    get().waits_.push_back(name_of(wait.api));
    get().wait_details_.push_back(wait);
    if (wait.exit_ns < wait.enter_ns) get().complain(name_of(wait.api) + " returned before it was called");
  };
  table_.memory = [](const probe::MemoryEvent& event) { get().memory(event); };
  table_.object = [](probe::ObjectKind kind, probe::Id id, probe::ObjectEvent event, const void* description) {
    get().object(kind, id, event, description);
  };
  table_.clock = [](const probe::ClockReading& reading) {
    const std::lock_guard lock(get().mutex_);
    get().readings_.push_back(reading);
    if (reading.host_after_ns < reading.host_before_ns) get().complain("a clock reading that ends before it begins");
  };
  table_.annotate = [](const probe::Annotation& annotation) {
    const std::lock_guard lock(get().mutex_);
    get().marks_.emplace_back(annotation.text);
  };
  table_.string = [](probe::Id, std::string_view) {};
  table_.communicate = [](const probe::Communication& communication) {
    const std::lock_guard lock(get().mutex_);
    if (communication.end_ns < communication.begin_ns) get().complain("a communication that ends before it begins");
  };
  table_.overhead = [](probe::OverheadType, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t count) {
    const std::lock_guard lock(get().mutex_);
    if (end_ns < begin_ns || count == 0) get().complain("an overhead that makes no sense");
  };
}

probe::OperationId ScriptedSubscriber::begin(const probe::Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (refuses_) return 0;
  SeenOperation seen;
  seen.id = ++last_id_;
  seen.api = name_of(operation.api);
  seen.command = operation.command;
  seen.flags = operation.flags;
  seen.queue = operation.queue;
  seen.kernel = operation.kernel;
  seen.enter_ns = operation.enter_ns;
  if (operation.geometry != nullptr) seen.geometry = *operation.geometry;
  if (operation.copy != nullptr) {
    seen.copy = *operation.copy;
    if (seen.copy->rectangle != nullptr) seen.rectangle = *seen.copy->rectangle;
    if (seen.copy->pattern != nullptr) seen.pattern.assign(static_cast<const char*>(seen.copy->pattern), seen.copy->pattern_bytes);
    seen.copy->rectangle = nullptr;
    seen.copy->pattern = nullptr;
  }
  if (seen.api.empty()) complain("an operation without the name of its call");
  if (seen.queue != 0 && !objects_[probe::ObjectKind::queue].contains(seen.queue))
    complain(seen.api + " names a queue that was never described");
  if (seen.kernel != 0 && !objects_[probe::ObjectKind::kernel].contains(seen.kernel))
    complain(seen.api + " names a kernel that was never described");
  operations_[seen.id] = seen;
  return seen.id;
}

bool ScriptedSubscriber::submitted(probe::OperationId id, const probe::Operation& operation, const probe::Submission& submission) {
  const std::lock_guard lock(mutex_);
  if (!operations_.contains(id)) {
    complain("submitted an operation that never began");
    return false;
  }
  SeenOperation& seen = operations_[id];
  if (seen.submission) complain(seen.api + " was submitted twice");
  seen.submission = submission;
  seen.queue = operation.queue;
  if (submission.exit_ns != 0 && submission.exit_ns < seen.enter_ns) complain(seen.api + " returned before it was called");
  if (submission.result != 0 && submission.queue_sequence != 0) complain(seen.api + " was refused and counted");
  if (submission.result == 0) {
    if (submission.queue_sequence == 0) complain(seen.api + " was accepted and not counted");
    if (!sequences_[seen.queue].insert(submission.queue_sequence).second)
      complain(seen.api + " has a number that another command of its queue has");
  }
  if (drops_) {
    operations_.erase(id);
    forgotten_.insert(id);
    return false;
  }
  return true;
}

void ScriptedSubscriber::complete(probe::OperationId id, const probe::Completion& completion) {
  const std::lock_guard lock(mutex_);
  if (!operations_.contains(id)) {
    complain(forgotten_.contains(id) ? "completed an operation that was not to be followed, or a second time"
                                     : "completed an operation that never began");
    return;
  }
  SeenOperation& seen = operations_[id];
  if (!seen.submission) complain(seen.api + " ended before it was submitted");
  if (seen.submission && seen.submission->result != 0) complain(seen.api + " was refused and ended");
  if (seen.completion || seen.lost) complain(seen.api + " ended twice");
  if (completion.queue != seen.queue) complain(seen.api + " ended on another queue");
  const probe::Ticks& ticks = completion.ticks;
  if (completion.status == probe::CompletionStatus::ok && ticks.end < ticks.start) complain(seen.api + " ended before it started");
  seen.completion = completion;
}

void ScriptedSubscriber::lost(const probe::Loss& loss) {
  const std::lock_guard lock(mutex_);
  if (loss.count != 1) {
    complain("a loss of several operations: not expected here");
    return;
  }
  if (!operations_.contains(loss.first)) {
    complain("lost an operation that never began");
    return;
  }
  SeenOperation& seen = operations_[loss.first];
  if (seen.completion || seen.lost) complain(seen.api + " was lost after its end");
  seen.lost = loss.cause;
}

void ScriptedSubscriber::memory(const probe::MemoryEvent& event) {
  const std::lock_guard lock(mutex_);
  memory_events_.push_back(event);
  if (event.action == probe::MemoryAction::allocate) {
    if (!living_memory_.emplace(event.address, event.bytes).second) complain("memory that was allocated twice");
    return;
  }
  const auto known = living_memory_.find(event.address);
  if (known == living_memory_.end()) {
    // What was allocated while nobody listened is nobody's mistake.
    if (!has_been_away_) complain("memory that was released and never allocated");
    return;
  }
  if (known->second != event.bytes) complain("memory that was released with another size");
  living_memory_.erase(known);
}

void ScriptedSubscriber::object(probe::ObjectKind kind, probe::Id id, probe::ObjectEvent event, const void* description) {
  const std::lock_guard lock(mutex_);
  ++object_events_;
  SeenObject& seen = objects_[kind][id];
  if (event == probe::ObjectEvent::destroyed) {
    if (seen.is_destroyed) complain("an object that was destroyed twice");
    seen.is_destroyed = true;
    return;
  }
  if (id == 0 || description == nullptr) {
    complain("an object without an id or a description");
    return;
  }
  if (seen.is_destroyed) complain("an object that was described after its end");
  describe(seen, kind, description);
}

void ScriptedSubscriber::describe(SeenObject& seen, probe::ObjectKind kind, const void* description) {
  switch (kind) {
    case probe::ObjectKind::device: {
      const auto& device = *static_cast<const probe::DeviceDescription*>(description);
      seen.name = device.name;
      break;
    }
    case probe::ObjectKind::queue: {
      const auto& queue = *static_cast<const probe::QueueDescription*>(description);
      seen.device = queue.device;
      seen.context = queue.context;
      seen.properties = queue.properties;
      seen.native = queue.native;
      seen.priority = queue.priority;
      seen.published_before = queue.published_before;
      seen.is_out_of_order = queue.out_of_order;
      if (queue.device != 0 && !objects_[probe::ObjectKind::device].contains(queue.device))
        complain("a queue of a device that was never described");
      break;
    }
    case probe::ObjectKind::module: {
      const auto& module = *static_cast<const probe::ModuleDescription*>(description);
      seen.name = module.name;
      seen.context = module.context;
      break;
    }
    case probe::ObjectKind::kernel: {
      const auto& kernel = *static_cast<const probe::KernelDescription*>(description);
      seen.name = kernel.name;
      seen.device = kernel.device;
      seen.native = kernel.native;
      seen.local_bytes = kernel.local_bytes;
      break;
    }
    default: break;
  }
}

void ScriptedSubscriber::forget_events() {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, operation] : operations_) forgotten_.insert(id);
  operations_.clear();
  calls_.clear();
  calls_begun_.clear();
  waits_.clear();
  wait_details_.clear();
  memory_events_.clear();
  marks_.clear();
}

void ScriptedSubscriber::refuse_operations(bool refuse) {
  const std::lock_guard lock(mutex_);
  refuses_ = refuse;
}

void ScriptedSubscriber::drop_submissions(bool drop) {
  const std::lock_guard lock(mutex_);
  drops_ = drop;
}

void ScriptedSubscriber::leave() {
  probe::unsubscribe();
  const std::lock_guard lock(mutex_);
  objects_.clear();
  living_memory_.clear();
  has_been_away_ = true;
}

void ScriptedSubscriber::come_back() { probe::subscribe(&table_); }

std::vector<SeenOperation> ScriptedSubscriber::operations() const {
  const std::lock_guard lock(mutex_);
  std::vector<SeenOperation> result;
  for (const auto& [id, operation] : operations_) result.push_back(operation);
  return result;
}

template <typename T>
static T copy_under(std::mutex& mutex, const T& value) {
  const std::lock_guard lock(mutex);
  return value;
}

std::vector<SeenCall> ScriptedSubscriber::calls() const { return copy_under(mutex_, calls_); }
std::vector<std::string> ScriptedSubscriber::calls_begun() const { return copy_under(mutex_, calls_begun_); }
std::vector<std::string> ScriptedSubscriber::waits() const { return copy_under(mutex_, waits_); }
std::vector<probe::Wait> ScriptedSubscriber::wait_details() const { return copy_under(mutex_, wait_details_); }
std::vector<probe::MemoryEvent> ScriptedSubscriber::memory_events() const { return copy_under(mutex_, memory_events_); }
std::vector<std::string> ScriptedSubscriber::marks() const { return copy_under(mutex_, marks_); }
std::vector<probe::ClockReading> ScriptedSubscriber::readings() const { return copy_under(mutex_, readings_); }
std::size_t ScriptedSubscriber::object_events() const { return copy_under(mutex_, object_events_); }

std::vector<std::string> ScriptedSubscriber::gaps_in_sequences() const {
  std::vector<std::string> result;
  for (const auto& [queue, numbers] : sequences_) {
    // Numbers differ, so they are 1, 2, … exactly when the largest is their count. A call on no queue has none to share them with.
    if (queue != 0 && *numbers.rbegin() != numbers.size()) result.push_back("the commands of a queue have numbers with gaps");
  }
  return result;
}

std::vector<std::string> ScriptedSubscriber::problems() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> result = problems_;
  for (std::string& gap : gaps_in_sequences()) result.push_back(std::move(gap));
  return result;
}

std::map<probe::Id, SeenObject> ScriptedSubscriber::objects(probe::ObjectKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(kind);
  return found == objects_.end() ? std::map<probe::Id, SeenObject>{} : found->second;
}

bool ScriptedSubscriber::wait_for_completions(int timeout_ms) const {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      bool all = true;
      for (const auto& [id, operation] : operations_) {
        const bool was_accepted = operation.submission && operation.submission->result == 0;
        if (!operation.submission || (was_accepted && !operation.completion && !operation.lost)) all = false;
      }
      if (all) return true;
    }
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace xpu::publisher_tests
