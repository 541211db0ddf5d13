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
  self.describe_queue(self.queue_, self.sequence_.load());
  self.describe_kernel(self.kernel_, "test_kernel");
  for (const AddedQueue& queue : self.added_queues_) self.describe_queue(queue.id, queue.sequence.load());
  for (const auto& [kernel, name] : self.added_kernels_) self.describe_kernel(kernel, name);
}

void TestPublisher::describe_queue(probe::Id queue, std::uint32_t published) const {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr) return;
  probe::QueueDescription description;
  description.context = context_;
  description.device = device_;
  description.published_before = published;
  listener->object(probe::ObjectKind::queue, queue, probe::ObjectEvent::created, &description);
}

void TestPublisher::describe_kernel(probe::Id kernel, const char* name) const {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr) return;
  probe::KernelDescription description;
  description.name = name;
  description.device = device_;
  listener->object(probe::ObjectKind::kernel, kernel, probe::ObjectEvent::created, &description);
}

probe::Id TestPublisher::add_kernel(const char* name) {
  const probe::Id id = probe::new_object_id(probe::ObjectKind::kernel);
  added_kernels_.emplace_back(id, name);
  describe_kernel(id, name);
  return id;
}

probe::Id TestPublisher::add_queue() {
  const probe::Id id = probe::new_object_id(probe::ObjectKind::queue);
  added_queues_.emplace_back().id = id;
  describe_queue(id, 0);
  return id;
}

std::atomic<std::uint32_t>& TestPublisher::sequence_of(probe::Id queue) {
  for (AddedQueue& added : added_queues_) {
    if (added.id == queue) return added.sequence;
  }
  return sequence_;
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
  if (operation.queue == 0) operation.queue = queue_;
  const probe::OperationId id = listener->begin(operation);
  if (id == 0) return {};
  const std::uint32_t sequence = sequence_of(operation.queue).fetch_add(1) + 1;
  const bool recorded = listener->submitted(id, operation, {now_ns(probe::clock_domain()), 0, sequence});
  return {recorded ? id : 0, operation.enter_ns, operation.queue};
}

TestPublisher::Launched TestPublisher::launch_on(probe::Id queue, probe::Id kernel) {
  probe::Operation operation;
  operation.api = probe::intern("testLaunch");
  operation.kernel = kernel;
  operation.queue = queue;
  operation.command = probe::Command::ndrange_kernel;
  return submit(operation);
}

TestPublisher::Launched TestPublisher::replay(std::uint64_t graph, std::uint64_t node) {
  const probe::GraphNode replayed{graph, node};
  probe::Operation operation;
  operation.api = probe::intern("testReplay");
  operation.kernel = kernel_;
  operation.command = probe::Command::ndrange_kernel;
  operation.graph_node = &replayed;
  return submit(operation);
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
  listener->complete(launched.id, {launched.queue == 0 ? queue_ : launched.queue,
                                   probe::CompletionStatus::ok,
                                   false,
                                   0,
                                   {start - 50, start - 20, start, start + duration_ns}});
}

void TestPublisher::complete_now(const Launched& launched) { complete({launched.id, now_ns(probe::clock_domain()) - 101}, 1); }

void TestPublisher::call(const char* api) {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr || (listener->wanted.load() & probe::kCalls) == 0) return;
  const std::uint64_t now = now_ns(probe::clock_domain());
  listener->call({now, now + 10, probe::intern(api), 0, 0});
}

}  // namespace xpu::profiler::test_support
