#include "profiler/session/participants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

namespace xpu::profiler {
namespace {

constexpr std::size_t kMostErrors = 100;

struct RegisteredChild {
  std::string name;
  ChildProfilerFactory factory;
};
using ListeningChildren = std::vector<std::shared_ptr<Participants::Child>>;

/// Made when it is first used, and never ended: sessions may end after everything else.
struct ChildRegistry {
  static ChildRegistry& instance() {
    static auto* const registry = new ChildRegistry;
    return *registry;
  }

  std::mutex mutex;
  std::vector<RegisteredChild> factories;
  /// Of sessions that are under way. Replaced as a whole, so that who tells them needs no lock for it.
  std::shared_ptr<const ListeningChildren> listening = std::make_shared<ListeningChildren>();
};
std::atomic<std::size_t> listening_children{0};

void change_listening(const ListeningChildren& children, bool listens) {
  ChildRegistry& registry = ChildRegistry::instance();
  const std::lock_guard lock(registry.mutex);
  auto changed = std::make_shared<ListeningChildren>(*registry.listening);
  for (const auto& child : children) {
    if (listens) {
      changed->push_back(child);
    } else {
      std::erase(*changed, child);
    }
  }
  listening_children.store(changed->size(), std::memory_order_relaxed);
  registry.listening = std::move(changed);
}

template <typename Tell>
void tell_listening_children(std::string_view step, Tell&& tell) noexcept {
  if (listening_children.load(std::memory_order_relaxed) == 0) return;
  std::shared_ptr<const ListeningChildren> children;
  {
    ChildRegistry& registry = ChildRegistry::instance();
    const std::lock_guard lock(registry.mutex);
    children = registry.listening;
  }
  for (const auto& child : *children) {
    child->log.guard(step, [&]() -> Result<> {
      tell(*child->profiler);
      return {};
    });
  }
}

bool is_silent(const ParticipantReport& report) {
  return report.errors.empty() && report.metadata.empty() && report.device_properties.empty();
}

}  // namespace

ProfilerClient::~ProfilerClient() = default;
ChildProfiler::~ChildProfiler() = default;

void ProfilerClient::init_once() {
  std::call_once(is_initialised_, [&] { init(); });
}

Result<> ProfilerClient::export_memory_profile(const std::string& path) {
  return Error{ErrorCode::unsupported, fmt::format("the framework writes no profile of memory to {}", path)};
}

Result<> register_child_profiler(std::string name, ChildProfilerFactory factory) {
  if (name.empty() || !factory) return Error{ErrorCode::invalid_argument, "a child profiler needs a name and a function that makes one"};
  ChildRegistry& registry = ChildRegistry::instance();
  const std::lock_guard lock(registry.mutex);
  for (const RegisteredChild& known : registry.factories) {
    if (known.name == name)
      return Error{ErrorCode::failed_precondition, fmt::format("there is a child profiler called '{}' already", name)};
  }
  registry.factories.push_back({std::move(name), std::move(factory)});
  return {};
}

bool unregister_child_profiler(const std::string& name) {
  ChildRegistry& registry = ChildRegistry::instance();
  const std::lock_guard lock(registry.mutex);
  return std::erase_if(registry.factories, [&](const RegisteredChild& known) { return known.name == name; }) != 0;
}

// ---- what they say

void ParticipantLog::keep(std::string sentence) {
  const std::lock_guard lock(mutex_);
  if (report_.errors.size() < kMostErrors) {
    report_.errors.push_back(std::move(sentence));
  } else {
    ++more_errors_;
  }
}

void ParticipantLog::add_error(std::string_view step, std::string_view what) noexcept {
  try {
    keep(fmt::format("it failed to {}: {}", step, what));
  } catch (...) {
    // No memory for the sentence: the profile is worth more.
  }
}

void ParticipantLog::add_errors(std::vector<std::string> sentences) {
  for (std::string& sentence : sentences) keep(std::move(sentence));
}

void ParticipantLog::set_metadata(std::vector<std::pair<std::string, std::string>> metadata) {
  const std::lock_guard lock(mutex_);
  report_.metadata = std::move(metadata);
}

void ParticipantLog::set_device_properties(std::vector<std::vector<CpuArgument>> devices) {
  const std::lock_guard lock(mutex_);
  report_.device_properties = std::move(devices);
}

ParticipantReport ParticipantLog::report() const {
  const std::lock_guard lock(mutex_);
  ParticipantReport report = report_;
  if (more_errors_ != 0) report.errors.push_back(fmt::format("and {} more", more_errors_));
  return report;
}

// ---- what they are told

Participants::~Participants() {
  if (is_prepared_) change_listening(children_, false);
}

void Participants::prepare(const Config& config) {
  std::vector<RegisteredChild> factories;
  {
    ChildRegistry& registry = ChildRegistry::instance();
    const std::lock_guard lock(registry.mutex);
    factories = registry.factories;
  }
  for (const RegisteredChild& registered : factories) {
    auto child = std::make_shared<Child>(registered.name);
    const bool takes_part = child->log.guard("be made", [&]() -> Result<> {
      child->profiler = registered.factory();
      if (!child->profiler) return Error{ErrorCode::unavailable, "its factory made none"};
      return {};
    }) && child->log.guard("be configured", [&] { return child->profiler->configure(config); });
    (takes_part ? children_ : absent_).push_back(std::move(child));
  }
  is_prepared_ = true;
  if (!children_.empty()) change_listening(children_, true);
  if (client_ == nullptr) return;
  client_log_.guard("prepare", [&]() -> Result<> {
    client_->init_once();
    client_->prepare({config.with_shapes, config.with_memory, config.with_stack, config.with_flops, config.with_modules});
    return {};
  });
}

void Participants::start() {
  for (const auto& child : children_) child->log.guard("start", [&] { return child->profiler->start(); });
  if (client_ == nullptr) return;
  client_log_.guard("start", [&]() -> Result<> {
    client_->start();
    return {};
  });
}

void Participants::want_collection(bool collect) noexcept {
  const std::lock_guard lock(mutex_);
  wanted_ = collect;
}

void Participants::tell_collection() noexcept {
  std::unique_lock lock(mutex_);
  if (is_telling_) return;  // whoever does looks again
  is_telling_ = true;
  while (told_ != wanted_) {
    const bool collect = told_ = wanted_;
    lock.unlock();
    for (const auto& child : children_) {
      child->log.guard("toggle", [&]() -> Result<> {
        child->profiler->toggle(collect);
        return {};
      });
    }
    lock.lock();
  }
  is_telling_ = false;
}

void Participants::stop(Session& session) {
  if (!std::exchange(is_prepared_, false)) return;
  if (client_ != nullptr) {
    client_log_.guard("stop", [&]() -> Result<> {
      client_->stop(session);
      return {};
    });
  }
  if (!children_.empty()) change_listening(children_, false);
  for (const auto& child : children_) child->log.guard("stop", [&] { return child->profiler->stop(); });
}

std::vector<CpuTrace> Participants::process(const ProfileWindow& window) {
  std::vector<CpuTrace> traces;
  for (const auto& child : children_) {
    ParticipantLog& log = child->log;
    ChildProfiler& profiler = *child->profiler;
    CpuTrace own, of_program;
    own.rows = log.report().name;
    log.guard("say what it saw", [&]() -> Result<> {
      own.operations = profiler.process(window);
      return {};
    });
    log.guard("name its rows", [&]() -> Result<> {
      for (ResourceInfo& resource : profiler.resource_infos()) own.threads.push_back({resource.row, std::move(resource.name)});
      return {};
    });
    log.guard("hand over what it recorded", [&]() -> Result<> {
      of_program = profiler.trace_buffer();
      return {};
    });
    log.guard("describe itself", [&]() -> Result<> {
      log.set_metadata(profiler.metadata());
      return {};
    });
    log.guard("describe its devices", [&]() -> Result<> {
      log.set_device_properties(profiler.device_properties());
      return {};
    });
    log.guard("say what went wrong", [&]() -> Result<> {
      log.add_errors(profiler.errors());
      return {};
    });
    for (CpuTrace* trace : {&of_program, &own}) {
      if (!trace->operations.empty()) traces.push_back(std::move(*trace));
    }
  }
  return traces;
}

std::vector<ParticipantReport> Participants::reports() const {
  std::vector<ParticipantReport> reports;
  const auto add = [&](const ParticipantLog& log) {
    ParticipantReport report = log.report();
    if (!is_silent(report)) reports.push_back(std::move(report));
  };
  add(client_log_);
  for (const auto& child : absent_) add(child->log);
  for (const auto& child : children_) add(child->log);
  return reports;
}

void tell_children_of_push(const ExternalId& id) noexcept {
  tell_listening_children("take a number", [&](ChildProfiler& child) { child.push_correlation_id(id); });
}

void tell_children_of_pop(CorrelationFamily family) noexcept {
  tell_listening_children("give a number back", [&](ChildProfiler& child) { child.pop_correlation_id(family); });
}

}  // namespace xpu::profiler
