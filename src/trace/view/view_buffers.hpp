#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>

#include "xpu/trace/view/view_subscriber.hpp"

namespace xpu::trace::view {

/// The buffers of one pair of callbacks: asked for, filled thread by thread, completed exactly once. One owner at a time.
class ViewBuffers {
 public:
  ViewBuffers(ViewSubscriber::BufferRequested requested, ViewSubscriber::BufferCompleted completed);
  /// `complete_all` must have been called.
  ~ViewBuffers() = default;
  ViewBuffers(const ViewBuffers&) = delete;
  ViewBuffers& operator=(const ViewBuffers&) = delete;

  /// Asks for the first buffer. bad_argument: there is none that can be used; it was completed.
  ResultCode request_first();
  /// Into the buffer of this writer. False, and the view is dropped: there is no buffer. The subscriber is asked again after `begin_round`.
  bool put(std::uint32_t writer, std::span<const std::byte> view);
  void begin_round() noexcept { is_refused_ = false; }
  /// Those with something in them.
  void complete_filled();
  void complete_all();

  std::uint64_t requested() const noexcept { return requested_count_; }
  std::uint64_t completed() const noexcept { return completed_count_; }

 private:
  struct Buffer {
    std::byte* bytes;
    std::size_t size, used;
    std::uint32_t writer;
  };
  std::optional<Buffer> request();
  void complete(const Buffer& buffer);
  Buffer* buffer_of(std::uint32_t writer, std::size_t needed);

  const ViewSubscriber::BufferRequested requested_;
  const ViewSubscriber::BufferCompleted completed_;
  std::optional<Buffer> spare_;
  std::list<Buffer> by_use_;  // the least recently used first
  std::unordered_map<std::uint32_t, std::list<Buffer>::iterator> by_writer_;
  bool is_refused_ = false;
  std::uint64_t requested_count_ = 0, completed_count_ = 0;
};

}  // namespace xpu::trace::view
