#include "trace/operation_filter.hpp"

#include <new>
#include <string>
#include <utility>

namespace xpu::trace {

void IdSet::set(probe::Id id, bool is_in) noexcept {
  const std::size_t block = id / kBlockIds;
  if (block >= kBlocks) return;
  std::atomic<std::uint64_t>* bits = blocks_[block].load(std::memory_order_acquire);
  if (bits == nullptr) {
    if (!is_in) return;
    auto* fresh = new (std::nothrow) std::atomic<std::uint64_t>[kBlockIds / 64]();
    if (fresh == nullptr) return;
    if (blocks_[block].compare_exchange_strong(bits, fresh, std::memory_order_acq_rel)) {
      bits = fresh;
    } else {
      delete[] fresh;
    }
  }
  std::atomic<std::uint64_t>& word = bits[id % kBlockIds / 64];
  const std::uint64_t bit = std::uint64_t{1} << id % 64;
  if (is_in) {
    word.fetch_or(bit, std::memory_order_relaxed);
  } else {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

std::shared_ptr<const regex_t> compile_expression(const char* expression) {
  auto compiled = std::make_unique<regex_t>();
  if (regcomp(compiled.get(), expression, REG_EXTENDED | REG_NOSUB) != 0) return nullptr;
  return std::shared_ptr<const regex_t>(compiled.release(), [](const regex_t* ended) {
    regfree(const_cast<regex_t*>(ended));
    delete ended;
  });
}

bool OperationFilter::set_expression(const char* expression) noexcept {
  set_readers({});
  if (expression == nullptr || expression[0] == '\0') return true;
  try {
    WantedOperations wanted;
    wanted.kernels = compile_expression(expression);
    if (wanted.kernels == nullptr) return false;
    std::vector<WantedOperations> readers;
    readers.push_back(std::move(wanted));
    set_readers(std::move(readers));
    return is_active();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void OperationFilter::set_readers(std::vector<WantedOperations> readers) noexcept {
  is_active_.store(false, std::memory_order_relaxed);
  delete std::exchange(readers_, nullptr);
  if (readers.empty() || std::any_of(readers.begin(), readers.end(), [](const auto& reader) { return reader.wants_all(); })) return;
  readers_ = new (std::nothrow) std::vector<WantedOperations>(std::move(readers));
  // Without memory for it too much is recorded, which whoever reads leaves out.
  is_active_.store(readers_ != nullptr, std::memory_order_relaxed);
}

void OperationFilter::kernel_created(probe::Id kernel, std::string_view name) noexcept {
  if (readers_ == nullptr) return;
  try {
    const std::string text(name);
    const bool is_wanted = std::any_of(readers_->begin(), readers_->end(), [&](const WantedOperations& reader) {
      return reader.kernels == nullptr || regexec(reader.kernels.get(), text.c_str(), 0, nullptr, 0) == 0;
    });
    unwanted_kernels_.set(kernel, !is_wanted);
  } catch (const std::bad_alloc&) {
    unwanted_kernels_.set(kernel, false);
  }
}

void OperationFilter::queue_created(probe::Id queue) noexcept {
  if (readers_ == nullptr) return;
  const bool is_wanted = std::any_of(readers_->begin(), readers_->end(), [&](const WantedOperations& reader) {
    return reader.queues.empty() || std::find(reader.queues.begin(), reader.queues.end(), queue) != reader.queues.end();
  });
  unwanted_queues_.set(queue, !is_wanted);
}

}  // namespace xpu::trace
