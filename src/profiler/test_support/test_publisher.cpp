#include "profiler/test_support/test_publisher.hpp"

#include "xpu/base/clock.hpp"

namespace xpu::profiler::test_support {

TestPublisher& TestPublisher::instance() {
  static auto* const publisher = new TestPublisher;
  return *publisher;
}

TestPublisher::TestPublisher()
    : device_(probe::new_object_id(probe::ObjectKind::device)),
      peer_(probe::new_object_id(probe::ObjectKind::device)),
      context_(probe::new_object_id(probe::ObjectKind::context)),
      queue_(probe::new_object_id(probe::ObjectKind::queue)),
      kernel_(probe::new_object_id(probe::ObjectKind::kernel)) {
  probe::register_publisher(republish);
  probe::register_harvester(read_clock);
}

void TestPublisher::republish() {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr) return;
  const TestPublisher& self = instance();
  const auto created = [&](probe::ObjectKind kind, probe::Id id, const void* description) {
    listener->object(kind, id, probe::ObjectEvent::created, description);
  };
  probe::DeviceDescription device;
  device.name = "test device";
  device.driver = "test driver";
  device.clock_domain = probe::clock_domain();
  created(probe::ObjectKind::device, self.device_, &device);
  device.name = "peer device";
  created(probe::ObjectKind::device, self.peer_, &device);
  const probe::ContextDescription context{0, 1, &self.device_};
  created(probe::ObjectKind::context, self.context_, &context);
  probe::QueueDescription queue;
  queue.context = self.context_;
  queue.device = self.device_;
  queue.published_before = self.sequence_.load();
  created(probe::ObjectKind::queue, self.queue_, &queue);
  probe::KernelDescription kernel;
  kernel.name = "test_kernel";
  kernel.device = self.device_;
  created(probe::ObjectKind::kernel, self.kernel_, &kernel);
}

void TestPublisher::read_clock() {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr) return;
  const std::uint64_t now = now_ns(probe::clock_domain());
  listener->clock({.host_before_ns = now,
                   .host_after_ns = now,
                   .device_ticks = now,
                   .device = instance().device_,
                   .method = probe::ClockMethod::native,
                   .error_ps = 0});
}

TestPublisher::Launched TestPublisher::submit(probe::Operation operation) {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr) return {};
  operation.enter_ns = now_ns(probe::clock_domain());
  operation.queue = queue_;
  const probe::OperationId id = listener->begin(operation);
  if (id == 0) return {};
  const bool recorded = listener->submitted(id, operation, {now_ns(probe::clock_domain()), 0, sequence_.fetch_add(1) + 1});
  return {recorded ? id : 0, operation.enter_ns};
}

TestPublisher::Launched TestPublisher::launch(const char* api) {
  static const probe::Geometry geometry = {.dimensions = 1, .global = {256, 1, 1}, .local = {64, 1, 1}};
  probe::Operation operation;
  operation.api = probe::intern(api);
  operation.kernel = kernel_;
  operation.command = probe::Command::ndrange_kernel;
  operation.geometry = &geometry;
  return submit(operation);
}

TestPublisher::Launched TestPublisher::copy(std::uint64_t bytes, bool to_peer) {
  probe::CopyDetail detail;
  detail.bytes = bytes;
  detail.direction = to_peer ? probe::CopyDirection::peer : probe::CopyDirection::host_to_device;
  detail.peer_device = to_peer ? peer_ : 0;
  probe::Operation operation;
  operation.api = probe::intern("testCopy");
  operation.command = probe::Command::copy;
  operation.copy = &detail;
  return submit(operation);
}

void TestPublisher::complete(const Launched& launched, std::uint64_t duration_ns) {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr || launched.id == 0) return;
  const std::uint64_t start = launched.enter_ns + 100;
  listener->complete(launched.id, {queue_, probe::CompletionStatus::ok, false, 0, {start - 50, start - 20, start, start + duration_ns}});
}

void TestPublisher::complete_now(const Launched& launched) { complete({launched.id, now_ns(probe::clock_domain()) - 101}, 1); }

void TestPublisher::call(const char* api) {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr || (listener->wanted.load() & probe::kCalls) == 0) return;
  const std::uint64_t now = now_ns(probe::clock_domain());
  listener->call({now, now + 10, probe::intern(api), 0, 0});
}

}  // namespace xpu::profiler::test_support
