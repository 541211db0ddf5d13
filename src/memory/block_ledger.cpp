#include "memory/block_ledger.hpp"

#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <utility>

#include "base/log.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/base/text.hpp"

namespace xpu::memory {

void BlockLedger::start(const CheckOptions& options) {
  CheckOptions changed = options;  // and then what it was: foreign destructors run without the lock
  const base::MutexLock lock(mutex_);
  std::swap(changed, options_);
  live_.clear();
  freed_.clear();
  order_.clear();
  is_on_.store(true, std::memory_order_relaxed);
}

void BlockLedger::stop() {
  CheckOptions old;
  const base::MutexLock lock(mutex_);
  std::swap(old, options_);
  live_.clear();
  freed_.clear();
  order_.clear();
  is_on_.store(false, std::memory_order_relaxed);
}

StackId BlockLedger::record_wanted_stack() const {
  std::shared_ptr<StackRecorder> stacks;
  {
    const base::MutexLock lock(mutex_);
    stacks = options_.stacks;
  }
  return stacks == nullptr ? 0 : stacks->record();
}

std::vector<StackRecorder::Frame> BlockLedger::frames(StackId stack) const {
  std::shared_ptr<StackRecorder> stacks;
  {
    const base::MutexLock lock(mutex_);
    stacks = options_.stacks;
  }
  return stacks == nullptr ? std::vector<StackRecorder::Frame>() : stacks->frames(stack);
}

void BlockLedger::note_taken(NotedBlock block) {
  block.allocated_ns = now_ns();
  const base::MutexLock lock(mutex_);
  if (!is_on()) return;
  remove_pieces(block.begin, block.begin + block.bytes);
  live_[block.begin] = block;
}

void BlockLedger::note_freed(NotedBlock block, StackId freed_at) {
  const base::MutexLock lock(mutex_);
  if (!is_on()) return;
  if (const auto known = live_.find(block.begin); known != live_.end()) {
    block = known->second;
    live_.erase(known);
  }
  block.freed_at = freed_at;
  add_piece(block.begin, {block.begin + block.bytes, ++last_number_, block});
  while (freed_.size() > options_.max_freed_blocks) {
    const auto oldest = freed_.find(order_.front().begin);
    if (oldest != freed_.end() && oldest->second.number == order_.front().number) freed_.erase(oldest);
    order_.pop_front();
  }
  // Entries of what is gone are dropped when they are most of it, so that they cost nothing much.
  if (order_.size() <= 2 * freed_.size() + 64) return;
  std::deque<Freed> kept;
  for (const Freed& entry : order_) {
    const auto piece = freed_.find(entry.begin);
    if (piece != freed_.end() && piece->second.number == entry.number) kept.push_back(entry);
  }
  order_ = std::move(kept);
}

void BlockLedger::add_piece(std::uint64_t begin, const Piece& piece) {
  freed_[begin] = piece;
  order_.push_back({begin, piece.number});
}

void BlockLedger::remove_pieces(std::uint64_t begin, std::uint64_t end) {
  auto piece = freed_.upper_bound(begin);
  if (piece != freed_.begin()) --piece;
  while (piece != freed_.end() && piece->first < end) {
    if (piece->second.end <= begin) {
      ++piece;
      continue;
    }
    const std::uint64_t piece_begin = piece->first;
    const Piece old = piece->second;
    piece = freed_.erase(piece);
    if (piece_begin < begin) add_piece(piece_begin, {begin, old.number, old.block});
    if (old.end > end) add_piece(end, old);
  }
}

std::optional<NotedBlock> BlockLedger::find_freed(std::uint64_t address) const {
  const base::MutexLock lock(mutex_);
  const auto after = freed_.upper_bound(address);
  if (after == freed_.begin()) return std::nullopt;
  const Piece& piece = std::prev(after)->second;
  if (address >= piece.end) return std::nullopt;
  return piece.block;
}

std::optional<NotedBlock> BlockLedger::find_live(std::uint64_t begin) const {
  const base::MutexLock lock(mutex_);
  const auto found = live_.find(begin);
  if (found == live_.end()) return std::nullopt;
  return found->second;
}

std::vector<NotedBlock> BlockLedger::live() const {
  const base::MutexLock lock(mutex_);
  std::vector<NotedBlock> blocks;
  blocks.reserve(live_.size());
  for (const auto& [begin, block] : live_) blocks.push_back(block);
  return blocks;
}

std::string BlockLedger::describe(const NotedBlock& block) const {
  std::string text = fmt::format("{} bytes of stream {} at {:#x}", with_thousands(block.requested_bytes), block.stream, block.begin);
  if (block.allocated_at != 0) text += "\n  allocated at:" + stack_text(frames(block.allocated_at));
  if (block.freed_at != 0) text += "\n  freed at:" + stack_text(frames(block.freed_at));
  return text;
}

void BlockLedger::report(const std::string& finding) const {
  std::function<void(const std::string&)> on_misuse;
  {
    const base::MutexLock lock(mutex_);
    on_misuse = options_.on_misuse;
  }
  if (on_misuse) {
    on_misuse(finding);
  } else {
    XPU_LOG_ERROR("memory", "{}", finding);
  }
}

void BlockLedger::report_use_of_freed(const void* address, std::int64_t stream) const {
  if (!is_on()) return;
  const std::optional<NotedBlock> block = find_freed(reinterpret_cast<std::uintptr_t>(address));
  if (!block) return;
  report(fmt::format("stream {} is said to use {}, which lies in a block that was freed: {}", stream, address, describe(*block)));
}

std::string stack_text(const std::vector<StackRecorder::Frame>& frames) {
  std::string text;
  for (const StackRecorder::Frame& frame : frames) {
    text += fmt::format("\n    {} ({}", frame.name.empty() ? "?" : frame.name, frame.file.empty() ? "?" : frame.file);
    text += frame.line == 0 ? ")" : fmt::format(":{})", frame.line);
  }
  return text;
}

}  // namespace xpu::memory
