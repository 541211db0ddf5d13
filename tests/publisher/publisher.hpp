#pragma once

#include <memory>
#include <string>

namespace xpu::publisher_tests {

/// A queue of the publisher under test that nobody has used before. One thread at a time, but where a call says otherwise.
class PublishedQueue {
 public:
  virtual ~PublishedQueue() = default;
  PublishedQueue(const PublishedQueue&) = delete;
  PublishedQueue& operator=(const PublishedQueue&) = delete;

  /// Submits the kernel "tiny" over one item. From any number of threads.
  virtual void launch() = 0;
  /// Gives the device what was submitted, so that it ends without another call; does not wait.
  virtual void flush() = 0;
  virtual void finish() = 0;

 protected:
  PublishedQueue() = default;
};

/// What the rules are tested on: each program of this suite has one.
class Publisher {
 public:
  virtual ~Publisher() = default;
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  virtual std::unique_ptr<PublishedQueue> new_queue() = 0;
  /// Of the call that `launch` makes, as it is published.
  virtual std::string launch_api() const = 0;
  /// Whether the call that submits is published also where its work has another source (`probe::Scope`).
  virtual bool publishes_calls_inside_scopes() const = 0;

 protected:
  Publisher() = default;
};

std::unique_ptr<Publisher> make_publisher();

}  // namespace xpu::publisher_tests
