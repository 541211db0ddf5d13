#include "tests/acceptance/support.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace xpu::acceptance {
namespace {

void acceptance_add(const WorkItem& item, std::int32_t* values, std::int32_t value) { values[item.global_id(0)] += value; }
XPU_KERNEL(acceptance_add, "values", "value");

void acceptance_long(const WorkItem& item, std::int32_t* values, std::int32_t value) { values[item.global_id(0)] += value; }
XPU_KERNEL(acceptance_long, "values", "value");

void acceptance_wait(const WorkGroup&, std::int32_t* value) {
  while (std::atomic_ref(*value).load(std::memory_order_acquire) == 0) std::this_thread::yield();
}
XPU_KERNEL(acceptance_wait, "value");

}  // namespace

bool runs_by_itself() {
  static const bool answer = Device::get(0).value().capabilities().value()->concurrent_operations;
  return answer;
}

bool eventually(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Hold::Hold(const Stream& stream) {
  stream.run({.name = "hold"}, [released = is_released_] { released->wait(false); }).value();
}

void Hold::release() {
  is_released_->store(true);
  is_released_->notify_all();
}

Buffer zeros(std::size_t count, int device) {
  Buffer buffer = Buffer::allocate(count * sizeof(std::int32_t), MemoryKind::host, device).value();
  std::fill_n(values_of(buffer), count, 0);
  return buffer;
}

std::int32_t* values_of(const Buffer& buffer) { return buffer.as<std::int32_t>(); }

Kernel add_kernel(int device) { return Kernel::registered("acceptance_add", device).value(); }
Kernel long_kernel(int device) { return Kernel::registered("acceptance_long", device).value(); }
Kernel wait_kernel(int device) { return Kernel::registered("acceptance_wait", device).value(); }

void store_late(const Stream& stream, std::int32_t* place, std::int32_t value, std::chrono::milliseconds time) {
  const bool is_slow = runs_by_itself();
  stream
      .run({.name = "store_late"},
           [=] {
             if (is_slow) std::this_thread::sleep_for(time);
             *place = value;
           })
      .value();
}

}  // namespace xpu::acceptance
