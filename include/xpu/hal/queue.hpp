#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"

namespace xpu::hal {

class Event;
class Kernel;

/// The index space of a launch, in items. `local` of all zeros is the driver's choice; else a 0 in a dimension that is not used means 1.
/// Dimension 0 is the fastest.
struct Geometry {
  std::uint32_t dimensions = 1;
  std::uint64_t global[3] = {1, 1, 1};
  std::uint64_t local[3] = {0, 0, 0};
  std::uint64_t offset[3] = {0, 0, 0};
};

/// Raw stamps of one operation, in ticks of the device's clock (`Device::clock`). An operation that never ran has start = end = the moment
/// at which it was given up.
struct Ticks {
  std::uint64_t queued = 0, submit = 0, start = 0, end = 0;
};

/// How a timed operation ended.
enum class CompletionStatus : std::uint8_t {
  ok,
  failed,   ///< It failed, or was given up before it ran: the device is lost, or the process exits.
  untimed,  ///< It ended, but the device gave no times.
};
struct Completion {
  std::uint64_t token = 0;
  CompletionStatus status = CompletionStatus::ok;
  Ticks ticks;
};

/// Where a queue delivers its timed operations. The driver calls it from any thread of its choice, also from within the submitting call,
/// with none of its locks held; the sink never blocks, never throws and never calls the driver. It outlives the last delivery, which may
/// come after the queue was destroyed.
class CompletionSink {
 public:
  virtual void complete(const Completion& completion) noexcept = 0;

 protected:
  ~CompletionSink() = default;
};

/// What goes with every submission.
struct Submission {
  /// Not 0: the operation is *timed*, and delivered to the queue's sink exactly once, with this token. A submission that returns an error
  /// is not delivered.
  std::uint64_t token = 0;
  /// The operation is short and waits for nothing that another operation or thread does: the driver may run it on the calling thread.
  bool short_and_independent = false;
};

struct Launch {
  const Kernel* kernel = nullptr;
  const Geometry* geometry = nullptr;    ///< Copied before the call returns, as the arguments are.
  std::span<const std::byte> arguments;  ///< The block that `KernelInfo` describes.
  std::uint32_t local_memory_bytes = 0;  ///< Beside the kernel's own.
};

/// A function that runs on a thread of the host, in its place in the queue's order.
struct HostFunction {
  /// An error becomes the queue's asynchronous error. Runs with `probe::ScopeSuspended`: what it does is work of its own.
  Result<> (*call)(void* user) = nullptr;
  /// Called exactly once, after `call` or when it will never be called, and before the completion is delivered; null when there is nothing
  /// to do. Not called when the submission returns an error.
  void (*drop)(void* user) = nullptr;
  void* user = nullptr;
};

/// An in-order queue of one device: operations begin in the order of submission and each sees the effects of those before it. Queues of one
/// device overlap. All calls are asynchronous unless named `…_blocking`.
///
/// Threads: submission is externally ordered (one caller at a time); everything that submits nothing from any thread at any time. Pointers
/// are those of the same driver's memory, or of the host where `Capabilities::host_memory_access` says so.
///
/// Asynchronous errors: the first failure of an operation stays with the queue, operations behind it are still run (they may depend on
/// nothing of it) unless the device is lost, and the next `synchronize_blocking` returns it once.
///
/// Destroying a queue lets what was submitted finish; it does not wait.
class XPU_EXPORT Queue {
 public:
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  virtual Result<> launch(const Launch& launch, const Submission& submission) = 0;
  /// Ranges do not overlap. The driver finds out where each pointer lies. Memory of the host that is not pinned may be read or written
  /// until the operation ended.
  virtual Result<> copy(void* destination, const void* source, std::size_t bytes, const Submission& submission) = 0;
  /// Repeats the pattern, whose length is 1, 2, 4, 8 or 16 and divides `bytes`; the pattern is copied before the call returns.
  virtual Result<> fill(void* destination, std::span<const std::byte> pattern, std::size_t bytes, const Submission& submission) = 0;
  virtual Result<> host_function(const HostFunction& function, const Submission& submission) = 0;

  /// The event captures this point of the queue: complete when everything submitted before is. Replaces what it captured before; waits that
  /// were submitted keep the old capture. A timed event behind an operation takes the later of that operation's end and the moment of this
  /// call.
  virtual Result<> record(Event& event) = 0;
  /// What is submitted afterwards begins after the point that the event has captured by now. Events of other devices of the driver, too. An
  /// event that never was recorded is complete.
  virtual Result<> wait(const Event& event) = 0;

  /// Whether everything submitted so far has ended. Does not return or clear the asynchronous error.
  virtual Result<bool> query() = 0;
  /// Waits until everything submitted so far has ended; returns the asynchronous error and clears it (a lost device stays lost).
  virtual Result<> synchronize_blocking() = 0;
  /// Whether the calling thread is inside a kernel or host function without whose end this queue may be unable to go on: one of this queue,
  /// or any where no other thread runs operations. The runtime does not wait there for what has not ended.
  virtual bool would_wait_for_itself() const noexcept = 0;

  /// The driver's own queue, which `Device::adopt_queue` takes.
  virtual void* native_handle() const noexcept = 0;

 protected:
  Queue() = default;
};

/// A point of a queue that can be waited for. Threads: `record` and `wait` (of Queue) externally ordered, the rest from any thread.
/// Destroying an event that somebody waits for is allowed.
class XPU_EXPORT Event {
 public:
  virtual ~Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// True also before the first recording.
  virtual Result<bool> query() = 0;
  virtual Result<> synchronize_blocking() = 0;
  /// The tick of the captured point. Requires that it is recorded, complete and timed.
  virtual Result<std::uint64_t> ticks() = 0;
  virtual void* native_handle() const noexcept = 0;

 protected:
  Event() = default;
};

}  // namespace xpu::hal
