#include "drivers/host/operation_fifo.hpp"

#include <utility>

namespace xpu::drivers::host {

BlockPool::~BlockPool() {
  while (free_ != nullptr) delete std::exchange(free_, free_->next);
}

OperationBlock* BlockPool::take() {
  {
    const base::MutexLock lock(mutex_);
    if (free_ != nullptr) {
      OperationBlock* block = std::exchange(free_, free_->next);
      --free_count_;
      block->next = nullptr;
      return block;
    }
  }
  return new OperationBlock;
}

void BlockPool::give_back(OperationBlock* block) noexcept {
  {
    const base::MutexLock lock(mutex_);
    if (free_count_ < kMostKept) {
      block->next = free_;
      free_ = block;
      ++free_count_;
      return;
    }
  }
  delete block;
}

OperationFifo::~OperationFifo() {
  while (oldest_block_ != nullptr) blocks_.give_back(std::exchange(oldest_block_, oldest_block_->next));
}

void* OperationFifo::room(std::size_t bytes) {
  // Behind every operation there is room for a jump.
  if (write_block_ == nullptr || write_offset_ + bytes + sizeof(Operation) > sizeof write_block_->bytes) {
    OperationBlock* block = blocks_.take();
    block->first_index = published_count_.load(std::memory_order_relaxed);
    if (write_block_ == nullptr) {
      oldest_block_ = block;
    } else {
      new (write_block_->bytes + write_offset_) Operation;
      write_block_->next = block;
    }
    write_block_ = block;
    write_offset_ = 0;
  }
  return write_block_->bytes + std::exchange(write_offset_, write_offset_ + bytes);
}

Operation* OperationFifo::claim() noexcept {
  std::uint64_t claimed = claimed_count_.load(std::memory_order_relaxed);
  if (claimed == kTaken || claimed == published_count_.load(std::memory_order_acquire)) return nullptr;
  if (read_block_ == nullptr) {
    const base::MutexLock lock(mutex_);
    read_block_ = oldest_block_;
  }
  Operation* operation = at(read_block_, read_offset_);
  if (operation->kind == OperationKind::jump) {
    OperationBlock* done = read_block_;
    {
      const base::MutexLock lock(mutex_);
      if (claimed_count_.load(std::memory_order_relaxed) == kTaken) return nullptr;  // the jump is part of the rest
      read_block_ = oldest_block_ = done->next;
    }
    read_offset_ = 0;
    blocks_.give_back(done);
    operation = at(read_block_, 0);
  }
  if (!claimed_count_.compare_exchange_strong(claimed, claimed + 1, std::memory_order_seq_cst)) return nullptr;
  read_offset_ += operation->size_bytes;
  return operation;
}

bool OperationFifo::rewind_when_empty() noexcept {
  const std::uint64_t claimed = claimed_count_.load(std::memory_order_relaxed);
  if (claimed == kTaken) return true;
  if (claimed != published_count_.load(std::memory_order_relaxed)) return false;
  if (read_block_ != nullptr) {
    read_offset_ = write_offset_ = 0;
    read_block_->first_index = claimed;
  }
  return true;
}

OperationFifo::Rest OperationFifo::take_rest() noexcept {
  const std::uint64_t claimed = claimed_count_.exchange(kTaken, std::memory_order_seq_cst);
  const std::uint64_t published = published_count_.load(std::memory_order_relaxed);
  if (claimed == kTaken || claimed == published) return {};
  Rest rest{oldest_block_, 0, published - oldest_block_->first_index};
  while (rest.count > published - claimed) rest.next();
  return rest;
}

Operation* OperationFifo::Rest::next() noexcept {
  if (count == 0) return nullptr;
  Operation* operation = at(block, offset);
  if (operation->kind == OperationKind::jump) {
    block = block->next;
    offset = 0;
    operation = at(block, 0);
  }
  --count;
  offset += operation->size_bytes;
  return operation;
}

}  // namespace xpu::drivers::host
