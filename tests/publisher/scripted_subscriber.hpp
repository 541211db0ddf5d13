#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/probe.hpp"

namespace xpu::publisher_tests {

/// An operation as its publisher told about it, texts resolved.
struct SeenOperation {
  probe::OperationId id = 0;
  std::string api;
  probe::Command command = probe::Command::other;
  std::uint32_t flags = 0;
  probe::Id queue = 0, kernel = 0;
  std::uint64_t enter_ns = 0;
  std::optional<probe::Geometry> geometry;
  std::optional<probe::CopyDetail> copy;  ///< Pointers in it are null; see `rectangle` and `pattern`.
  std::optional<probe::Rectangle> rectangle;
  std::string pattern;
  std::optional<probe::Submission> submission;
  std::optional<probe::Completion> completion;
  std::optional<probe::LossCause> lost;
};

struct SeenCall {
  std::string api;
  std::int32_t result = 0;
};
struct SeenObject {
  std::string name;
  probe::Id device = 0, context = 0;
  std::uint32_t local_bytes = 0, published_before = 0;
  std::uint64_t properties = 0, native = 0;
  std::int32_t priority = 0;
  bool is_out_of_order = false;
  bool is_destroyed = false;
};

/// The one subscriber of this process: wants everything, remembers everything, and checks what holds for every publisher, whatever it
/// publishes.
class ScriptedSubscriber {
 public:
  /// Subscribes at the first call.
  static ScriptedSubscriber& get();

  /// Forgets operations, calls, waits, memory events and marks; objects stay.
  void forget_events();
  void set_wanted(std::uint32_t wanted) { table_.wanted = wanted; }
  /// `begin` answers 0 while this says so.
  void refuse_operations(bool refuse);
  /// `submitted` answers false while this says so.
  void drop_submissions(bool drop);
  /// Nobody listens from here on; what is pending still ends here. Objects are forgotten.
  void leave();
  /// Subscribes again: publishers describe what is alive.
  void come_back();

  std::vector<SeenOperation> operations() const;
  std::vector<SeenCall> calls() const;
  std::vector<std::string> calls_begun() const;
  std::vector<std::string> waits() const;
  std::vector<probe::Wait> wait_details() const;
  std::vector<probe::MemoryEvent> memory_events() const;
  std::vector<std::string> marks() const;
  std::vector<probe::ClockReading> readings() const;
  std::map<probe::Id, SeenObject> objects(probe::ObjectKind kind) const;
  /// A count that grows with every object event.
  std::size_t object_events() const;

  /// Waits until every operation that the driver accepted has ended or was lost; false after `timeout_ms`.
  bool wait_for_completions(int timeout_ms = 5'000) const;

  /// Sentences about broken rules, of all publications since the process began; empty when there are none. For when no call is under way.
  std::vector<std::string> problems() const;

 private:
  ScriptedSubscriber();

  probe::OperationId begin(const probe::Operation& operation);
  bool submitted(probe::OperationId id, const probe::Operation& operation, const probe::Submission& submission);
  void complete(probe::OperationId id, const probe::Completion& completion);
  void lost(const probe::Loss& loss);
  void memory(const probe::MemoryEvent& event);
  void object(probe::ObjectKind kind, probe::Id id, probe::ObjectEvent event, const void* description);
  void describe(SeenObject& seen, probe::ObjectKind kind, const void* description);
  std::vector<std::string> gaps_in_sequences() const;
  void complain(std::string sentence) { problems_.push_back(std::move(sentence)); }

  probe::Subscriber table_;
  mutable std::mutex mutex_;
  std::map<probe::OperationId, SeenOperation> operations_;
  std::set<probe::OperationId> forgotten_;
  std::map<probe::Id, std::set<std::uint32_t>> sequences_;
  std::map<std::uint64_t, std::uint64_t> living_memory_;  // bytes by address
  std::map<probe::ObjectKind, std::map<probe::Id, SeenObject>> objects_;
  std::vector<SeenCall> calls_;
  std::vector<std::string> calls_begun_, waits_, marks_;
  std::vector<probe::Wait> wait_details_;
  std::vector<probe::MemoryEvent> memory_events_;
  std::vector<probe::ClockReading> readings_;
  std::vector<std::string> problems_;
  std::size_t object_events_ = 0;
  probe::OperationId last_id_ = 0;
  bool refuses_ = false, drops_ = false, has_been_away_ = false;
};

}  // namespace xpu::publisher_tests
