#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/memory/stream_ref.hpp"
#include "xpu/runtime/device.hpp"
#include "xpu/runtime/event.hpp"
#include "xpu/runtime/module.hpp"

namespace xpu {

namespace runtime {
struct StreamState;
}

/// Names a stream of one device: `index << 4 | type << 1 | 1` for those of the pools (type 0 low, 1 normal, 2 high), the address of the
/// native queue for external ones (always even), 0 for the default stream.
using StreamId = std::int64_t;

/// What a host function is, for whoever looks at a recording.
struct OperationInfo {
  std::string_view name = "host function";
  /// It is short and waits for nothing that another operation or thread does: it may run on the submitting thread.
  bool short_and_independent = false;
  const Geometry* geometry = nullptr;  ///< Of what it works on, if it has one.
};

/// A submitted operation.
struct Operation {
  std::uint64_t id = 0;        ///< As in a recording; 0 when nobody records.
  std::uint64_t sequence = 0;  ///< Its number on its stream, from 1.
};

/// An in-order queue of work for one device. A plain value that names it; the streams of the pools live for ever. Thread-safe.
///
/// All calls are asynchronous but `synchronize`, `run_blocking` and `copy_blocking`, which return `failed_precondition` from within an
/// operation that they would wait for. The first failure of an operation stays with the stream and is returned by the next synchronisation.
/// Every call returns `unavailable` in a forked child of an initialised process and once the process exits.
class XPU_EXPORT Stream {
 public:
  static constexpr int kStreamsPerPool = 32;
  struct PriorityRange {
    int least = 1, greatest = -1;
  };
  static constexpr PriorityRange priority_range() noexcept { return {}; }

  /// The next of the pool's 32 streams of this priority, created when it is first asked for; request 33 gets the stream of request 1. A
  /// priority outside the range is clamped. `device` negative: the current one.
  static Result<Stream> from_pool(int priority = 0, int device = -1);
  /// The device's default stream, which is every thread's current stream at first. It never comes from the pool before its turn (the 32nd).
  static Result<Stream> default_stream(int device = -1);
  static Result<Stream> current(int device = -1);
  /// Any stream that exists, or could, by its id; 0 is the default stream. Error invalid_argument: "invalid StreamId: N", or "Unrecognized
  /// stream …".
  static Result<Stream> from_id(StreamId id, int device);
  /// A stream round a native queue of the device's driver, which must stay while the stream is used; not owned. The same pointer gives the
  /// same stream. Errors (invalid_argument): it is null, not in-order, of another context, of another device.
  static Result<Stream> from_external(void* native_queue, int device);

  StreamId id() const noexcept;
  int device() const noexcept;
  /// -1 high, 0 normal, 1 low; 0 for an external stream whose driver does not tell.
  int priority() const noexcept;
  bool is_external() const noexcept;
  void* native_handle() const noexcept;
  /// The stream as allocators know it.
  memory::StreamRef memory_ref() const noexcept;
  /// Whether work submitted now becomes part of a graph.
  bool is_capturing() const noexcept { return false; }

  /// Makes it, and its device, current for the calling thread.
  Result<> make_current() const;

  Result<bool> query() const;
  Result<> synchronize() const;
  Result<> wait(const Event& event) const { return event.wait(*this); }
  /// Waits for everything that was submitted to the other stream until now.
  Result<> wait(const Stream& other) const;
  Result<> record(Event& event) const { return event.record(*this); }

  /// Error invalid_argument when number or types of the arguments are not the kernel's (it names the kernel, the argument and both types),
  /// when the geometry does not fit the device, or when the kernel is of another device.
  template <typename... Arguments>
  Result<> launch(const Kernel& kernel, const Geometry& geometry, const Arguments&... arguments) const {
    const ArgumentValue values[sizeof...(Arguments) + 1] = {ArgumentValue::of(arguments)...};
    return launch_values(kernel, geometry, {values, sizeof...(Arguments)});
  }
  Result<> launch_values(const Kernel& kernel, const Geometry& geometry, std::span<const ArgumentValue> arguments,
                         std::uint32_t local_memory_bytes = 0) const;

  /// Host memory that is not pinned must stay as it is until the copy has ended.
  Result<> copy(void* destination, const void* source, std::size_t bytes) const;
  Result<> copy_blocking(void* destination, const void* source, std::size_t bytes) const;
  /// Repeats the value, of 1, 2, 4, 8 or 16 bytes.
  template <typename T>
  Result<> fill(T* destination, const std::type_identity_t<T>& value, std::size_t count) const {
    static_assert(std::is_trivially_copyable_v<T> &&
                  (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16));
    return fill_bytes(destination, std::as_bytes(std::span(&value, 1)), count * sizeof(T));
  }
  Result<> fill_bytes(void* destination, std::span<const std::byte> pattern, std::size_t bytes) const;

  /// Runs `function` on a thread of the host, in its place in the stream, as an operation that is recorded like a kernel. It returns
  /// nothing or a Result<>; an error, or an exception that it lets out, becomes the stream's asynchronous error.
  template <typename Function>
  Result<Operation> run(const OperationInfo& info, Function&& function) const {
    using Held = std::decay_t<Function>;
    hal::HostFunction held;
    held.user = new Held(std::forward<Function>(function));
    held.call = [](void* user) -> Result<> { return call_guarded(*static_cast<Held*>(user)); };
    held.drop = [](void* user) { delete static_cast<Held*>(user); };
    return run_held(info, held);
  }
  /// The same, but returns after it ran: what the function returned, or its exception, comes out here and is no error of the stream. It may
  /// run on this thread, which then submits to the stream alone: the function must not wait for another thread's submission to it.
  template <typename Function>
  Result<Operation> run_blocking(const OperationInfo& info, Function&& function) const {
    struct Frame {
      std::remove_reference_t<Function>* function;
      Result<> outcome;
      std::exception_ptr thrown;
    } frame{&function, {}, nullptr};
    hal::HostFunction held;
    held.user = &frame;
    held.call = [](void* user) -> Result<> {
      auto& called = *static_cast<Frame*>(user);
      try {
        called.outcome = call_plain(*called.function);
      } catch (...) {
        called.thrown = std::current_exception();
      }
      return {};
    };
    Result<Operation> ran = run_held_blocking(info, held);
    if (frame.thrown != nullptr) std::rethrow_exception(frame.thrown);
    if (ran && !frame.outcome) return std::move(frame.outcome).error();
    return ran;
  }

  bool operator==(const Stream&) const = default;

 private:
  friend class Buffer;
  friend class Event;
  friend class ExternalStream;
  friend class StreamGuard;
  explicit Stream(runtime::StreamState* state) noexcept : state_(state) {}

  Result<Operation> run_held(const OperationInfo& info, const hal::HostFunction& function) const;
  Result<Operation> run_held_blocking(const OperationInfo& info, const hal::HostFunction& function) const;
  static Error error_of_current_exception();

  template <typename Function>
  static Result<> call_plain(Function& function) {
    if constexpr (std::is_void_v<std::invoke_result_t<Function&>>) {
      function();
      return {};
    } else {
      return function();
    }
  }
  template <typename Function>
  static Result<> call_guarded(Function& function) {
    try {
      return call_plain(function);
    } catch (...) {
      return error_of_current_exception();
    }
  }

  runtime::StreamState* state_;
};

/// A stream round a native queue for as long as this lives: at its end the runtime lets the queue go (it waits for its work first) and the
/// stream is refused. Movable, one owner.
class XPU_EXPORT ExternalStream {
 public:
  static Result<ExternalStream> wrap(void* native_queue, int device);
  ~ExternalStream();
  ExternalStream(ExternalStream&& other) noexcept : stream_(std::exchange(other.stream_, std::nullopt)) {}
  ExternalStream(const ExternalStream&) = delete;
  ExternalStream& operator=(const ExternalStream&) = delete;
  ExternalStream& operator=(ExternalStream&&) = delete;

  const Stream& stream() const noexcept { return *stream_; }

 private:
  explicit ExternalStream(const Stream& stream) noexcept : stream_(stream) {}
  std::optional<Stream> stream_;
};

/// Makes a stream and its device current and puts back what was current on the stream's device, and the device, at its end. Nests. One
/// owner, on one thread.
class XPU_EXPORT StreamGuard {
 public:
  static Result<StreamGuard> make(const Stream& stream);
  ~StreamGuard();
  StreamGuard(StreamGuard&& other) noexcept;
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;
  StreamGuard& operator=(StreamGuard&&) = delete;

  const Stream& original_stream() const noexcept { return original_stream_; }
  int original_device() const noexcept { return original_device_; }

 private:
  StreamGuard(const Stream& original_stream, int original_device) noexcept
      : original_stream_(original_stream), original_device_(original_device) {}
  Stream original_stream_;
  int original_device_;  // -1: moved from
};

}  // namespace xpu
