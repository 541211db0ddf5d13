#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/probe.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/profiler/child_profiler.hpp"
#include "xpu/profiler/client.hpp"
#include "xpu/profiler/session.hpp"

/// Who takes part in the sessions of a test, and notes what it is told.
namespace xpu::profiler::test_support {

/// What was called, of all participants of a test. Thread-safe.
class CallLog {
 public:
  void add(const std::string& call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> calls_;
};

class LoggingClient final : public ProfilerClient {
 public:
  explicit LoggingClient(CallLog& log) : log_(log) {}
  void prepare(const Options& options) override {
    log_.add("client prepare");
    prepared = options;
  }
  void start() override {
    log_.add("client start");
    if (throws_at_start) throw std::runtime_error("the framework is busy");
  }
  void stop(Session& session) override {
    log_.add("client stop");
    CpuTrace trace;
    trace.operations.emplace_back().name = "framework op";
    trace_taken = static_cast<bool>(session.transfer_cpu_trace(std::move(trace)));
  }

  Options prepared;
  bool throws_at_start = false, trace_taken = false;

 protected:
  void init() override { log_.add("client init"); }

 private:
  CallLog& log_;
};

/// A child that notes what it is asked, and fails where it is told to.
class LoggingChild : public ChildProfiler {
 public:
  LoggingChild(CallLog& log, std::string name, std::string fails_at) : log_(log), name_(std::move(name)), fails_at_(std::move(fails_at)) {}
  ~LoggingChild() override { log_.add(name_ + " ends"); }

  Result<> configure(const Config& config) override { return note("configure " + std::to_string(config.max_buffer_mib)); }
  Result<> start() override { return note("start"); }
  void toggle(bool collect) override { static_cast<void>(note(collect ? "toggle on" : "toggle off")); }
  void push_correlation_id(const ExternalId& id) override {
    static_cast<void>(note("push " + std::to_string(id.id) + " of family " + std::to_string(id.family)));
  }
  void pop_correlation_id(CorrelationFamily family) override {
    static_cast<void>(note("pop of family " + std::to_string(static_cast<std::uint32_t>(family))));
  }
  Result<> stop() override { return note("stop"); }
  std::vector<CpuOperation> process(const ProfileWindow& window) override {
    static_cast<void>(note("process"));
    CpuOperation operation;
    operation.name = name_ + " work";
    operation.start_ns = window.begin_ns;
    operation.end_ns = window.end_ns;
    operation.thread = 3;
    operation.external_id = ExternalId{1, static_cast<std::uint32_t>(kOperationFamily)};
    return {operation};
  }
  std::vector<ResourceInfo> resource_infos() override {
    static_cast<void>(note("resource_infos"));
    return {{3, "unit three"}};
  }
  CpuTrace trace_buffer() override {
    static_cast<void>(note("trace_buffer"));
    CpuTrace trace;
    trace.operations.emplace_back().name = name_ + " of the program";
    return trace;
  }
  std::vector<std::pair<std::string, std::string>> metadata() override {
    static_cast<void>(note("metadata"));
    return {{"version", "7"}};
  }
  std::vector<std::vector<CpuArgument>> device_properties() override {
    static_cast<void>(note("device_properties"));
    return {{{"id", std::int64_t{0}}, {"name", name_ + " device"}}};
  }
  std::vector<std::string> errors() override {
    static_cast<void>(note("errors"));
    return reports_an_error ? std::vector<std::string>{"a unit was hot"} : std::vector<std::string>{};
  }

  bool reports_an_error = false;

 private:
  Result<> note(const std::string& call) {
    log_.add(name_ + ' ' + call);
    if (fails_at_.empty() || !call.starts_with(fails_at_)) return {};
    // Of the two ways to fail where there are two, each child of a test takes one.
    if (name_ == "polite") return Error{ErrorCode::unavailable, "no more units"};
    throw std::runtime_error("no more units");
  }
  CallLog& log_;
  const std::string name_, fails_at_;
};

/// Takes back what it registered.
class ParticipantsFixture : public testing::Test {
 protected:
  ParticipantsFixture() : publisher_(TestPublisher::instance()) { EXPECT_EQ(probe::subscriber(), nullptr); }
  ~ParticipantsFixture() override {
    for (const std::string& name : registered_) EXPECT_TRUE(unregister_child_profiler(name));
    EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still";
  }

  void add_child(const std::string& name, const std::string& fails_at = "", bool reports_an_error = false) {
    ASSERT_TRUE(register_child_profiler(name, [this, name, fails_at, reports_an_error] {
      auto child = std::make_unique<LoggingChild>(log_, name, fails_at);
      child->reports_an_error = reports_an_error;
      return child;
    }));
    registered_.push_back(name);
  }
  static CollectingSink collect(Session& session) {
    CollectingSink sink;
    EXPECT_TRUE(session.run({&sink}));
    return sink;
  }
  /// From the start to the first run, with one kernel.
  CollectingSink profile_once(Session& session) {
    EXPECT_TRUE(session.start());
    publisher_.run();
    EXPECT_TRUE(session.stop());
    return collect(session);
  }
  static std::vector<std::string> errors_of(const Session& session) {
    std::vector<std::string> errors;
    for (const ParticipantReport& participant : session.participants()) {
      for (const std::string& error : participant.errors) errors.push_back(participant.name + ": " + error);
    }
    return errors;
  }

  TestPublisher& publisher_;
  CallLog log_;
  std::vector<std::string> registered_;
};

}  // namespace xpu::profiler::test_support
