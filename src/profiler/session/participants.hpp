#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xpu/profiler/child_profiler.hpp"
#include "xpu/profiler/client.hpp"

namespace xpu::profiler {

/// What one of them said, and what went wrong with it. Thread-safe.
class ParticipantLog {
 public:
  explicit ParticipantLog(std::string name) { report_.name = std::move(name); }

  /// Calls it, whatever it throws. False when it threw or returned an error, which is kept then. `step` as in "it failed to start".
  template <typename Call>
  bool guard(std::string_view step, Call&& call) noexcept {
    try {
      const Result<> result = call();
      if (!result) add_error(step, result.error().message);
      return static_cast<bool>(result);
    } catch (const std::exception& exception) {
      add_error(step, exception.what());
    } catch (...) {
      add_error(step, "an exception of a type that nobody knows");
    }
    return false;
  }
  /// In its own words.
  void add_errors(std::vector<std::string> sentences);
  void set_metadata(std::vector<std::pair<std::string, std::string>> metadata);
  void set_device_properties(std::vector<std::vector<CpuArgument>> devices);
  ParticipantReport report() const;

 private:
  void add_error(std::string_view step, std::string_view what) noexcept;
  void keep(std::string sentence);

  mutable std::mutex mutex_;
  ParticipantReport report_;
  std::size_t more_errors_ = 0;
};

/// Who takes part in one session beside the tracer: its children and the client. All of them are called without a lock. `want_collection`,
/// `tell_collection` and `reports` are for any thread, the rest has one owner.
class Participants {
 public:
  Participants() : client_log_("client") {}
  ~Participants();
  Participants(const Participants&) = delete;
  Participants& operator=(const Participants&) = delete;

  /// Before `prepare`; outlives the participants.
  void set_client(ProfilerClient* client) { client_ = client; }
  /// Makes and configures a child from each factory that there is, and prepares the client. Once.
  void prepare(const Config& config);
  void start();
  /// Whether what begins now is part of the profile: what was wanted last is what children are told last, whoever tells them.
  void want_collection(bool collect) noexcept;
  void tell_collection() noexcept;
  /// The client first: children may record for it. Nothing to do where nobody was prepared, or all were stopped.
  void stop(Session& session);
  /// Asks the children what they have. Once, after `stop`; no empty traces.
  std::vector<CpuTrace> process(const ProfileWindow& window);

  /// Of those who said something.
  std::vector<ParticipantReport> reports() const;

  struct Child {
    explicit Child(std::string name) : log(std::move(name)) {}
    ParticipantLog log;
    std::unique_ptr<ChildProfiler> profiler;
  };

 private:
  ProfilerClient* client_ = nullptr;
  ParticipantLog client_log_;
  bool is_prepared_ = false;
  std::vector<std::shared_ptr<Child>> children_;  // never changed from `prepare` on
  std::vector<std::shared_ptr<Child>> absent_;    // that take no part: for what they said
  std::mutex mutex_;
  bool wanted_ = true, told_ = true, is_telling_ = false;
};

/// Tells the children of all sessions that are under way; costs a look at a number where there are none.
void tell_children_of_push(const ExternalId& id) noexcept;
void tell_children_of_pop(CorrelationFamily family) noexcept;

}  // namespace xpu::profiler
