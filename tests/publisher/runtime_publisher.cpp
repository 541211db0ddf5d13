#include <atomic>
#include <cstdlib>
#include <iterator>

#include "publisher/publisher.hpp"
#include "publisher/runtime_support.hpp"

namespace xpu::publisher_tests {
namespace {

void add_one(const WorkGroup&, std::uint32_t* number) { std::atomic_ref(*number).fetch_add(1, std::memory_order_relaxed); }

std::uint32_t g_number = 0;

class RuntimeQueue final : public PublishedQueue {
 public:
  void launch() override { stream_.launch(kernel_, items(1), &g_number).value(); }
  // Asking makes progress on every driver, so this is what a program does that waits by asking. It publishes no wait.
  void flush() override {
    while (!stream_.query().value()) {
    }
  }
  void finish() override { stream_.synchronize().value(); }

 private:
  const Stream stream_ = fresh_stream();
  const Kernel kernel_ = tiny_kernel();
};

class RuntimePublisher final : public Publisher {
 public:
  std::unique_ptr<PublishedQueue> new_queue() override { return std::make_unique<RuntimeQueue>(); }
  std::string launch_api() const override { return "xpu::Stream::launch"; }
  bool publishes_calls_inside_scopes() const override { return false; }
};

}  // namespace

std::unique_ptr<Publisher> make_publisher() { return std::make_unique<RuntimePublisher>(); }

bool on_sim() { return std::string(Device::get(0).value().driver()) == "sim"; }

Stream fresh_stream() {
  constexpr int kPriorities[] = {0, -1, 1};
  static int used = 0;
  const int pool = used++ / Stream::kStreamsPerPool;
  if (pool >= static_cast<int>(std::size(kPriorities))) {
    ADD_FAILURE() << "the tests of one process use more streams than there are";
    std::abort();
  }
  return Stream::from_pool(kPriorities[pool], 0).value();
}

Kernel tiny_kernel(const char* name) { return Kernel::from_function<&add_one>(name, {.short_and_independent = true}, "number").value(); }

}  // namespace xpu::publisher_tests
