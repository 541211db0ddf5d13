#include "tests/conformance/support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/conformance/watchdog.hpp"

namespace xpu::conformance {
namespace {

using Function = std::function<Result<>()>;

Result<> call_function(void* user) { return (*static_cast<Function*>(user))(); }
void drop_function(void* user) { delete static_cast<Function*>(user); }

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(kTestLimitSeconds / 2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

void on_threads(int thread_count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int index = 0; index < thread_count; ++index) {
    threads.emplace_back([&body, index] {
      try {
        body(index);
      } catch (const BadResult& failure) {
        ADD_FAILURE() << "thread " << index << ": " << failure.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Result<> submit_function(hal::Queue& queue, std::function<Result<>()> function, const hal::Submission& submission) {
  auto owned = std::make_unique<Function>(std::move(function));
  Result<> result = queue.host_function({call_function, drop_function, owned.get()}, submission);
  if (result) static_cast<void>(owned.release());  // `drop` deletes it
  return result;
}

Result<> submit_action(hal::Queue& queue, std::function<void()> action, const hal::Submission& submission) {
  return submit_function(
      queue,
      [action = std::move(action)]() -> Result<> {
        action();
        return {};
      },
      submission);
}

bool leaves_operations_pending(hal::Device& device) {
  std::unique_ptr<hal::Queue> queue = device.create_queue({}).value();
  const std::thread::id submitter = std::this_thread::get_id();
  const auto has_returned = std::make_shared<std::atomic<bool>>(false);
  const auto ran_inside = std::make_shared<std::atomic<bool>>(false);
  submit_action(*queue, [=] { ran_inside->store(std::this_thread::get_id() == submitter && !has_returned->load()); }).value();
  has_returned->store(true);
  queue->synchronize_blocking().value();
  return !ran_inside->load();
}

Hold::Hold(hal::Queue& queue) : state_(std::make_shared<State>()) {
  submit_action(queue, [state = state_, creator = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == creator) return;
    state->is_entered.store(true);
    state->is_released.wait(false);
  }).value();
}

void Hold::release() {
  state_->is_released.store(true);
  state_->is_released.notify_all();
}

bool Hold::eventually_holds() const {
  return eventually([this] { return state_->is_entered.load(); });
}

void RecordingSink::complete(const hal::Completion& completion) noexcept {
  const base::MutexLock lock(mutex_);
  completions_.push_back(completion);
}

std::vector<hal::Completion> RecordingSink::all() const {
  const base::MutexLock lock(mutex_);
  return completions_;
}

std::size_t RecordingSink::count() const {
  const base::MutexLock lock(mutex_);
  return completions_.size();
}

std::size_t RecordingSink::count_of(std::uint64_t token) const {
  const base::MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::count_if(completions_.begin(), completions_.end(),
                                                [token](const hal::Completion& completion) { return completion.token == token; }));
}

hal::Completion RecordingSink::of(std::uint64_t token) const {
  for (const hal::Completion& completion : all()) {
    if (completion.token == token) return completion;
  }
  throw BadResult(Error{ErrorCode::not_found, fmt::format("token {} was not delivered", token)});
}

std::uint64_t ticks_between(const hal::ClockInfo& clock, std::uint64_t earlier, std::uint64_t later) {
  const std::uint64_t mask = clock.valid_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << clock.valid_bits) - 1;
  return (later - earlier) & mask;
}

bool not_before(const hal::ClockInfo& clock, std::uint64_t later, std::uint64_t earlier) {
  return ticks_between(clock, earlier, later) >> (std::min(clock.valid_bits, 64u) - 1) == 0;
}

hal::Geometry items(std::initializer_list<std::uint64_t> global, std::initializer_list<std::uint64_t> local) {
  hal::Geometry geometry;
  geometry.dimensions = static_cast<std::uint32_t>(global.size());
  std::copy(global.begin(), global.end(), geometry.global);
  std::copy(local.begin(), local.end(), geometry.local);
  if (local.size() != 0) std::fill(geometry.local + local.size(), geometry.local + 3, 1u);
  return geometry;
}

void DeviceTest::TearDown() {
  for (const auto& [ordinal, opened] : shared().opened()) {
    // What a test left behind is its own affair; here it only has to end.
    if (opened != nullptr) static_cast<void>(opened->synchronize_blocking());
  }
  for (const Block& block : blocks_) block.provider->free(block.address);
  ConformanceTest::TearDown();
}

std::unique_ptr<hal::Queue> DeviceTest::new_queue(hal::CompletionSink& sink) const {
  hal::QueueOptions options;
  options.sink = &sink;
  return new_queue(options);
}

std::unique_ptr<hal::Event> DeviceTest::new_event(bool is_timed) const {
  hal::EventOptions options;
  options.timed = is_timed;
  return device().create_event(options).value();
}

std::vector<hal::MemoryKind> DeviceTest::kinds() const {
  std::vector<hal::MemoryKind> kinds;
  for (const hal::MemoryKind kind : {hal::MemoryKind::device, hal::MemoryKind::host, hal::MemoryKind::shared}) {
    if (device().memory(kind) != nullptr) kinds.push_back(kind);
  }
  return kinds;
}

std::vector<hal::MemoryKind> DeviceTest::host_visible_kinds() const {
  std::vector<hal::MemoryKind> visible = kinds();
  std::erase(visible, hal::MemoryKind::device);
  return visible;
}

void* DeviceTest::allocate_bytes(hal::MemoryProvider& provider, std::size_t bytes, std::size_t alignment) {
  void* const address = provider.allocate(bytes, alignment).value();
  blocks_.push_back({&provider, address});
  return address;
}

void DeviceTest::write(hal::Queue& queue, void* destination, std::span<const std::byte> bytes) {
  std::byte* const staging = allocate<std::byte>(host_visible_kinds().at(0), bytes.size());
  std::copy(bytes.begin(), bytes.end(), staging);
  queue.copy(destination, staging, bytes.size(), {}).value();
  queue.synchronize_blocking().value();
}

std::vector<std::byte> DeviceTest::read(hal::Queue& queue, const void* source, std::size_t bytes) {
  std::byte* const staging = allocate<std::byte>(host_visible_kinds().at(0), bytes);
  queue.copy(staging, source, bytes, {}).value();
  queue.synchronize_blocking().value();
  return {staging, staging + bytes};
}

std::shared_ptr<const hal::Kernel> DeviceTest::suite_kernel(std::string_view name, std::uint32_t ordinal) const {
  return device(ordinal).create_module({}).value()->kernel(name).value();
}

std::vector<std::byte> pattern_bytes(std::size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::size_t index = 0; index < count; index += sizeof(state)) {
    state = state * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
    const std::uint64_t word = state ^ state >> 29;
    std::memcpy(bytes.data() + index, &word, std::min(sizeof(word), count - index));
  }
  return bytes;
}

}  // namespace xpu::conformance
