#include "trace/view/view_buffers.hpp"

#include <cstring>
#include <utility>

#include "xpu/trace/view/records.hpp"

namespace xpu::trace::view {
namespace {

// A program with ever new threads must not have a buffer for each that ever was.
constexpr std::size_t kMaxBuffers = 64;

}  // namespace

ViewBuffers::ViewBuffers(ViewSubscriber::BufferRequested requested, ViewSubscriber::BufferCompleted completed)
    : requested_(std::move(requested)), completed_(std::move(completed)) {}

std::optional<ViewBuffers::Buffer> ViewBuffers::request() {
  std::byte* bytes = nullptr;
  std::size_t size = 0;
  ++requested_count_;
  requested_(&bytes, &size);
  const Buffer buffer{bytes, size, 0, 0};
  if (bytes != nullptr && size >= kLargestViewBytes && reinterpret_cast<std::uintptr_t>(bytes) % alignof(std::uint64_t) == 0) return buffer;
  complete(buffer);
  return std::nullopt;
}

void ViewBuffers::complete(const Buffer& buffer) {
  ++completed_count_;
  completed_(buffer.bytes, buffer.size, buffer.used);
}

ResultCode ViewBuffers::request_first() {
  spare_ = request();
  return spare_ ? ResultCode::success : ResultCode::bad_argument;
}

ViewBuffers::Buffer* ViewBuffers::buffer_of(std::uint32_t writer, std::size_t needed) {
  const auto found = by_writer_.find(writer);
  if (found != by_writer_.end()) {
    Buffer& buffer = *found->second;
    if (buffer.size - buffer.used >= needed) {
      by_use_.splice(by_use_.end(), by_use_, found->second);
      return &buffer;
    }
    const Buffer full = buffer;
    by_use_.erase(found->second);
    by_writer_.erase(found);
    complete(full);
  } else if (by_use_.size() >= kMaxBuffers) {
    const Buffer oldest = by_use_.front();
    by_use_.pop_front();
    by_writer_.erase(oldest.writer);
    complete(oldest);
  }
  if (is_refused_) return nullptr;
  std::optional<Buffer> buffer = spare_ ? std::exchange(spare_, std::nullopt) : request();
  if (!buffer) {
    is_refused_ = true;
    return nullptr;
  }
  buffer->writer = writer;
  by_use_.push_back(*buffer);
  by_writer_.emplace(writer, std::prev(by_use_.end()));
  return &by_use_.back();
}

bool ViewBuffers::put(std::uint32_t writer, std::span<const std::byte> view) {
  Buffer* buffer = buffer_of(writer, view.size());
  if (buffer == nullptr) return false;
  std::memcpy(buffer->bytes + buffer->used, view.data(), view.size());
  buffer->used += view.size();
  return true;
}

void ViewBuffers::complete_filled() {
  by_writer_.clear();
  for (const Buffer& buffer : std::exchange(by_use_, {})) complete(buffer);
}

void ViewBuffers::complete_all() {
  complete_filled();
  if (spare_) complete(*std::exchange(spare_, std::nullopt));
}

}  // namespace xpu::trace::view
