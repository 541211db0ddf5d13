#pragma once

#include <memory>
#include <span>
#include <string>

#include "xpu/memory/config.hpp"
#include "xpu/memory/history.hpp"
#include "xpu/memory/snapshot.hpp"

namespace xpu::memory {

/// What a file of snapshots says of one allocator.
struct SnapshotFile {
  int device = 0;
  Snapshot snapshot;
  History history;
  std::shared_ptr<const StackRecorder> stacks;  ///< Null: there are no frames.
  Config config;
  bool is_expandable = false;
};

/// As a pickled dictionary with the keys of PyTorch's `torch.cuda.memory._snapshot`: what several allocators hold, each with its device.
/// The histories of those of one device are merged by time; the settings are those of the first.
Result<> write_snapshots(std::span<const SnapshotFile> allocators, const std::string& path);

}  // namespace xpu::memory
