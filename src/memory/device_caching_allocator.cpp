#include "xpu/memory/device_caching_allocator.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/probe.hpp"
#include "memory/device_allocator.hpp"
#include "memory/device_memory.hpp"

namespace xpu::memory {

AllocationListener::~AllocationListener() = default;

namespace {

bool is_profiled() noexcept { return probe::subscriber() != nullptr; }

}  // namespace

DeviceCachingAllocator::DeviceCachingAllocator(std::unique_ptr<DeviceAllocator> allocator) noexcept : allocator_(std::move(allocator)) {}
DeviceCachingAllocator::~DeviceCachingAllocator() = default;
DevicePool::~DevicePool() {
  if (!allocator_.is_closed()) allocator_.release_pool(slot_);
}

Result<std::unique_ptr<DeviceCachingAllocator>> DeviceCachingAllocator::create(hal::MemoryProvider& memory, hal::QueueProgress& progress,
                                                                               const Config& config, int device) {
  XPU_TRY(check_config(config));
  XPU_TRY_ASSIGN(const hal::MemoryInfo info, memory.info());
  bool is_expandable = false;
  if (allows_expandable_segments(config)) {
    const Result<> probed = probe_mapping(memory);
    is_expandable = probed.has_value();
    if (!probed && config.expandable_segments.value_or(false)) {
      return Error{ErrorCode::unsupported, "expandable_segments:True is not possible here: " + probed.error().message};
    }
  }
  auto allocator = std::make_unique<DeviceAllocator>(memory, progress, info.total_bytes, config, is_expandable, device);
  XPU_TRY(allocator->initialize());
  return std::unique_ptr<DeviceCachingAllocator>(new DeviceCachingAllocator(std::move(allocator)));
}

Result<void*> DeviceCachingAllocator::allocate(std::size_t bytes, const StreamRef& stream) {
  if (is_profiled()) [[unlikely]]
    return tell(allocator_->allocate(bytes, stream), bytes);
  return allocator_->allocate(bytes, stream);
}
Result<void*> DeviceCachingAllocator::allocate(std::size_t bytes, const StreamRef& stream, const DevicePool& pool) {
  if (is_profiled()) [[unlikely]]
    return tell(allocator_->allocate(bytes, stream, pool.slot_), bytes);
  return allocator_->allocate(bytes, stream, pool.slot_);
}
Result<> DeviceCachingAllocator::free(void* address) {
  if (is_profiled()) [[unlikely]]
    return tell_and_free(address);
  return allocator_->free(address);
}

Result<void*> DeviceCachingAllocator::tell(Result<void*> allocated, std::size_t bytes) const {
  if (listener_ != nullptr && allocated && *allocated != nullptr) listener_->allocated(*allocated, bytes);
  return allocated;
}
Result<> DeviceCachingAllocator::tell_and_free(void* address) {
  if (listener_ != nullptr && !allocator_->is_closed()) {
    if (const std::optional<std::uint64_t> bytes = allocator_->requested_bytes_of(address)) listener_->freeing(address, *bytes);
  }
  return allocator_->free(address);
}
std::uint64_t DeviceCachingAllocator::requested_bytes() const noexcept {
  return allocator_->is_closed() ? 0 : allocator_->requested_bytes();
}

std::optional<std::uint64_t> DeviceCachingAllocator::requested_bytes_of(const void* address) const noexcept {
  if (allocator_->is_closed()) return std::nullopt;
  return allocator_->requested_bytes_of(address);
}

bool DeviceCachingAllocator::record_use(void* address, const StreamRef& stream) {
  return !allocator_->is_closed() && allocator_->record_use(address, stream);
}
void DeviceCachingAllocator::note_stream(const StreamRef& stream) {
  if (!allocator_->is_closed()) allocator_->note_stream(stream);
}
void DeviceCachingAllocator::empty_cache() {
  if (!allocator_->is_closed()) allocator_->empty_cache();
}
void DeviceCachingAllocator::empty_cache(const DevicePool& pool) {
  if (!allocator_->is_closed()) allocator_->empty_cache(pool.slot_);
}
void DeviceCachingAllocator::trim(std::uint64_t kept_bytes) {
  if (!allocator_->is_closed()) allocator_->trim(kept_bytes);
}
std::unique_ptr<DevicePool> DeviceCachingAllocator::create_pool(const PoolOptions& options) {
  return allocator_->is_closed() ? nullptr : allocator_->create_pool(options);
}

Result<SharedBlock> DeviceCachingAllocator::share(void* address) { return allocator_->share(address); }
Result<> DeviceCachingAllocator::unshare(std::uint64_t segment_id) { return allocator_->unshare(segment_id); }

Result<> DeviceCachingAllocator::set_memory_fraction(double fraction) {
  if (!(fraction > 0 && fraction <= 1)) {
    return Error{ErrorCode::invalid_argument, fmt::format("invalid fraction:{}. Please set within (0, 1].", fraction)};
  }
  XPU_TRY(allocator_->check_open());
  allocator_->set_fraction(fraction);
  return {};
}
double DeviceCachingAllocator::memory_fraction() const noexcept { return allocator_->fraction(); }
bool DeviceCachingAllocator::has_expandable_segments() const noexcept { return allocator_->is_expandable(); }

DeviceStatistics DeviceCachingAllocator::statistics() const {
  return allocator_->is_closed() ? DeviceStatistics() : allocator_->statistics();
}
void DeviceCachingAllocator::reset_peak_statistics() {
  if (!allocator_->is_closed()) allocator_->reset_peaks();
}
void DeviceCachingAllocator::reset_accumulated_statistics() {
  if (!allocator_->is_closed()) allocator_->reset_accumulated();
}
Snapshot DeviceCachingAllocator::snapshot() const { return allocator_->is_closed() ? Snapshot() : allocator_->snapshot(); }

namespace {

Result<> check_history_options(const HistoryOptions& options) {
  if (options.max_entries == 0) return Error{ErrorCode::invalid_argument, "max_entries must be at least 1, but is 0"};
  if (options.stack_use != StackUse::never && options.stacks == nullptr) {
    return Error{ErrorCode::invalid_argument, "stacks were asked for without a recorder of stacks"};
  }
  return {};
}

}  // namespace

Result<> DeviceCachingAllocator::start_history(const HistoryOptions& options) {
  XPU_TRY(check_history_options(options));
  XPU_TRY(allocator_->check_open());
  allocator_->start_history(options);
  return {};
}
void DeviceCachingAllocator::stop_history() {
  if (!allocator_->is_closed()) allocator_->stop_history();
}
Result<std::uint64_t> DeviceCachingAllocator::borrow_history(const HistoryOptions& options) {
  XPU_TRY(check_history_options(options));
  XPU_TRY(allocator_->check_open());
  return allocator_->borrow_history(options);
}
void DeviceCachingAllocator::return_history(std::uint64_t borrowed) {
  if (borrowed != 0 && !allocator_->is_closed()) allocator_->return_history(borrowed);
}
History DeviceCachingAllocator::history() const { return allocator_->is_closed() ? History() : allocator_->history(); }
Result<> DeviceCachingAllocator::write_snapshot(const std::string& path) const {
  XPU_TRY(allocator_->check_open());
  return allocator_->write_snapshot(path);
}
Result<> DeviceCachingAllocator::write_snapshots(std::span<const DeviceCachingAllocator* const> allocators, const std::string& path) {
  std::vector<SnapshotFile> described;
  for (const DeviceCachingAllocator* allocator : allocators) {
    if (!allocator->allocator_->is_closed()) described.push_back(allocator->allocator_->describe_snapshot());
  }
  return memory::write_snapshots(described, path);
}
void DeviceCachingAllocator::write_snapshot_at_out_of_memory(std::string path) {
  if (!allocator_->is_closed()) allocator_->write_snapshot_at_out_of_memory(std::move(path));
}
void DeviceCachingAllocator::attach_tracker(TraceTracker tracker) {
  if (!allocator_->is_closed()) allocator_->attach_tracker(std::move(tracker));
}

Result<> DeviceCachingAllocator::start_checks(const CheckOptions& options) {
  if (options.max_freed_blocks == 0) return Error{ErrorCode::invalid_argument, "max_freed_blocks must be at least 1, but is 0"};
  XPU_TRY(allocator_->check_open());
  allocator_->start_checks(options);
  return {};
}
void DeviceCachingAllocator::stop_checks() {
  if (!allocator_->is_closed()) allocator_->stop_checks();
}
LiveBlockReport DeviceCachingAllocator::report_live_blocks(std::size_t max_rows) const {
  return allocator_->is_closed() ? LiveBlockReport() : allocator_->report_live_blocks(max_rows);
}

void DeviceCachingAllocator::close(const char* why) noexcept { allocator_->close(why); }

}  // namespace xpu::memory
