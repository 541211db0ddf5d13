#pragma once

#include <memory>
#include <string>

#include "xpu/memory/config.hpp"
#include "xpu/memory/history.hpp"
#include "xpu/memory/snapshot.hpp"

namespace xpu::memory {

/// What a file of `write_snapshot` is made of.
struct SnapshotFile {
  int device = 0;
  Snapshot snapshot;
  History history;
  std::shared_ptr<const StackRecorder> stacks;  ///< Null: there are no frames.
  Config config;
  bool is_expandable = false;
};

/// As a pickled dictionary with the keys of PyTorch's `torch.cuda.memory._snapshot`.
Result<> write_snapshot(const SnapshotFile& file, const std::string& path);

}  // namespace xpu::memory
