#include "xpu/memory/pluggable_allocator.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "base/mutex.hpp"
#include "memory/call_statistics.hpp"

namespace xpu::memory {

class PluggableAllocator::State {
 public:
  struct Block {
    std::size_t bytes = 0;
    void* queue = nullptr;
  };

  State(const PluggableFunctions& those, int number) noexcept : functions(those), device(number) {}

  const PluggableFunctions functions;
  const int device;
  CallStatistics statistics;
  base::Mutex mutex;
  std::unordered_map<void*, Block> live XPU_GUARDED_BY(mutex);
};

PluggableAllocator::PluggableAllocator(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
PluggableAllocator::~PluggableAllocator() = default;

Result<std::unique_ptr<PluggableAllocator>> PluggableAllocator::create(const PluggableFunctions& functions, int device) {
  if (functions.allocate == nullptr || functions.free == nullptr) {
    return Error{ErrorCode::invalid_argument, "a pluggable allocator needs a function that allocates and one that frees"};
  }
  return std::unique_ptr<PluggableAllocator>(new PluggableAllocator(std::make_unique<State>(functions, device)));
}

Result<std::unique_ptr<PluggableAllocator>> PluggableAllocator::load(const std::string& library, const std::string& allocate_symbol,
                                                                     const std::string& free_symbol, int device) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error{ErrorCode::not_found, dlerror()};
  PluggableFunctions functions;
  functions.allocate = reinterpret_cast<decltype(functions.allocate)>(dlsym(handle, allocate_symbol.c_str()));
  functions.free = reinterpret_cast<decltype(functions.free)>(dlsym(handle, free_symbol.c_str()));
  if (functions.allocate == nullptr || functions.free == nullptr) {
    dlclose(handle);
    return Error{ErrorCode::not_found, "Failed to load allocator symbols from the shared library."};
  }
  return create(functions, device);
}

namespace {

void* queue_of(const StreamRef& stream) { return stream.native_queue != nullptr ? stream.native_queue : stream.queue; }

}  // namespace

Result<void*> PluggableAllocator::allocate(std::size_t bytes, const StreamRef& stream) {
  if (bytes == 0) return static_cast<void*>(nullptr);
  void* const address = state_->functions.allocate(bytes, state_->device, queue_of(stream));
  if (address == nullptr) {
    state_->statistics.note_out_of_memory();
    return Error{ErrorCode::out_of_device_memory,
                 fmt::format("the pluggable allocator has no {} bytes for device {}", bytes, state_->device)};
  }
  state_->statistics.note_taken(bytes, bytes);
  state_->statistics.note_allocated(bytes, bytes);
  const base::MutexLock lock(state_->mutex);
  state_->live[address] = {bytes, queue_of(stream)};
  return address;
}

Result<> PluggableAllocator::free(void* address) {
  if (address == nullptr) return {};
  State::Block block;
  {
    // Before the function gets it: afterwards the address may be another block's.
    const base::MutexLock lock(state_->mutex);
    const auto found = state_->live.find(address);
    if (found == state_->live.end()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("invalid device pointer: {} is not the begin of a block, or was freed before", address)};
    }
    block = found->second;
    state_->live.erase(found);
  }
  state_->functions.free(address, block.bytes, state_->device, block.queue);
  state_->statistics.note_freed(block.bytes, block.bytes);
  state_->statistics.note_completed(block.bytes);
  state_->statistics.note_given_back(block.bytes, block.bytes);
  return {};
}

bool PluggableAllocator::record_use(void* address, const StreamRef& stream) {
  {
    const base::MutexLock lock(state_->mutex);
    if (state_->live.find(address) == state_->live.end()) return false;
  }
  if (state_->functions.record_use != nullptr) state_->functions.record_use(address, queue_of(stream));
  return true;
}

DeviceStatistics PluggableAllocator::statistics() const { return state_->statistics.value(); }
void PluggableAllocator::reset_peak_statistics() { state_->statistics.reset_peaks(); }
void PluggableAllocator::reset_accumulated_statistics() { state_->statistics.reset_accumulated(); }

}  // namespace xpu::memory
