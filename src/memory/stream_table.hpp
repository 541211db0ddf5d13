#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "base/mutex.hpp"
#include "xpu/memory/stream_ref.hpp"

namespace xpu::memory {

/// A small number for a stream: the place of its bit in Block::uses.
using StreamIndex = std::uint32_t;

/// The streams that ever used memory of another one, numbered as they came. Thread-safe.
class StreamTable {
 public:
  StreamIndex index_of(const StreamRef& stream) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    const auto [found, is_new] = indices_.try_emplace(stream.id, static_cast<StreamIndex>(streams_.size()));
    if (is_new) {
      streams_.push_back(stream);
    } else {
      streams_[found->second].queue = stream.queue;
    }
    return found->second;
  }
  /// By the number of a stream that is in the table.
  StreamRef named(std::int64_t id) const XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return streams_[indices_.at(id)];
  }
  StreamRef at(StreamIndex index) const XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return streams_[index];
  }

 private:
  mutable base::Mutex mutex_;
  std::map<std::int64_t, StreamIndex> indices_ XPU_GUARDED_BY(mutex_);
  std::deque<StreamRef> streams_ XPU_GUARDED_BY(mutex_);
};

}  // namespace xpu::memory
